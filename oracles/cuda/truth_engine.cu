// The CUDA engine of the truth: two slabs in flight, each prepared and bounded on one stream while
// the other walks on another.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/errors.h"
#include "oracles/cuda/truth_kernels.cuh"
#include "oracles/truth_engine.h"

namespace numgate {
namespace {

using namespace cuda;

constexpr int kSlots = 2;
constexpr std::int64_t kSlabRows = std::int64_t{1} << 17, kSlabTokens = 8192;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw OracleError(std::string("CUDA, ") + what + ": " + cudaGetErrorString(status));
}

// Memory of `count` elements: on the device, or on the host where copies can run beside kernels.
template <class T, bool kHost = false>
class Memory {
 public:
  explicit Memory(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T);
    check(kHost ? cudaMallocHost(&data_, bytes) : cudaMalloc(&data_, bytes), "allocation");
  }
  ~Memory() { kHost ? cudaFreeHost(data_) : cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

// What one slab needs on the device.
struct Slot {
  Memory<std::byte> raw;
  Memory<std::byte, true> staging;
  Memory<DD> alpha, khat, qhat, beta, state;
  Memory<double> v, hi, lo, squares, radius, largest, state_radius;
  Memory<TokenNorms> norms;
  Event upload_begin, upload_end, prepare_begin, prepare_end, walk_begin, walk_end, bound_begin,
      done;
  Segment tokens{};

  Slot(std::int64_t bytes, std::int64_t rows, std::int64_t HV, std::int64_t K, std::int64_t columns,
       bool query)
      : raw(bytes),
        staging(bytes),
        alpha(rows * K),
        khat(rows * K),
        qhat(query ? rows * K : 0),
        beta(rows),
        state(HV * columns * K),
        v(rows * columns),
        hi(query ? rows * columns : 0),
        lo(query ? rows * columns : 0),
        squares(rows / kTightenTokens * (columns / kWarpColumns)),
        radius(rows),
        largest(rows),
        state_radius(HV),
        norms(rows) {}
};

class CudaEngine final : public RecurrenceEngine {
 public:
  CudaEngine(const RecurrenceStage& stage, std::int64_t capacity)
      : stage_(stage),
        K_(stage.shape.K),
        HV_(stage.shape.HV),
        columns_(stage.columns),
        capacity_(capacity),
        rows_(capacity * HV_),
        A_log_(HV_),
        bias_(HV_ * K_),
        state0_(HV_ * columns_ * K_),
        bounds_(HV_),
        column_(capacity),
        // Keys, queries and gates of at most four bytes an element, beta, v, and their alignment.
        slots_{{raw_bytes(), rows_, HV_, K_, columns_, stage.query},
               {raw_bytes(), rows_, HV_, K_, columns_, stage.query}} {
    check(cudaMemcpyToSymbol(device_elementary_constants, &elementary_constants(),
                             sizeof(ElementaryConstants)),
          "constants");
    settle();
    begin_.record(prepare_);
  }
  ~CudaEngine() override { cudaDeviceSynchronize(); }

  std::int64_t slab_tokens() const override { return capacity_; }
  int depth() const override { return kSlots; }

  void start(const State0& state0) override {
    std::vector<DD> S(static_cast<std::size_t>(HV_ * columns_ * K_), DD(0.0));
    std::vector<NormBound> bounds;
    for (std::int64_t h = 0; h < HV_; ++h) {
      double square = 0;
      for (std::int64_t c = 0; state0 && c < columns_; ++c)
        for (std::int64_t d = 0; d < K_; ++d) {
          const double value = state0(h, d, c);
          S[static_cast<std::size_t>((h * columns_ + c) * K_ + d)] = DD(value);
          square += value * value;
        }
      bounds.emplace_back(std::sqrt(square) * (1.0 + 0x1p-30));
    }
    check(cudaMemcpy(state0_.get(), S.data(), S.size() * sizeof(DD), cudaMemcpyHostToDevice),
          "state");
    check(cudaMemcpy(bounds_.get(), bounds.data(), bounds.size() * sizeof(NormBound),
                     cudaMemcpyHostToDevice),
          "bounds");
    settle();
    before_ = state0_.get();
  }

  void push(const InputSlab& inputs, Segment tokens) override {
    Slot& slot = slots_[next_++ % kSlots];
    slot.tokens = tokens;
    const Inputs in = upload(slot, inputs);
    const Sizes sizes{
        stage_.shape.H, HV_,          columns_,     capacity_,
        stage_.raw,     stage_.query, stage_.value, stage_.shape.gate == Gate::bounded};
    const DeviceOperands operands{slot.alpha.get(), slot.khat.get(), slot.qhat.get(),
                                  slot.beta.get(),  slot.v.get(),    slot.norms.get()};
    const Walked walked{slot.hi.get(),     slot.lo.get(),      slot.squares.get(),
                        slot.radius.get(), slot.largest.get(), slot.state_radius.get()};
    const std::int64_t n = tokens.size();

    check(cudaStreamWaitEvent(prepare_, slot.upload_end), "wait");
    slot.prepare_begin.record(prepare_);
    const auto blocks =
        static_cast<unsigned>((n * HV_ * kWarp + kPrepareThreads - 1) / kPrepareThreads);
    (K_ == 64 ? prepare<64> : prepare<128>)<<<blocks, kPrepareThreads, 0, prepare_>>>(sizes, in,
                                                                                      operands, n);
    check(cudaGetLastError(), "prepare");
    slot.prepare_end.record(prepare_);

    check(cudaStreamWaitEvent(walk_, slot.prepare_end), "wait");
    slot.walk_begin.record(walk_);
    if (K_ == 64)
      launch_walk<64>(sizes, operands, walked, slot, n);
    else
      launch_walk<128>(sizes, operands, walked, slot, n);
    slot.walk_end.record(walk_);
    before_ = slot.state.get();

    check(cudaStreamWaitEvent(bound_, slot.walk_end), "wait");
    slot.bound_begin.record(bound_);
    bound<<<static_cast<unsigned>(HV_), kWarp, 0, bound_>>>(sizes, operands, walked, bounds_.get(),
                                                            n);
    check(cudaGetLastError(), "bound");
    slot.done.record(bound_);
  }

  Segment pop() override {
    popped_ = &slots_[popped_count_++ % kSlots];
    check(cudaEventSynchronize(popped_->done), "slab");
    const auto at = [&](const Event& e) {
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, e), "time");
      return 1e-3 * ms;
    };
    const auto span = [&](const Event& a, const Event& b) { return at(b) - at(a); };
    seconds_.upload += span(popped_->upload_begin, popped_->upload_end);
    seconds_.prepare += span(popped_->prepare_begin, popped_->prepare_end);
    seconds_.walk += span(popped_->walk_begin, popped_->walk_end);
    seconds_.bound += span(popped_->bound_begin, popped_->done);
    const double end = at(popped_->done);
    seconds_.truth += end - std::max(at(popped_->prepare_begin), busy_until_);
    busy_until_ = end;
    return popped_->tokens;
  }

