// Cases: stage/schedule/plan/family/shape/seed, the id that a replay needs and nothing more.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "core/schedule.h"
#include "core/stage.h"

namespace numgate {

enum class Gate : std::uint8_t { bounded, plain };  // bounded: lower bound -5
enum class State0 : std::uint8_t { zero, random };

struct Shape {
  std::int64_t T = 0;           // tokens (kda.merge: summaries)
  std::int64_t H = 1, HV = 1;   // key heads; value heads, a multiple of H
  std::int64_t K = 64, V = 64;  // key and value width of a head
  Dtype in = Dtype::bf16;       // bf16 or f32
  Gate gate = Gate::bounded;
  State0 state0 = State0::zero;
  std::vector<std::int64_t> cuts;  // interior boundaries of packed sequences, increasing

  std::int64_t sequences() const { return static_cast<std::int64_t>(cuts.size()) + 1; }
  std::int64_t channels() const { return 2 * H * K + HV * V; }  // of the short convolution
  // `T=192,H=1,HV=1,K=64,V=64,in=bf16,gate=bounded,state0=zero,cuts=none`; cuts are joined by `+`.
  std::string text() const;
  // The packed sequences, one without cuts.
  std::vector<Segment> sequence_segments() const;
};

struct Case {
  std::string stage;
  Schedule schedule;
  PlanPair plan;
  std::string family;
  Shape shape;
  std::uint64_t seed = 0;

  std::string id() const;     // every default printed
  std::string group() const;  // `stage/family/shape/seed`: what shares inputs and truth
};

// The `key=value,...` part. Missing keys take their defaults: H=1, HV=H, K=64, V=K, in=bf16,
// gate=bounded, state0=zero, cuts=none. Raises UsageError: unknown or repeated keys, T outside [1,
// 2^24], heads outside [1, 1024], HV not a multiple of H, (K, V) outside {(64,64), (128,128),
// (64,128)}, cuts not increasing.
Shape parse_shape(std::string_view text);

// A full id. Raises UsageError naming the part that is wrong. The family's name is checked by
// whoever owns the families, not here. A `varlen` case without cuts gets {T/5, T/5+1, T/2} where
// these are proper.
Case parse_case(std::string_view id);

// Concrete shape of one of the stage's tensors. A leading N (sequences) is dropped when it is 1.
std::vector<std::int64_t> tensor_shape(const TensorSpec& spec, const Shape& shape);
Dtype tensor_dtype(const TensorSpec& spec, const Shape& shape);

// Whether a glob is a full id in the sense of parse_case (six parts and no `*` or `?`).
bool is_full_id(std::string_view text);
// `*` matches anything, `/` included; `?` one character.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace numgate
