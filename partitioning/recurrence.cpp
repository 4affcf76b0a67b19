#include "partitioning/recurrence.h"

#include "core/errors.h"
#include "partitioning/communicator.h"
#include "partitioning/pieces.h"

namespace numgate {
namespace {

using kernels::MergeArgs;
using kernels::Ring;

// Pieces one after the other, the state carried in the `handoff` format.
void run_pieces(Recurrence& r) {
  const auto pieces = segments(r.device().c.schedule, r.device().c.shape.T);
  const float* from = r.state0();
  for (const Segment& piece : pieces) {
    r.prefill(piece, from, r.state(), piece.end < pieces.back().end);
    from = r.state();
  }
}

// The state leaves the device as a snapshot and comes back into a fresh buffer.
void run_resume(Recurrence& r) {
  DeviceCase& device = r.device();
  const auto pieces = segments(device.c.schedule, device.c.shape.T);
  std::vector<std::byte> snapshot(r.state_bytes());
  {
    DeviceBuffer before(device.backend, r.state_bytes(), device.options.poison);
    r.prefill(pieces[0], r.state0(), before.at<float>(), true);
    device.backend.synchronize();
    before.download(snapshot.data());
  }
  DeviceBuffer& restored = device.scratch(r.state_bytes());
  restored.upload(snapshot.data());
  r.prefill(pieces[1], restored.at<float>(), r.state(), false);
}

void run_decode(Recurrence& r) {
  const auto pieces = segments(r.device().c.schedule, r.device().c.shape.T);
  r.prefill(pieces[0], r.state0(), r.state(), true);
  for (std::int64_t t = pieces[1].begin; t < pieces[1].end; ++t) r.decode(t, r.state());
}

void run_replay(Recurrence& r) {
  DeviceCase& device = r.device();
  const Shape& s = device.c.shape;
  const auto capacity = static_cast<int>(device.c.schedule.parameter);
  const auto records = static_cast<std::size_t>(capacity * s.HV);
  const Ring ring{capacity, device.scratch(records * s.K * sizeof(float)).at<float>(),
                  device.scratch(records * s.K * sizeof(float)).at<float>(),
                  device.scratch(records * s.V * sizeof(float)).at<float>()};
  const auto pieces = segments(device.c.schedule, s.T);
  r.prefill(pieces[0], r.state0(), r.state(), true);
  int count = 0;
  for (std::int64_t t = pieces[1].begin; t < pieces[1].end; ++t) {
    r.replay(t, r.state(), ring, count++);
    if (count == capacity || t + 1 == pieces[1].end) {
      device.backend.run(kernels::FlushArgs{static_cast<int>(s.HV), static_cast<int>(s.K),
                                            static_cast<int>(s.V), ring, count, r.state()},
                         device.plan());
      count = 0;
    }
  }
}

// PIPELINE 3.1: local summary from zero, all-gather, fold of the predecessors, local pass from
// there.
void run_context_parallel(Recurrence& shared) {
  DeviceCase& device = shared.device();
  const Shape& shape = device.c.shape;
  const auto shards = segments(device.c.schedule, shape.T);
  const auto ranks = static_cast<int>(shards.size());
  const std::size_t m_bytes = shared.map_bytes(), b_bytes = shared.state_bytes();
  // Before the ranks start: allocation of what they write in common.
  auto* fold = static_cast<float*>(
      device.output("fold", Dtype::f32, tensor_shape({"fold", "N HV K V", "f32"}, shape)));
  shared.state();

  run_in_process(ranks, device.backend, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const Segment shard = shards[static_cast<std::size_t>(rank)];
    Recurrence r(device);
    float* const M = device.scratch(m_bytes).at<float>();
    float* const B = device.scratch(b_bytes).at<float>();
    kernels::ChunkOperands w;
    if (shard.size() > 0) {
      w = r.prepare(shard);
      r.map(shard, w, M);
      r.pass(shard, w, nullptr, B, true, false);
    } else {  // the identity
      std::vector<float> identity(m_bytes / sizeof(float), 0.0f);
      for (std::int64_t at = 0; at < static_cast<std::int64_t>(identity.size());
           at += shape.K * shape.K)
        for (std::int64_t k = 0; k < shape.K; ++k)
          identity[static_cast<std::size_t>(at + k * shape.K + k)] = 1.0f;
      device.backend.copy_in(M, identity.data(), m_bytes);
      device.backend.fill(B, 0, b_bytes);
    }
    float* const all_M = device.scratch(m_bytes * ranks).at<float>();
    float* const all_B = device.scratch(b_bytes * ranks).at<float>();
    communicator.all_gather(M, all_M, m_bytes);
    communicator.all_gather(B, all_B, b_bytes);

    const auto merge = [&](int summaries, float* to) {
      device.backend.run(
          MergeArgs{static_cast<int>(shape.HV), static_cast<int>(shape.K),
                    static_cast<int>(shape.V), summaries, all_M, all_B, r.state0(), to},
          device.plan());
    };
    if (shard.size() > 0) {
      const bool last = shard.end == shape.T;
      float* const from = device.scratch(b_bytes).at<float>();
      merge(rank, from);
      float* const to = last ? r.state() : device.scratch(b_bytes).at<float>();
      r.pass(shard, w, from, to, false);
    }
    if (rank == ranks - 1) merge(ranks, fold);
  });
}

}  // namespace

void run_recurrence(DeviceCase& device) {
  Recurrence r(device);
  switch (device.c.schedule.kind) {
    case ScheduleKind::decode:
      return run_decode(r);
    case ScheduleKind::replay:
      return run_replay(r);
    case ScheduleKind::cp:
      return run_context_parallel(r);
    case ScheduleKind::resume:
      return run_resume(r);
    case ScheduleKind::varlen:
      return r.prefill_packed(device.c.shape.sequence_segments());
    default:
      break;
  }
  if (device.c.shape.cuts.empty()) return run_pieces(r);
  // Packed sequences run one by one: the control of varlen.
  const auto sequences = device.c.shape.sequence_segments();
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    const auto at = static_cast<std::int64_t>(n);
    r.prefill(sequences[n], r.state0(at), r.state(at), false);
  }
}

void run_summary(DeviceCase& device) {
  Recurrence r(device);
  const Shape& s = device.c.shape;
  const Segment all{0, s.T};
  const kernels::ChunkOperands w = r.prepare(all);
  r.map(all, w, static_cast<float*>(device.output("M", Dtype::f32, {s.HV, s.K, s.K})));
  r.pass(all, w, nullptr, static_cast<float*>(device.output("B", Dtype::f32, {s.HV, s.K, s.V})),
         true, false);
}

}  // namespace numgate
