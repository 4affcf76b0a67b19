#pragma once

// float32 elementary functions with the same bits under g++ (-ffp-contract=off) and nvcc
// (-fmad=false): explicit fma, correctly rounded + - * / sqrt, integer bit operations, no tables.
// A NaN result is always 0x7fffffff, the NaN of NVIDIA arithmetic. Subnormals are kept.
//
// kXMaxUlp: the largest error over all 2^32 arguments, in ulps of the binade of the exact result
// (2^-149 for subnormal results), measured by tests/elementary_exhaustive_test.cpp.

#include <cmath>
#include <cstdint>

#include "kernels/special_functions.h"

#ifdef __CUDACC__
#define NUMGATE_ELEMENTARY __host__ __device__ __forceinline__
#define NUMGATE_ELEMENTARY_RARE inline __host__ __device__ __noinline__
#else
#define NUMGATE_ELEMENTARY inline
#define NUMGATE_ELEMENTARY_RARE inline
#endif

namespace numgate::elementary {

inline constexpr double kExp2MaxUlp = 0.808;
inline constexpr double kLog2MaxUlp = 0.994;
inline constexpr double kExpMaxUlp = 1.009;
inline constexpr double kLog1pMaxUlp = 0.973;
inline constexpr double kSigmoidMaxUlp = 2.481;
inline constexpr double kSoftplusMaxUlp = 1.703;
inline constexpr double kSiluMaxUlp = 1.484;
inline constexpr double kRsqrtMaxUlp = 0.501;
inline constexpr double kTanhMaxUlp = 1.503;
inline constexpr double kErfMaxUlp = 1.054;

namespace detail {

NUMGATE_ELEMENTARY uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
NUMGATE_ELEMENTARY float from_bits(uint32_t b) { return __builtin_bit_cast(float, b); }
NUMGATE_ELEMENTARY float nan() { return from_bits(0x7fffffff); }
NUMGATE_ELEMENTARY float infinity() { return from_bits(0x7f800000); }
NUMGATE_ELEMENTARY float magnitude(float x) { return __builtin_fabsf(x); }
NUMGATE_ELEMENTARY float with_sign(float x, float sign) {
  return from_bits(bits(x) | (bits(sign) & 0x80000000));
}
// NaN passes.
NUMGATE_ELEMENTARY float clamp(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}
// The greater of the two; NaN passes.
NUMGATE_ELEMENTARY float at_least(float low, float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(low));
  return y;
#else
  return x < low ? low : x;
#endif
}
// The lesser of the two; NaN passes.
NUMGATE_ELEMENTARY float at_most(float high, float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(high));
  return y;
#else
  return x > high ? high : x;
#endif
}
// To the nearest integer, ties to even, for |x| < 2^22.
NUMGATE_ELEMENTARY float nearest(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// 2^n, -149 <= n <= 127.
NUMGATE_ELEMENTARY float power_of_two(int n) {
  return from_bits(n < -126 ? 1u << (n + 149) : static_cast<uint32_t>(n + 127) << 23);
}

// 2^n e^(r + low), |r| <= ln2 / 2, low below an ulp of r, n <= 128. One rounding at the end, also
// where the result is subnormal: below n = -149 the excess moves from n to r, where all that
// matters is whether e^r is above 1/2.
NUMGATE_ELEMENTARY float scaled_exp(float r, float low, int n) {
  // (e^r - 1 - r) / r^2, degree 4 on |r| < 0.3467.
  float q = 0x1.694cd2p-10f;
  q = fmaf(q, r, 0x1.123988p-7f);
  q = fmaf(q, r, 0x1.555a26p-5f);
  q = fmaf(q, r, 0x1.555492p-3f);
  q = fmaf(q, r, 0x1.fffffap-2f);
  const float tail = fmaf(fmaf(q, r, low), r, low);
  // The head, a multiple of 2^-24, times 2^n must be exact; where it would not be the head is 1.
  const float head = n < -125 ? 1.0f : 1.0f + r;
  const float scale = power_of_two(n > 0 ? n - 1 : n);
  const float y = fmaf((r - (head - 1.0f)) + tail, scale, head * scale);
  return n > 0 ? y + y : y;
}

// 2^k e^x for -104.8 <= x + k ln2 <= 89; the caller clamps.
NUMGATE_ELEMENTARY float scaled_exp_of(float x, int k) {
  float n = nearest(x * 0x1.715476p0f);
  n = n < -149.0f - k ? -149.0f - k : n;
  const float head = fmaf(n, -0x1.62e430p-1f, x);
  const float r = fmaf(n, 0x1.05c610p-29f, head);
  const float low = fmaf(n, 0x1.05c610p-29f, head - r);
  return scaled_exp(r, low, static_cast<int>(n) + k);
}

// y 2^n where that is a normal number or n = -127, which stands for zero; n is in the low bits of
// shifted = n + 1.5 2^23. A product, so that NaN stays NaN.
NUMGATE_ELEMENTARY float scale_normal(float y, float shifted) {
  return y * from_bits((bits(shifted) << 23) + 0x3f800000);
}

// 2^x whatever x is.
NUMGATE_ELEMENTARY float exp2_of_any(float x) {
  if (x != x) return nan();
  x = clamp(x, -151.0f, 128.0f);
  float n = nearest(x);
  n = n < -149.0f ? -149.0f : n;
  const float f = x - n;
  const float r = f * 0x1.62e430p-1f;
  const float low = fmaf(f, -0x1.05c610p-29f, fmaf(f, 0x1.62e430p-1f, -r));
  return scaled_exp(r, low, static_cast<int>(n));
}
NUMGATE_ELEMENTARY float exp_of_any(float x) {
  if (x != x) return nan();
  return scaled_exp_of(clamp(x, -104.6f, 89.0f), 0);
}
NUMGATE_ELEMENTARY_RARE float call_exp2_of_any(float x) { return exp2_of_any(x); }
NUMGATE_ELEMENTARY_RARE float call_exp_of_any(float x) { return exp_of_any(x); }

}  // namespace detail

