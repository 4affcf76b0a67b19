#include "partitioning/convolution.h"

#include <algorithm>

#include "partitioning/communicator.h"

namespace numgate {
namespace {

constexpr std::int64_t kTaps = 3;  // raw inputs that the window keeps

class Convolution {
 public:
  explicit Convolution(DeviceCase& device) : device_(device), channels_(device.c.shape.channels()) {
    state_shape_ = tensor_shape({"conv_state", "N C 3", "in"}, device.c.shape);
    y();
    state(0);
  }

  std::size_t state_bytes() const {
    return static_cast<std::size_t>(channels_ * kTaps) * size_of(device_.c.shape.in);
  }
  const void* state0(std::int64_t n) const {
    return device_.input("conv_state0", n * channels_ * kTaps);
  }
  void* state(std::int64_t n) {
    return static_cast<std::byte*>(device_.output("conv_state", device_.c.shape.in, state_shape_)) +
           static_cast<std::size_t>(n) * state_bytes();
  }
  float* y() {
    return static_cast<float*>(device_.output("y", Dtype::f32, {device_.c.shape.T, channels_}));
  }

  void run(Segment piece, const void* from, void* to) {
    device_.backend.run(kernels::ConvArgs{piece.size(), channels_, device_.c.shape.in,
                                          device_.input("x", piece.begin * channels_),
                                          static_cast<const float*>(device_.input("w")), from,
                                          y() + piece.begin * channels_, to},
                        device_.plan());
  }

 private:
  DeviceCase& device_;
  std::int64_t channels_;
  std::vector<std::int64_t> state_shape_;
};

void run_pieces(DeviceCase& device, Convolution& conv) {
  const void* from = conv.state0(0);
  for (const Segment& piece : segments(device.c.schedule, device.c.shape.T)) {
    void* const to = device.scratch(conv.state_bytes()).at();
    conv.run(piece, from, to);
    from = to;
  }
  device.backend.copy(conv.state(0), from, conv.state_bytes());
}

// Every rank publishes its last three raw inputs, with as many of them as it has; a rank's window
// takes the nearest three of its predecessors, and what is missing from the cached window.
void run_context_parallel(DeviceCase& device, Convolution& conv) {
  const Shape& shape = device.c.shape;
  const std::int64_t channels = shape.channels();
  const std::size_t row = static_cast<std::size_t>(channels) * size_of(shape.in);
  const auto shards = segments(device.c.schedule, shape.T);
  const int ranks = static_cast<int>(shards.size());
  run_in_process(ranks, device.backend, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const Segment shard = shards[rank];
    const std::int64_t own = std::min(shard.size(), kTaps);
    void* const sent = device.scratch(row * kTaps).at();
    device.backend.fill(sent, 0, row * kTaps);
    if (own > 0)
      device.backend.copy(sent, device.input("x", (shard.end - own) * channels),
                          row * static_cast<std::size_t>(own));
    DeviceBuffer& all = device.scratch(row * kTaps * static_cast<std::size_t>(ranks));
    communicator.all_gather(sent, all.at(), row * kTaps);
    if (shard.size() == 0) return;

    // On the host, [C, 3] with the oldest first: the layout of the kernel's window.
    const std::size_t element = size_of(shape.in);
    std::vector<std::byte> halos(all.size()), window(conv.state_bytes());
    all.download(halos.data());
    device.backend.copy_out(window.data(), conv.state0(0), window.size());
    const std::vector<std::byte> cached = window;
    std::int64_t filled = 0;  // newest first
    const auto put = [&](const std::byte* from, std::size_t from_stride) {
      for (std::int64_t c = 0; c < channels; ++c)
        std::memcpy(
            window.data() + static_cast<std::size_t>(c * kTaps + kTaps - 1 - filled) * element,
            from + static_cast<std::size_t>(c) * from_stride, element);
      ++filled;
    };
    for (std::size_t r = rank; r-- > 0 && filled < kTaps;)
      for (std::int64_t i = std::min(shards[r].size(), kTaps); i-- > 0 && filled < kTaps;)
        put(halos.data() + (r * kTaps + static_cast<std::size_t>(i)) * row, element);
    for (std::int64_t i = kTaps; i-- > 0 && filled < kTaps;)
      put(cached.data() + static_cast<std::size_t>(i) * element, kTaps * element);
    DeviceBuffer& from = device.scratch(conv.state_bytes());
    from.upload(window.data());
    conv.run(shard, from.at(),
             shard.end == shape.T ? conv.state(0) : device.scratch(conv.state_bytes()).at());
  });
}

}  // namespace

void run_convolution(DeviceCase& device) {
  Convolution conv(device);
  if (device.c.schedule.kind == ScheduleKind::cp) return run_context_parallel(device, conv);
  if (device.c.shape.cuts.empty()) return run_pieces(device, conv);
  const auto sequences = device.c.shape.sequence_segments();
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    const auto at = static_cast<std::int64_t>(n);
    conv.run(sequences[n], conv.state0(at), conv.state(at));
  }
}

}  // namespace numgate
