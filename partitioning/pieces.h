// The building blocks of the recurrence's schedules: one call of the kernels over a stretch of
// tokens.
#pragma once
#include <vector>

#include "partitioning/device_case.h"

namespace numgate {

// Tokens of a sequence whose chunk operands are in memory at a time. A multiple of the chunk, so
// cutting here changes no bit.
inline constexpr std::int64_t kSlab = 16384;

class Recurrence {
 public:
  explicit Recurrence(DeviceCase& device);

  // A state's bytes, and the address of sequence n's initial state (null for zero) and final state.
  std::size_t state_bytes() const { return state_elements() * sizeof(float); }
  const float* state0(std::int64_t n = 0) const;
  float* state(std::int64_t n = 0);

  // Tokens [piece.begin, piece.end): prefill from `from` (null: zero) into `to`; `from` may be
  // `to`.
  void prefill(Segment piece, const float* from, float* to, bool hand_off);
  // The same from operands made before.
  void pass(Segment piece, const kernels::ChunkOperands& w, const float* from, float* to,
            bool hand_off, bool writes_o = true);
  kernels::ChunkOperands prepare(Segment piece);
  // All packed sequences in one call.
  void prefill_packed(const std::vector<Segment>& sequences);
  // The piece's linear map, rounded to `handoff`.
  void map(Segment piece, const kernels::ChunkOperands& w, float* M);
  // One token, `state` in place.
  void decode(std::int64_t token, float* state);
  void replay(std::int64_t token, const float* checkpoint, const kernels::Ring& ring, int count);

  DeviceCase& device() { return device_; }
  std::size_t map_bytes() const;

 private:
  std::size_t state_elements() const;
  kernels::KdaInputs inputs(std::int64_t token) const;
  kernels::ChunkOperands workspace(std::int64_t chunks);
  float* o(std::int64_t token);
  void* o_cast(std::int64_t token);

  DeviceCase& device_;
  const Shape& shape_;
};

}  // namespace numgate