// 1 / d to nearest where d and 1 / d are normal numbers; of NaN any NaN. On the GPU one Newton step
// on the hardware's seed, without the branch of a division, gives the same for all such d. On it
// rest sigmoid, silu and the kernels' inverse decays.
NUMGATE_ELEMENTARY float refined_reciprocal(float d) {
  const float seed = rcp_approx(d);
  return fmaf(fmaf(-d, seed, 1.0f), seed, seed);
}
NUMGATE_ELEMENTARY float reciprocal(float d) {
#if defined(__CUDA_ARCH__)
  return refined_reciprocal(d);
#else
  return 1.0f / d;
#endif
}
NUMGATE_ELEMENTARY float normal_reciprocal(float d) {
  const float a = detail::magnitude(d);
  return a >= 0x1p-126f && a <= 0x1p126f ? reciprocal(d) : 0.0f;
}

namespace detail {

// log(1 + t) - t for -1/3 <= t <= 1/3, degree 10.
NUMGATE_ELEMENTARY float log1p_tail(float t) {
  float q = -0x1.080c9ep-3f;
  q = fmaf(q, t, 0x1.1e73a0p-3f);
  q = fmaf(q, t, -0x1.f30e36p-4f);
  q = fmaf(q, t, 0x1.1ed424p-3f);
  q = fmaf(q, t, -0x1.559de4p-3f);
  q = fmaf(q, t, 0x1.99d05ep-3f);
  q = fmaf(q, t, -0x1.fffefep-3f);
  q = fmaf(q, t, 0x1.555506p-2f);
  const float s = t * t;
  const float s_low = fmaf(t, t, -s);
  return fmaf(-0.5f, s, fmaf(-0.5f, s_low, s * t * q));
}

// (x + x_low) / (1 + e), 0 <= e <= 1; the residual makes the roundings of 1 + e and 1 / d good.
NUMGATE_ELEMENTARY float over_one_plus(float x, float x_low, float e) {
  const float d = 1.0f + e;
  const float d_low = e - (d - 1.0f);
  const float r = reciprocal(d);
  const float q = x * r;
  return fmaf(fmaf(-q, d, x) + fmaf(-q, d_low, x_low), r, q);
}

// The exponent e for which 2/3 <= m 2^-e < 4/3, times 2^23.
NUMGATE_ELEMENTARY uint32_t exponent_bits(float m) { return (bits(m) - 0x3f2aaaab) & 0xff800000; }

// 2^x where -127 <= x < 126, zero below -126.5, and anything elsewhere: degree 6 on |f| <= 1/2.
NUMGATE_ELEMENTARY float exp2_inside(float x) {
  const float shifted = x + 0x1.8p23f;
  const float f = x - (shifted - 0x1.8p23f);
  float q = 0x1.408fa4p-13f;
  q = fmaf(q, f, 0x1.5f037ap-10f);
  q = fmaf(q, f, 0x1.3b2f2ap-7f);
  q = fmaf(q, f, 0x1.c6af8ap-5f);
  q = fmaf(q, f, 0x1.ebfbdap-3f);
  q = fmaf(q, f, 0x1.62e430p-1f);
  return scale_normal(fmaf(q, f, 1.0f), shifted);
}

}  // namespace detail

