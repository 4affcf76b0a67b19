// Kernels of the double-double truth: prepare a slab's operands, walk the columns of the state,
// advance the certificate. Each is a reading of oracles/definitions or of the certificate by a team
// of lanes.
#pragma once
#include <cuda_pipeline.h>

#include <cstdint>

#include "core/tensor.h"
#include "oracles/certificate.h"
#include "oracles/definitions/kda_recurrence.h"
#include "oracles/definitions/kda_scalar_stages.h"
#include "oracles/scalars/double_double.h"

namespace numgate::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// `Size` neighbouring lanes of a warp; Size divides 32.
template <int Size>
struct WarpTeam {
  static constexpr int size = Size;
  int rank;

  __device__ __forceinline__ static std::int64_t count(std::int64_t n) { return n / Size; }
  __device__ __forceinline__ std::int64_t element(std::int64_t j) const { return rank + j * Size; }
  __device__ __forceinline__ static double exchange(double x, int mask) {
    return __shfl_xor_sync(kAllLanes, x, mask);
  }
  __device__ __forceinline__ static Accumulator<DD> exchange(const Accumulator<DD>& a, int mask) {
    return {exchange(a.high, mask), exchange(a.middle, mask), exchange(a.low, mask)};
  }
};

// Of double, over the whole warp.
template <class Combine>
__device__ __forceinline__ double warp_reduce(double x, Combine combine) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2)
    x = combine(x, __shfl_xor_sync(kAllLanes, x, mask));
  return x;
}
__device__ __forceinline__ double warp_sum(double x) {
  return warp_reduce(x, [](double a, double b) { return a + b; });
}

// A tensor of bf16 or f32 in device memory.
struct Values {
  const void* data;
  bool bf16;

  __device__ __forceinline__ double at(std::int64_t i) const {
    if (!bf16) return static_cast<const float*>(data)[i];
    return __uint_as_float(std::uint32_t{static_cast<const std::uint16_t*>(data)[i]} << 16);
  }
};

struct Sizes {
  std::int64_t H, HV, columns, capacity;  // capacity: tokens that a slab may have
  bool raw, query, value, bounded;
};

struct Inputs {
  Values k, q, g, beta, v;     // [token, H or HV, ...], or their prepared counterparts
  const double *A_log, *bias;  // raw: [HV], [HV, K]
};

// What prepare leaves for walk.
struct DeviceOperands {
  DD *alpha, *khat, *qhat;  // [HV, capacity, K]
  DD* beta;                 // [HV, capacity]
  double* v;                // [token, HV, columns]
  TokenNorms* norms;        // [HV, capacity]
};

struct Walked {
  double *hi, *lo;           // [token, HV, columns]
  double* squares;           // [HV, capacity / kTightenTokens, columns / kWarpColumns]
  double *radius, *largest;  // [token, HV]
  double* state_radius;      // [HV]
};

constexpr int kPrepareThreads = 128;

