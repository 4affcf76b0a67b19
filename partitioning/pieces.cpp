#include "partitioning/pieces.h"

#include <algorithm>

namespace numgate {

using namespace kernels;

Recurrence::Recurrence(DeviceCase& device) : device_(device), shape_(device.c.shape) {}

std::size_t Recurrence::state_elements() const {
  return static_cast<std::size_t>(shape_.HV * shape_.K * shape_.V);
}
std::size_t Recurrence::map_bytes() const {
  return static_cast<std::size_t>(shape_.HV * shape_.K * shape_.K) * sizeof(float);
}

KdaInputs Recurrence::inputs(std::int64_t token) const {
  const auto at = [&](const char* name, std::int64_t per_token) {
    return device_.input(name, token * per_token);
  };
  const std::int64_t key = shape_.H * shape_.K, gate = shape_.HV * shape_.K,
                     value = shape_.HV * shape_.V;
  KdaInputs in;
  in.prepared = !device_.has("q");
  in.v = at("v", value);
  if (in.prepared) {
    in.k = at("khat", key);
    in.q = device_.has("qhat") ? at("qhat", key) : in.k;  // kda.summary reads no output
    in.gate = at("g", gate), in.beta = at("beta", shape_.HV);
  } else {
    in.q = at("q", key), in.k = at("k", key), in.gate = at("g_raw", gate),
    in.beta = at("beta_raw", shape_.HV);
    in.A_log = static_cast<const float*>(device_.input("A_log"));
    in.dt_bias = static_cast<const float*>(device_.input("dt_bias"));
  }
  return in;
}

const float* Recurrence::state0(std::int64_t n) const {
  if (!device_.has("state0") || shape_.state0 == State0::zero) return nullptr;
  return static_cast<const float*>(device_.input("state0")) +
         n * static_cast<std::int64_t>(state_elements());
}

float* Recurrence::state(std::int64_t n) {
  const auto shape = tensor_shape({"state", "N HV K V", "f32"}, shape_);
  return static_cast<float*>(device_.output("state", Dtype::f32, shape)) +
         n * static_cast<std::int64_t>(state_elements());
}

float* Recurrence::o(std::int64_t token) {
  const auto shape = tensor_shape({"o", "T HV V", "f32"}, shape_);
  return static_cast<float*>(device_.output("o", Dtype::f32, shape)) + token * shape_.HV * shape_.V;
}

void* Recurrence::o_cast(std::int64_t token) {
  const auto shape = tensor_shape({"o", "T HV V", "f32"}, shape_);
  const Format format = output_format(device_.plan()[Site::output], shape_.in);
  // fp16 travels as 16-bit words.
  const Dtype dtype = store_bytes(format) == 2 ? Dtype::bf16 : Dtype::f32;
  return static_cast<std::byte*>(device_.output("o_cast", dtype, shape)) +
         static_cast<std::size_t>(token * shape_.HV * shape_.V) * size_of(dtype);
}

ChunkOperands Recurrence::workspace(std::int64_t chunks) {
  const Plan& plan = device_.plan();
  const auto rows = static_cast<std::size_t>(chunks * shape_.HV * kChunk);
  const auto take = [&](Site s, std::int64_t width) {
    return device_.scratch(rows * static_cast<std::size_t>(width) * store_bytes(plan[s])).at();
  };
  ChunkOperands c;
  c.u = take(Site::u_store, shape_.V);
  c.w = take(Site::w_store, shape_.K);
  c.kg = take(Site::kg_store, shape_.K);
  c.qg = take(Site::qg_store, shape_.K);
  c.aqk = take(Site::aqk_store, kChunk);
  c.gamma = device_.scratch(static_cast<std::size_t>(chunks * shape_.HV * shape_.K) * sizeof(float))
                .at<float>();
  return c;
}

ChunkOperands Recurrence::prepare(Segment piece) {
  const KdaDims d = device_.dims(piece.size());
  const ChunkOperands w = workspace(d.chunks());
  device_.backend.run(PrepareArgs{d, {}, inputs(piece.begin), w}, device_.plan());
  return w;
}

void Recurrence::pass(Segment piece, const ChunkOperands& w, const float* from, float* to,
                      bool hand_off, bool writes_o) {
  StatePassArgs a{device_.dims(piece.size()), {}, w, from, to, nullptr, nullptr, hand_off};
  if (writes_o) a.o = o(piece.begin), a.o_cast = o_cast(piece.begin);
  device_.backend.run(a, device_.plan());
}

void Recurrence::prefill(Segment piece, const float* from, float* to, bool hand_off) {
  const std::size_t kept = device_.scratch_count();
  for (std::int64_t t = piece.begin; t < piece.end; t += kSlab) {
    const Segment slab{t, std::min(t + kSlab, piece.end)};
    pass(slab, prepare(slab), from, to, hand_off && slab.end == piece.end);
    from = to;
    device_.backend.synchronize();
    device_.release_scratch(kept);
  }
}

void Recurrence::prefill_packed(const std::vector<Segment>& sequences) {
  std::vector<std::int64_t> begin, end, first{0};
  for (const Segment& s : sequences) {
    for (std::int64_t t = s.begin; t < s.end; t += kChunk)
      begin.push_back(t), end.push_back(std::min(t + kChunk, s.end));
    first.push_back(static_cast<std::int64_t>(begin.size()));
  }
  const Packing packing{static_cast<int>(sequences.size()), static_cast<std::int64_t>(begin.size()),
                        device_.constant(begin), device_.constant(end), device_.constant(first)};
  const ChunkOperands w = workspace(packing.chunks);
  device_.backend.run(PrepareArgs{device_.dims(shape_.T), packing, inputs(0), w}, device_.plan());
  device_.backend.run(
      StatePassArgs{device_.dims(shape_.T), packing, w, state0(), state(), o(0), o_cast(0), false},
      device_.plan());
}

void Recurrence::map(Segment piece, const ChunkOperands& w, float* M) {
  device_.backend.run(SegmentMapArgs{device_.dims(piece.size()), w, nullptr, M, true},
                      device_.plan());
}

void Recurrence::decode(std::int64_t token, float* state) {
  device_.backend.run(DecodeArgs{device_.dims(1), inputs(token), state, o(token), o_cast(token)},
                      device_.plan());
}

void Recurrence::replay(std::int64_t token, const float* checkpoint, const Ring& ring, int count) {
  device_.backend.run(
      ReplayArgs{device_.dims(1), inputs(token), ring, count, checkpoint, o(token), o_cast(token)},
      device_.plan());
}

}  // namespace numgate