// Kernels spend their time here: where the result is a normal number, a short path.
NUMGATE_ELEMENTARY float exp2(float x) {
  return detail::magnitude(x) < 125.5f ? detail::exp2_inside(x) : detail::call_exp2_of_any(x);
}
// The same where a call, on the GPU, would cost the registers that it clears.
NUMGATE_ELEMENTARY float exp2_without_call(float x) {
  return detail::magnitude(x) < 125.5f ? detail::exp2_inside(x) : detail::exp2_of_any(x);
}

// 2^x of a decay that a bounded gate keeps normal, -126 <= x < 126; of NaN any NaN.
NUMGATE_ELEMENTARY float exp2_normal(float x) { return detail::exp2_inside(x); }

// 2^x of a decay, x < 126: zero below 2^-126.5, where a product with it no longer counts; of NaN
// any NaN.
NUMGATE_ELEMENTARY float exp2_flushed(float x) {
  return detail::exp2_inside(detail::at_least(-127.0f, x));
}

namespace detail {

// 2^power e^x where that is a normal number: degree 6 on |r| < 0.3467.
template <int power>
NUMGATE_ELEMENTARY float exp_inside(float x) {
  constexpr float kShift = 0x1.8p23f + power;
  const float shifted = fmaf(x, 0x1.715476p0f, kShift);
  const float n = shifted - kShift;
  const float r = fmaf(n, 0x1.05c610p-29f, fmaf(n, -0x1.62e430p-1f, x));
  float q = 0x1.694cd2p-10f;
  q = fmaf(q, r, 0x1.123988p-7f);
  q = fmaf(q, r, 0x1.555a26p-5f);
  q = fmaf(q, r, 0x1.555492p-3f);
  q = fmaf(q, r, 0x1.fffffap-2f);
  return scale_normal(1.0f + fmaf(q, r * r, r), shifted);
}

}  // namespace detail

NUMGATE_ELEMENTARY float exp(float x) {
  return detail::magnitude(x) < 87.0f ? detail::exp_inside<0>(x) : detail::call_exp_of_any(x);
}
NUMGATE_ELEMENTARY float exp_without_call(float x) {
  return detail::magnitude(x) < 87.0f ? detail::exp_inside<0>(x) : detail::exp_of_any(x);
}

NUMGATE_ELEMENTARY float log2(float x) {
  if (x == 0.0f) return -detail::infinity();
  if (!(x > 0.0f)) return detail::nan();
  if (x == detail::infinity()) return x;
  const bool subnormal = x < 0x1p-126f;
  const uint32_t m = detail::bits(subnormal ? x * 0x1p24f : x);
  const uint32_t exponent = detail::exponent_bits(detail::from_bits(m));
  const float e = static_cast<float>(static_cast<int32_t>(exponent) >> 23) - (subnormal ? 24 : 0);
  const float t = detail::from_bits(m - exponent) - 1.0f;
  const float h = t * 0x1.715476p0f;
  float low = fmaf(t, 0x1.4ae0c0p-26f, fmaf(t, 0x1.715476p0f, -h));
  low = fmaf(detail::log1p_tail(t), 0x1.715476p0f, low);
  const float head = e + h;
  return head + ((h - (head - e)) + low);
}

NUMGATE_ELEMENTARY float log1p(float x) {
  if (x == -1.0f) return -detail::infinity();
  if (!(x > -1.0f)) return detail::nan();
  if (x == 0.0f || x == detail::infinity()) return x;
  // 1 + x = 2^e (1 + t + t_low)
  const uint32_t exponent = detail::exponent_bits(1.0f + x);
  const int e = static_cast<int32_t>(exponent) >> 23;
  const float s = detail::from_bits(detail::bits(x) - exponent);
  const float a = detail::power_of_two(-e) - 1.0f;
  const float t = a + s;
  const float t_low = (a - t) + s;
  // ln2 = 0x1.62e4p-1 + 0x1.7f7d1cp-20; e times the first is exact.
  const float h = static_cast<float>(e) * 0x1.62e4p-1f;
  const float low = fmaf(static_cast<float>(e), 0x1.7f7d1cp-20f, fmaf(-t, t_low, t_low));
  const float head = h + t;
  return head + ((t - (head - h)) + (low + detail::log1p_tail(t)));
}