// A warp a token and head.
template <int K>
__global__ void __launch_bounds__(kPrepareThreads)
    prepare(Sizes s, Inputs in, DeviceOperands out, std::int64_t tokens) {
  constexpr int n = K / kWarp;
  const std::int64_t row =
      (static_cast<std::int64_t>(blockIdx.x) * kPrepareThreads + threadIdx.x) / kWarp;
  if (row >= tokens * s.HV) return;
  const WarpTeam<kWarp> team{static_cast<int>(threadIdx.x % kWarp)};
  const std::int64_t t = row / s.HV, h = row % s.HV, key = t * s.H + h / (s.HV / s.H);
  DD alpha[n], khat[n], qhat[n], bias[n], beta(in.beta.at(row));
  for (int j = 0; j < n; ++j) {
    const std::int64_t d = team.element(j);
    khat[j] = DD(in.k.at(key * K + d));
    qhat[j] = s.query ? DD(in.q.at(key * K + d)) : DD(0.0);
    alpha[j] = DD(in.g.at(row * K + d));
    if (s.raw) bias[j] = DD(in.bias[h * K + d]);
  }
  if (s.raw)
    definition::kda_operands(team, K, s.bounded, exp(DD(in.A_log[h])), bias, khat, qhat, alpha,
                             beta);
  const std::int64_t at = h * s.capacity + t;
  double largest = 0, khat_square = 0, qhat_square = 0, v_square = 0;
  for (int j = 0; j < n; ++j) {
    const std::int64_t i = at * K + team.element(j);
    alpha[j] = exp(alpha[j]);
    out.alpha[i] = alpha[j];
    out.khat[i] = khat[j];
    if (s.query) out.qhat[i] = qhat[j];
    largest = max(largest, alpha[j].hi);
    khat_square += khat[j].hi * khat[j].hi;
    qhat_square += qhat[j].hi * qhat[j].hi;
  }
  for (std::int64_t c = team.rank; c < s.columns; c += kWarp) {
    const double v = s.value ? in.v.at(row * s.columns + c) : 0.0;
    out.v[row * s.columns + c] = v;
    v_square += v * v;
  }
  largest = warp_reduce(largest, [](double a, double b) { return max(a, b); });
  khat_square = warp_sum(khat_square);
  qhat_square = warp_sum(qhat_square);
  v_square = warp_sum(v_square);
  if (team.rank == 0) {
    out.beta[at] = beta;
    out.norms[at] = {largest, ::sqrt(khat_square), ::sqrt(qhat_square), beta.hi,
                     ::sqrt(v_square) * (1.0 + 0x1p-40)};
  }
}

constexpr int kTeam = 8, kWarpColumns = kWarp / kTeam, kBlockColumns = 32,
              kWalkThreads = kBlockColumns * kTeam;
constexpr int kStageTokens = 4;

// The operands of a few tokens in shared memory.
template <int K>
struct Stage {
  DD alpha[kStageTokens][K], khat[kStageTokens][K], qhat[kStageTokens][K];
  double v[kStageTokens][kBlockColumns];
  DD beta[kStageTokens];
};

__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
  for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += kWalkThreads * 16)
    __pipeline_memcpy_async(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, 16);
}

// A vector of a stage, read afresh each time and in order: the compiler would rather hold many
// elements in registers, which the state needs.
struct SharedRow {
  const DD* row;
  __device__ __forceinline__ DD operator[](std::int64_t i) const {
    DD x;
    asm volatile("ld.volatile.shared.v2.f64 {%0, %1}, [%2];"
                 : "=d"(x.hi), "=d"(x.lo)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row + i)))
                 : "memory");
    return x;
  }
};

template <int K, bool kQuery>
__device__ __forceinline__ void fetch(Stage<K>& to, const Sizes& s, const DeviceOperands& from,
                                      std::int64_t h, std::int64_t t, int count) {
  const std::int64_t at = h * s.capacity + t, first = blockIdx.x * kBlockColumns;
  const int bytes = count * K * static_cast<int>(sizeof(DD));
  copy_async(to.alpha, from.alpha + at * K, bytes);
  copy_async(to.khat, from.khat + at * K, bytes);
  if constexpr (kQuery) copy_async(to.qhat, from.qhat + at * K, bytes);
  copy_async(to.beta, from.beta + at, count * static_cast<int>(sizeof(DD)));
  const int token = static_cast<int>(threadIdx.x) / 16, pair = static_cast<int>(threadIdx.x) % 16;
  if (token < count)
    __pipeline_memcpy_async(&to.v[token][2 * pair],
                            from.v + ((t + token) * s.HV + h) * s.columns + first + 2 * pair, 16);
  __pipeline_commit();
}