  void outputs(double* hi, double* lo, double* radius) override {
    const std::int64_t rows = popped_->tokens.size() * HV_;
    read(hi, popped_->hi.get(), rows * columns_);
    if (lo) read(lo, popped_->lo.get(), rows * columns_);
    read(radius, popped_->radius.get(), rows);
  }
  ColumnSample column(std::int64_t h, std::int64_t c) override {
    const std::int64_t n = popped_->tokens.size();
    ColumnSample sample;
    sample.largest = strided(popped_->largest.get() + h, HV_, n);
    if (stage_.query) {
      const std::int64_t at = h * columns_ + c, stride = HV_ * columns_;
      const auto hi = strided(popped_->hi.get() + at, stride, n),
                 lo = strided(popped_->lo.get() + at, stride, n);
      for (std::size_t i = 0; i < hi.size(); ++i) sample.o.emplace_back(hi[i], lo[i]);
    }
    sample.state.resize(static_cast<std::size_t>(K_));
    read(sample.state.data(), popped_->state.get() + (h * columns_ + c) * K_, K_);
    return sample;
  }
  OperandTile operands(std::int64_t h, std::int64_t t) override {
    const std::int64_t at = h * capacity_ + t - popped_->tokens.begin;
    OperandTile one(K_, 1);
    read(one.alpha.data(), popped_->alpha.get() + at * K_, K_);
    read(one.khat.data(), popped_->khat.get() + at * K_, K_);
    if (stage_.query) read(one.qhat.data(), popped_->qhat.get() + at * K_, K_);
    read(one.beta.data(), popped_->beta.get() + at, 1);
    read(one.norms.data(), popped_->norms.get() + at, 1);
    return one;
  }
  FinalState state() override {
    std::vector<DD> S(static_cast<std::size_t>(HV_ * columns_ * K_));
    read(S.data(), before_, HV_ * columns_ * K_);
    FinalState out;
    out.radius.resize(static_cast<std::size_t>(HV_));
    read(out.radius.data(), popped_->state_radius.get(), HV_);
    for (std::int64_t h = 0; h < HV_; ++h)
      for (std::int64_t d = 0; d < K_; ++d)
        for (std::int64_t c = 0; c < columns_; ++c) {
          const DD& s = S[static_cast<std::size_t>((h * columns_ + c) * K_ + d)];
          out.hi.push_back(s.hi);
          out.lo.push_back(s.lo);
        }
    return out;
  }
  EngineSeconds seconds() const override { return seconds_; }

 private:
  // A plain copy from pageable memory may still be on its way, and no stream here waits for it.
  static void settle() { check(cudaDeviceSynchronize(), "copy"); }

  std::int64_t raw_bytes() const {
    return rows_ * (3 * K_ + columns_ + 1) * static_cast<std::int64_t>(sizeof(float)) + 5 * 16;
  }

