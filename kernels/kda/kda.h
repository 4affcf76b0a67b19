// Host interface of the KDA kernels: arguments by name, one launcher each, the same on both
// backends. Pointers are device pointers of the backend. Shapes are row-major; T tokens, H key
// heads, HV value heads. What each kernel computes, with its rounding sites: kernels/kda/README.md.
#pragma once
#include <cstdint>

#include "core/plan.h"
#include "core/tensor.h"

namespace numgate::kernels {

inline constexpr int kChunk = 64, kSubChunk = 16;

struct KdaDims {
  std::int64_t T = 0;
  int H = 1, HV = 1, K = 64, V = 64;
  Dtype in = Dtype::bf16;
  bool bounded_gate = true;
  constexpr std::int64_t chunks() const { return (T + kChunk - 1) / kChunk; }
};

// The inputs of kda.prefill, or, where `prepared`, of kda.core (q = qhat and k = khat, f32; gate =
// g; beta).
struct KdaInputs {
  bool prepared = false;
  const void* q = nullptr;         // [T, H, K]
  const void* k = nullptr;         // [T, H, K]
  const void* v = nullptr;         // [T, HV, V]
  const void* gate = nullptr;      // [T, HV, K]
  const void* beta = nullptr;      // [T, HV]
  const float* A_log = nullptr;    // [HV]
  const float* dt_bias = nullptr;  // [HV, K]
};

// Chunk operands, each in its site's store format: two bytes an element for bf16 and fp16, else
// four.
struct ChunkOperands {
  void* u = nullptr;       // [chunks, HV, 64, V]
  void* w = nullptr;       // [chunks, HV, 64, K]
  void* kg = nullptr;      // [chunks, HV, 64, K]
  void* qg = nullptr;      // [chunks, HV, 64, K]
  void* aqk = nullptr;     // [chunks, HV, 64, 64]
  float* gamma = nullptr;  // [chunks, HV, K]
};
// Bytes of one element in store format f.
constexpr std::size_t store_bytes(Format f) {
  return f == Format::bf16 || f == Format::fp16 ? 2 : 4;
}
// The element type of the inputs as a format, and what the site `output` stands for.
constexpr Format input_format(Dtype in) { return in == Dtype::bf16 ? Format::bf16 : Format::ieee; }
constexpr Format output_format(Format f, Dtype in) {
  return f == Format::input ? input_format(in) : f;
}

// Packed sequences: chunk c covers tokens [begin[c], end[c]); sequence n owns chunks [first[n],
// first[n + 1]). Without a table (begin null) there is one sequence of dims.T tokens.
struct Packing {
  int sequences = 1;
  std::int64_t chunks = 0;
  const std::int64_t* begin = nullptr;  // [chunks]
  const std::int64_t* end = nullptr;    // [chunks]
  const std::int64_t* first = nullptr;  // [sequences + 1]

  constexpr std::int64_t chunk_count(const KdaDims& d) const { return begin ? chunks : d.chunks(); }
  // The tokens of a chunk, and the chunks of a sequence, as [first, end).
  constexpr std::int64_t first_token(std::int64_t chunk) const {
    return begin ? begin[chunk] : chunk * kChunk;
  }
  constexpr std::int64_t end_token(const KdaDims& d, std::int64_t chunk) const {
    return begin ? end[chunk] : d.T;
  }
  constexpr std::int64_t first_chunk(std::int64_t sequence) const {
    return begin ? first[sequence] : 0;
  }
  constexpr std::int64_t end_chunk(const KdaDims& d, std::int64_t sequence) const {
    return begin ? first[sequence + 1] : d.chunks();
  }
};

struct PrepareArgs {
  KdaDims dims;
  Packing packing;
  KdaInputs in;
  ChunkOperands out;
};

// The recurrence over chunks. o_cast is null where no output is wanted (a summary's B); o may be.
struct StatePassArgs {
  KdaDims dims;
  Packing packing;
  ChunkOperands chunk;
  const float* state0 = nullptr;  // [sequences, HV, K, V], null for zero; may be `state`
  float* state = nullptr;         // [sequences, HV, K, V]
  float* o = nullptr;             // [T, HV, V], before the cast
  void* o_cast = nullptr;         // [T, HV, V], format `output`
  bool hand_off = false;          // round the final state to `handoff`
};

struct SegmentMapArgs {
  KdaDims dims;
  ChunkOperands chunk;
  const float* M0 = nullptr;  // [HV, K, K], null for the identity; may be `M`
  float* M = nullptr;         // [HV, K, K]
  bool hand_off = true;       // round M to `handoff`
};

struct MergeArgs {
  int HV = 1, K = 64, V = 64;
  int summaries = 0;
  const float* M = nullptr;       // [summaries, HV, K, K]
  const float* B = nullptr;       // [summaries, HV, K, V]
  const float* state0 = nullptr;  // [HV, K, V], null for zero
  float* state = nullptr;         // [HV, K, V]
};

// One token of each of dims.T sequences, in-place states. o may be null.
struct DecodeArgs {
  KdaDims dims;
  KdaInputs in;
  float* state = nullptr;  // [dims.T, HV, K, V]
  float* o = nullptr;      // [dims.T, HV, V], before the cast
  void* o_cast = nullptr;  // [dims.T, HV, V], format `output`
};

struct Ring {
  int capacity = 16;
  float* khat = nullptr;  // [capacity, HV, K]
  float* G = nullptr;     // [capacity, HV, K] log2 decay since the checkpoint
  float* u = nullptr;     // [capacity, HV, V]
};

// One token from checkpoint and ring; appends record `count`.
struct ReplayArgs {
  KdaDims dims;  // T = 1
  KdaInputs in;
  Ring ring;
  int count = 0;                 // records already in the ring
  const float* state = nullptr;  // checkpoint [HV, K, V]
  float* o = nullptr;            // [1, HV, V]
  void* o_cast = nullptr;
};

struct FlushArgs {
  int HV = 1, K = 64, V = 64;
  Ring ring;
  int count = 0;
  float* state = nullptr;  // checkpoint, replaced
};

struct L2NormArgs {
  KdaDims dims;
  const void* x = nullptr;  // [T, H, K]
  float* y = nullptr;
};
struct GateArgs {
  KdaDims dims;
  const void* g_raw = nullptr;  // [T, HV, K]
  const float* A_log = nullptr;
  const float* dt_bias = nullptr;
  float* g = nullptr;
};
struct BetaArgs {
  KdaDims dims;
  const void* beta_raw = nullptr;  // [T, HV]
  float* beta = nullptr;
};
struct ConvArgs {
  std::int64_t T = 0, C = 0;
  Dtype in = Dtype::bf16;
  const void* x = nullptr;       // [T, C]
  const float* w = nullptr;      // [C, 4], oldest input first
  const void* state0 = nullptr;  // [C, 3], oldest first; null for zero
  float* y = nullptr;            // [T, C]
  void* state = nullptr;         // [C, 3]
};
struct OutNormArgs {
  std::int64_t T = 0;
  int HV = 1, V = 64;
  Dtype in = Dtype::bf16;
  const float* o = nullptr;  // [T, HV, V]
  const void* z = nullptr;   // [T, HV, V]
  const float* w = nullptr;  // [V]
  float* y = nullptr;        // [T, HV, V]
};

}  // namespace numgate::kernels