// A block walks 32 columns of one head, a team of eight lanes each: grid (columns / 32, HV).
// Dynamic shared memory: two stages. before, after [HV, columns, K]: the state before and after the
// slab.
template <int K, bool kQuery>
__global__ void __launch_bounds__(kWalkThreads, 2)
    walk(Sizes s, DeviceOperands in, const DD* before, DD* after, Walked out, std::int64_t tokens) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* stages = reinterpret_cast<Stage<K>*>(shared);
  constexpr int n = K / kTeam;
  const int column = static_cast<int>(threadIdx.x) / kTeam;
  const WarpTeam<kTeam> team{static_cast<int>(threadIdx.x) % kTeam};
  const std::int64_t h = blockIdx.y, c = blockIdx.x * kBlockColumns + column;
  DD S[n];
#pragma unroll
  for (int j = 0; j < n; ++j) S[j] = before[(h * s.columns + c) * K + team.element(j)];

  const auto count_at = [&](std::int64_t t) {
    return static_cast<int>(min(static_cast<std::int64_t>(kStageTokens), tokens - t));
  };
  fetch<K, kQuery>(stages[0], s, in, h, 0, count_at(0));
  for (std::int64_t t0 = 0; t0 < tokens; t0 += kStageTokens) {
    const int here = static_cast<int>(t0 / kStageTokens % 2);
    if (t0 + kStageTokens < tokens)
      fetch<K, kQuery>(stages[1 - here], s, in, h, t0 + kStageTokens, count_at(t0 + kStageTokens));
    else
      __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const Stage<K>& stage = stages[here];
    const int count = count_at(t0);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const DD v(stage.v[i][column]);
      const SharedRow alpha{stage.alpha[i]}, khat{stage.khat[i]};
      if constexpr (kQuery) {
        const DD o = definition::kda_step(team, K, alpha, khat, SharedRow{stage.qhat[i]},
                                          stage.beta[i], v, S);
        const std::int64_t at = ((t0 + i) * s.HV + h) * s.columns + c;
        if (team.rank == 0) out.hi[at] = o.hi;
        if (team.rank == 1) out.lo[at] = o.lo;
      } else {
        definition::kda_write(team, K, alpha, khat, stage.beta[i], v, S);
      }
    }
    __syncthreads();
    const std::int64_t end = t0 + count;
    if (end % kTightenTokens == 0 || end == tokens) {
      double square = 0;
#pragma unroll
      for (int j = 0; j < n; ++j) square += S[j].hi * S[j].hi;
      square = warp_sum(square);
      if (threadIdx.x % kWarp == 0)
        out.squares[(h * (s.capacity / kTightenTokens) + (end - 1) / kTightenTokens) *
                        (s.columns / kWarpColumns) +
                    c / kWarpColumns] = square;
    }
  }
#pragma unroll
  for (int j = 0; j < n; ++j) after[(h * s.columns + c) * K + team.element(j)] = S[j];
}

// A warp a head: radius and largest norm of every token of the slab.
__global__ void bound(Sizes s, DeviceOperands in, Walked out, NormBound* bounds,
                      std::int64_t tokens) {
  const std::int64_t h = blockIdx.x, parts = s.columns / kWarpColumns;
  const auto lane = static_cast<int>(threadIdx.x);
  NormBound b = bounds[h];
  for (std::int64_t t = 0; t < tokens; ++t) {
    const TokenNorms norms = in.norms[h * s.capacity + t];
    b.step(norms);
    if (lane == 0) {
      out.largest[t * s.HV + h] = b.largest();
      out.radius[t * s.HV + h] = b.output_radius(norms);
    }
    if ((t + 1) % kTightenTokens != 0 && t + 1 != tokens) continue;
    const double* squares =
        out.squares + (h * (s.capacity / kTightenTokens) + t / kTightenTokens) * parts;
    double square = 0;
    for (std::int64_t i = lane; i < parts; i += kWarp) square += squares[i];
    b.tighten(::sqrt(warp_sum(square)));
  }
  if (lane == 0) {
    bounds[h] = b;
    out.state_radius[h] = b.state_radius();
  }
}

// to[i] = from[i stride].
__global__ void gather(double* to, const double* from, std::int64_t stride, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i * stride];
}

}  // namespace numgate::cuda