  template <int K>
  void launch_walk(const Sizes& sizes, const DeviceOperands& operands, const Walked& walked,
                   const Slot& slot, std::int64_t n) {
    const auto kernel = stage_.query ? walk<K, true> : walk<K, false>;
    constexpr int bytes = 2 * sizeof(Stage<K>);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "shared memory");
    // Room for two blocks on a multiprocessor.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "shared memory");
    const dim3 grid(static_cast<unsigned>(columns_ / kBlockColumns), static_cast<unsigned>(HV_));
    kernel<<<grid, kWalkThreads, bytes, walk_>>>(sizes, operands, before_, slot.state.get(), walked,
                                                 n);
    check(cudaGetLastError(), "walk");
  }

  // Copies the slab's rows of every input, through memory that the device reads by itself.
  Inputs upload(const Slot& slot, const InputSlab& inputs) {
    std::int64_t used = 0;
    const auto tensor = [&](const char* name, std::int64_t heads, std::int64_t width) {
      const Tensor& x = inputs.tensors->at(name);
      const auto row = heads * width * static_cast<std::int64_t>(size_of(x.dtype)),
                 bytes = row * slot.tokens.size();
      const std::byte* from = x.bytes.data() + row * (slot.tokens.begin - inputs.first);
      std::byte* to = slot.staging.get() + used;
      constexpr std::int64_t kPiece = 1 << 20;
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < bytes; i += kPiece)
        std::memcpy(to + i, from + i, static_cast<std::size_t>(std::min(kPiece, bytes - i)));
      const Values values{slot.raw.get() + used, x.dtype == Dtype::bf16};
      used += (bytes + 15) / 16 * 16;
      return values;
    };
    const std::int64_t H = stage_.shape.H;
    Inputs in{};
    in.k = tensor(stage_.raw ? "k" : "khat", H, K_);
    if (stage_.query) in.q = tensor(stage_.raw ? "q" : "qhat", H, K_);
    in.g = tensor(stage_.raw ? "g_raw" : "g", HV_, K_);
    in.beta = tensor(stage_.raw ? "beta_raw" : "beta", HV_, 1);
    if (stage_.value) in.v = tensor("v", HV_, columns_);
    slot.upload_begin.record(upload_);
    check(cudaMemcpyAsync(slot.raw.get(), slot.staging.get(), static_cast<std::size_t>(used),
                          cudaMemcpyHostToDevice, upload_),
          "upload");
    in.A_log = A_log_.get();
    in.bias = bias_.get();
    if (stage_.raw && next_ == 1) {  // of the stage, the same in every slab
      parameter(A_log_, inputs.tensors->at("A_log"));
      parameter(bias_, inputs.tensors->at("dt_bias"));
    }
    slot.upload_end.record(upload_);
    return in;
  }
  void parameter(const Memory<double>& to, const Tensor& x) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.size(); ++i) values.push_back(x.at(i));
    check(cudaMemcpyAsync(to.get(), values.data(), values.size() * sizeof(double),
                          cudaMemcpyHostToDevice, upload_),
          "parameters");
    check(cudaStreamSynchronize(upload_), "parameters");
  }

  template <class T>
  void read(T* to, const T* from, std::int64_t n) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDeviceToHost,
                          read_),
          "read");
    check(cudaStreamSynchronize(read_), "read");
  }
  std::vector<double> strided(const double* from, std::int64_t stride, std::int64_t n) {
    constexpr int threads = 256;
    gather<<<static_cast<unsigned>((n + threads - 1) / threads), threads, 0, read_>>>(
        column_.get(), from, stride, n);
    check(cudaGetLastError(), "gather");
    std::vector<double> out(static_cast<std::size_t>(n));
    read(out.data(), column_.get(), n);
    return out;
  }

  const RecurrenceStage stage_;
  const std::int64_t K_, HV_, columns_, capacity_, rows_;
  Memory<double> A_log_, bias_;
  Memory<DD> state0_;
  Memory<NormBound> bounds_;
  Memory<double> column_;
  Slot slots_[kSlots];
  Stream upload_, prepare_, walk_, bound_, read_;
  Event begin_;
  const DD* before_ = nullptr;  // the state that the next slab starts from
  Slot* popped_ = nullptr;
  int next_ = 0, popped_count_ = 0;
  double busy_until_ = 0;
  EngineSeconds seconds_;
};

}  // namespace

std::unique_ptr<RecurrenceEngine> make_cuda_engine(const RecurrenceStage& stage,
                                                   std::int64_t tokens) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    throw UsageError("device", "cuda", "this machine has no CUDA device");
  const auto wide = [](std::int64_t n) { return n == 64 || n == 128; };
  if (!wide(stage.shape.K) || !wide(stage.columns))
    throw UsageError("K,V", stage.shape.text(), "must be 64 or 128 on cuda");
  const std::int64_t most = std::min({tokens, kSlabTokens, kSlabRows / stage.shape.HV});
  return std::make_unique<CudaEngine>(
      stage,
      (std::max<std::int64_t>(most, 1) + kTightenTokens - 1) / kTightenTokens * kTightenTokens);
}

}  // namespace numgate
