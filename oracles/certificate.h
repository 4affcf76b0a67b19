// How wrong can the truth be? A running norm bound beside the KDA recurrence in double-double.
//
// With S~ = Diag(alpha) S and S' = (I - beta k k^T) S~ + beta k v^T, an error E of S becomes (I -
// beta k k^T) Diag(alpha) E plus what the token's own rounding adds, and ||I - beta k k^T|| =
// max(1, |1 - beta |k|^2|), which is 1 for |k| <= 1 and beta in [0, 1]. So in Frobenius norms
//   e' <= F max(alpha) e + c ((1 + beta |k|^2) max(1, max alpha) n + beta |k| |v|),
//   n' <= F max(alpha) n + beta |k| |v|,     |error of o| <= |q| (e' + c n'),
// where n bounds the norm of S. c = 2^-95 covers, relative to the terms they enter:
//   - the operands: alpha to 2^-96 (prefill: g to 6.4 * 2^-100 absolute, and exp), khat, qhat and
//   beta to 2^-98;
//   - the step: two sums of K products, (K + 8) u^2 each, products and sums of 8 u^2, u = 2^-53; K
//   <= 256.
// Underflow adds at most (K + 8) 2^-1072 of absolute error a column and token, 2^-1056 in all.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "oracles/scalars/host_device.h"

namespace numgate {

inline constexpr double kLocalError = 0x1p-95;
// Scalar stages: |error| relative to the row's largest |y| (kda.conv: to its largest sum |w x|). A
// gate's argument may be 745 before exp underflows, and multiplies the 2^-100 of exp.
inline constexpr double kScalarStageError = 0x1p-97;
inline constexpr double kGateError = 0x1p-88;
inline constexpr double kSmallestRadius = 0x1p-1056;

// Euclidean norms of one token's operands (alpha: the largest element).
struct TokenNorms {
  double alpha = 0, khat = 0, qhat = 0, beta = 0, v = 0;
};

// Bounds for the state of one head, advanced token by token.
class NormBound {
 public:
  // From an exact state of this norm.
  NUMGATE_HOST_DEVICE explicit NormBound(double state_norm = 0)
      : state_(state_norm), largest_(state_norm) {}

  NUMGATE_HOST_DEVICE void step(const TokenNorms& t) {
    const double write = std::abs(t.beta) * t.khat, square = write * t.khat;
    const double decay =
        std::max(1.0, std::abs(1.0 - t.beta * t.khat * t.khat)) * t.alpha * (1.0 + 0x1p-50);
    const double local = (1.0 + square) * std::max(1.0, t.alpha) * state_ + write * t.v;
    error_ = decay * error_ + kLocalError * local + 0x1p-1056;
    state_ = decay * state_ + write * t.v;
    largest_ = std::max(largest_, state_);
  }
  // Replaces the bound on the state's norm by a computed norm, where that is smaller.
  NUMGATE_HOST_DEVICE void tighten(double computed_norm) {
    state_ = std::min(state_, computed_norm * kSlack + error_);
  }

  NUMGATE_HOST_DEVICE double state() const { return state_; }
  // The largest bound of the state's norm so far.
  NUMGATE_HOST_DEVICE double largest() const { return largest_; }
  NUMGATE_HOST_DEVICE double state_radius() const { return error_ * kSlack + kSmallestRadius; }
  // Of each element of o, after the step.
  NUMGATE_HOST_DEVICE double output_radius(const TokenNorms& t) const {
    return t.qhat * (error_ + kLocalError * state_) * kSlack + kSmallestRadius;
  }

 private:
  // The bounds are themselves computed in double: 2^24 steps of a few rounding errors stay within
  // 2^-20.
  static constexpr double kSlack = 1.0 + 0x1p-20;
  double state_ = 0, error_ = 0, largest_ = 0;
};
// A state's norm is computed, and its bound tightened, after so many tokens of a sequence.
inline constexpr std::int64_t kTightenTokens = 32;

// Radius of S' = M S + B from that of S; M_spectral bounds the 2-norm of M, the other norms are
// Frobenius norms.
double merge_radius(double M_spectral, double M_norm, double B_norm, double state_norm,
                    double state_radius);

}  // namespace numgate