// 1 / (1 + e^-x) as 2^-64 / (2^-64 + 2^-64 e^-x), without branches, for the gates' sake: only the
// last product meets subnormals.
NUMGATE_ELEMENTARY float sigmoid(float x) {
  const float e = detail::exp_inside<-64>(-detail::at_most(43.0f, detail::at_least(-104.0f, x)));
  const float y = reciprocal(0x1p-64f + e) * 0x1p-64f;
#if defined(__CUDA_ARCH__)
  return y;  // NVIDIA arithmetic has but one NaN
#else
  return x != x ? detail::nan() : y;
#endif
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
NUMGATE_ELEMENTARY float softplus(float x) {
  if (x != x) return detail::nan();
  const float y = elementary::log1p(elementary::exp(-detail::magnitude(x)));
  return x > 0.0f ? x + y : y;
}

// x sigmoid(x). For x < 0 the numerator carries 2^64, since e^x may be subnormal where x e^x isn't.
NUMGATE_ELEMENTARY float silu(float x) {
  if (x != x) return detail::nan();
  if (x == detail::infinity()) return x;
  const float z = detail::clamp(-detail::magnitude(x), -120.0f, 0.0f);
  const float e = detail::scaled_exp_of(z, 64);
  const bool negative = x < 0.0f;
  const float top = negative ? z * e : x;
  const float y = detail::over_one_plus(top, negative ? fmaf(z, e, -top) : 0.0f, e * 0x1p-64f);
  return detail::with_sign(negative ? y * 0x1p-64f : y, x);
}

// One Newton step on 1 / sqrt(x), whose two roundings the residuals make good.
NUMGATE_ELEMENTARY float rsqrt(float x) {
  if (x == 0.0f) return 1.0f / x;
  if (!(x > 0.0f)) return detail::nan();
  if (x == detail::infinity()) return 0.0f;
  const bool small = x < 0x1p-100f;  // keeps the residual of the square root above 2^-149
  x = small ? x * 0x1p32f : x;
  const float s = sqrtf(x);
  const float r = 1.0f / s;
  const float error = fmaf(0.5f * r * r, fmaf(s, s, -x), fmaf(-r, s, 1.0f));
  const float y = fmaf(r, error, r);
  return small ? y * 0x1p16f : y;
}

NUMGATE_ELEMENTARY float tanh(float x) {
  if (x != x) return detail::nan();
  const float a = detail::magnitude(x);
  if (a < 0.55f) {
    // (tanh x - x) / x^3 in x^2, degree 4 on |x| < 0.55.
    const float s = a * a;
    float q = -0x1.9a79bap-8f;
    q = fmaf(q, s, 0x1.5918a4p-6f);
    q = fmaf(q, s, -0x1.b92358p-5f);
    q = fmaf(q, s, 0x1.110d00p-3f);
    q = fmaf(q, s, -0x1.55554ap-2f);
    return detail::with_sign(fmaf(q * s, a, a), x);
  }
  const float e = detail::scaled_exp_of(2.0f * (a > 10.0f ? 10.0f : a), 0);
  return detail::with_sign(1.0f - 2.0f / (e + 1.0f), x);
}

NUMGATE_ELEMENTARY float erf(float x) {
  if (x != x) return detail::nan();
  const float a = detail::magnitude(x);
  if (a < 0.93f) {
    // erf x / x - 1 in x^2, degree 6 on |x| < 0.93.
    const float s = x * x;
    float q = 0x1.5bd58cp-14f;
    q = fmaf(q, s, -0x1.a9e392p-11f);
    q = fmaf(q, s, 0x1.54bb3ap-8f);
    q = fmaf(q, s, -0x1.b80cdap-6f);
    q = fmaf(q, s, 0x1.ce2decp-4f);
    q = fmaf(q, s, -0x1.812742p-2f);
    q = fmaf(q, s, 0x1.06eba8p-3f);
    return fmaf(q, x, x);
  }
  // log(erfc a) / a, degree 6 on 0.92 < a < 4, fitted with weight erfc a.
  const float z = a > 4.0f ? 4.0f : a;
  float q = -0x1.82a44ap-17f;
  q = fmaf(q, z, 0x1.557c6cp-12f);
  q = fmaf(q, z, -0x1.deead2p-9f);
  q = fmaf(q, z, 0x1.85b3eep-6f);
  q = fmaf(q, z, -0x1.b3414ep-4f);
  q = fmaf(q, z, -0x1.453082p-1f);
  q = fmaf(q, z, -0x1.20ef5ap0f);
  return detail::with_sign(1.0f - detail::scaled_exp_of(q * z, 0), x);
}

}  // namespace numgate::elementary
