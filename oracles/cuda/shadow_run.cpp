#include "oracles/cuda/shadow_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "oracles/cuda/shadow_tasks.h"
#include "oracles/forms/walk.h"

namespace numgate::team {

using forms::RecurrenceWalk;
using shadow::RowError;
using shadow::ShadowSites;

namespace {

constexpr std::int64_t kSlabBlocks = 2048;  // walks times chunks; 1 GiB of operands at K = V = 128

// An array on the device.
template <class T>
class DeviceArray {
 public:
  DeviceArray(TeamDevice& device, std::size_t n)
      : device_(device),
        data_(static_cast<T*>(device.allocate(std::max<std::size_t>(n, 1) * sizeof(T)))) {}
  DeviceArray(TeamDevice& device, const std::vector<T>& values)
      : DeviceArray(device, values.size()) {
    upload(values.data(), values.size());
  }
  ~DeviceArray() { device_.release(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  void upload(const T* from, std::size_t n) { device_.upload(data_, from, n * sizeof(T)); }
  void download(T* to, std::size_t n) const { device_.download(to, data_, n * sizeof(T)); }

 private:
  TeamDevice& device_;
  T* data_;
};

// The widest slices that keep the device busy, at least 8 columns.
int slices_of(const TeamDevice& device, std::int64_t walks, std::int64_t V) {
  int slices = 1;
  while (walks * slices < device.blocks() && V / (2 * slices) >= 8) slices *= 2;
  return slices;
}

// Token rows [first, first + tokens) of a tensor on the device.
class TokenRows {
 public:
  TokenRows(TeamDevice& device, forms::Elements& whole, std::int64_t width, std::int64_t tokens)
      : whole_(whole),
        row_(width * static_cast<std::int64_t>(size_of(whole.dtype))),
        width_(width),
        data_(device, static_cast<std::size_t>(row_ * tokens)) {}

  forms::Elements load(std::int64_t first, std::int64_t tokens) {
    data_.upload(static_cast<const std::byte*>(whole_.data) + first * row_,
                 static_cast<std::size_t>(tokens * row_));
    return {data_.get(), whole_.dtype, first * width_};
  }

 private:
  forms::Elements whole_;
  std::int64_t row_, width_;  // bytes, elements of a token
  DeviceArray<std::byte> data_;
};

struct Emit {
  shadow::Sums& sums;
  shadow::WalkIndex index;
  shadow::Progress& progress;

  void operator()(std::string_view tensor, std::int64_t first,
                  const forms::Matrix<double>& rows) const {
    sums.find(std::string(tensor))->second.add(index.mode, index.draw, index.head, first, rows);
    if (tensor == "o") progress.add(rows.rows());
  }
};
using HostWalk = RecurrenceWalk<ShadowSites, Emit>;

// The steps of forms::follow_schedule for all walks at once.
class Walks {
 public:
  Walks(TeamDevice& device, const Case& c, const TensorMap& inputs, const Truth& truth,
        const ShadowOptions& options, shadow::Sums& sums,
        std::vector<std::unique_ptr<ShadowSites>>& sites, std::int64_t sequence,
        shadow::Progress& progress)
      : device_(device),
        case_(c),
        truth_(truth.outputs.at("o")),
        threads_(options.threads),
        sums_(sums.find("o")->second),
        progress_(progress),
        slab_number_(sequence << 32),
        slices_(slices_of(device, static_cast<std::int64_t>(sites.size()), c.shape.V)),
        width_(static_cast<int>(c.shape.V) / slices_),
        slab_chunks_(
            std::max<std::int64_t>(kSlabBlocks / static_cast<std::int64_t>(sites.size()), 4)) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      index_.emplace_back(static_cast<std::int64_t>(i), options.draws);
      walks_.push_back(std::make_unique<HostWalk>(*sites[i], c, inputs, index_[i].head, sequence,
                                                  Emit{sums, index_[i], progress}));
      Walk w{sites[i]->table(), walks_[i]->scalars, walks_[i]->source.head,
             walks_[i]->source.key_head};
      device_walks_.push_back(w);
    }
    const std::size_t n = walks_.size(), part = static_cast<std::size_t>(c.shape.K * width_);
    const auto tokens = static_cast<std::size_t>(slab_chunks_ * forms::kChunk);
    walk_memory_.emplace(device, device_walks_);
    chunk_memory_.emplace(device, static_cast<std::size_t>(slab_chunks_));
    slots_.emplace(device, n * static_cast<std::size_t>(slab_chunks_) *
                               Slot::doubles(static_cast<std::size_t>(c.shape.K),
                                             static_cast<std::size_t>(c.shape.V)));
    o_.emplace(device, n * tokens * static_cast<std::size_t>(c.shape.V));
    states_.emplace(device, n * static_cast<std::size_t>(slices_) * 3 * part);
    carried_memory_.emplace(device, n * static_cast<std::size_t>(slices_));
    used_.emplace(device, std::vector<std::uint64_t>(n));
    errors_.emplace(device, n * tokens);
    host_errors_.resize(n * tokens);
    const auto source = walks_[0]->source;
    const auto rows = [&](forms::Elements whole, std::int64_t width) {
      return std::make_unique<TokenRows>(device, whole, width, static_cast<std::int64_t>(tokens));
    };
    q_ = rows(source.q, source.key_heads * source.K);
    k_ = rows(source.k, source.key_heads * source.K);
    v_ = rows(source.v, source.heads * source.V);
    g_ = rows(source.g, source.heads * source.K);
    beta_ = rows(source.beta, source.heads);
    forms::Elements hi{truth_.hi.data(), Dtype::f64}, lo{truth_.lo.data(), Dtype::f64};
    high_ = rows(hi, source.heads * source.V);
    if (!truth_.lo.empty()) low_ = rows(lo, source.heads * source.V);
    if (source.raw) {
      bias_.emplace(device, static_cast<std::size_t>(source.heads * source.K) *
                                size_of(source.dt_bias.dtype));
      bias_->upload(
          static_cast<const std::byte*>(source.dt_bias.data),
          static_cast<std::size_t>(source.heads * source.K) * size_of(source.dt_bias.dtype));
    }
  }

  void enter_rank(bool has_tokens) {
    to_host();
    each([&](HostWalk& w) { w.enter_rank(has_tokens); });
  }
  void leave_rank() {
    to_host();
    each([](HostWalk& w) { w.leave_rank(); });
  }
  void hand_off() { hand_off_ = true; }
  void chunks(Segment segment, bool mapped) {
    mapped_ = mapped;
    forms::for_each_chunk(segment, [&](std::int64_t t, std::int64_t n) {
      pending_.push_back({t, n, hand_off_});
      hand_off_ = false;
      if (static_cast<std::int64_t>(pending_.size()) == slab_chunks_) run_slab();
    });
  }
  void tokens(Segment segment) {
    to_host();
    each([&](HostWalk& w) {
      if (hand_off_) w.hand_off();
      w.tokens(segment);
    });
    hand_off_ = false;
  }
  void finish(shadow::SiteSet& used) {
    to_host();
    each([](HostWalk& w) { w.finish(); });
    std::vector<std::uint64_t> bits(walks_.size());
    used_->download(bits.data(), bits.size());
    for (const auto b : bits) used |= shadow::SiteSet(b);
  }

 private:
  template <class Task>
  void each(Task task) {
    shadow::in_parallel(static_cast<std::int64_t>(walks_.size()), threads_,
                        [&](std::int64_t i) { task(*walks_[static_cast<std::size_t>(i)]); });
  }

  // What is carried, between the host's walks and the device's slices of columns.
  template <class Copy>
  void exchange(Copy copy) {
    const auto K = static_cast<Eigen::Index>(case_.shape.K);
    for (std::size_t w = 0; w < walks_.size(); ++w)
      for (int s = 0; s < slices_; ++s) {
        const std::size_t slice =
            w * static_cast<std::size_t>(slices_) + static_cast<std::size_t>(s);
        HostWalk& walk = *walks_[w];
        forms::Operand<forms::Matrix<double>>* parts[] = {&walk.S, &walk.map.B, &walk.map.M};
        for (int i = 0; i < 3; ++i) {
          auto& values = parts[i]->values;
          if (values.cols() < (s + 1) * width_) continue;
          copy(slice, i, *parts[i], values.block(0, s * width_, K, width_));
        }
      }
  }
  std::size_t part() const { return static_cast<std::size_t>(case_.shape.K * width_); }

  void to_device() {
    if (resident_) return;
    resident_ = true;
    std::vector<double> states(walks_.size() * static_cast<std::size_t>(slices_) * 3 * part());
    std::vector<Carried> carried(walks_.size() * static_cast<std::size_t>(slices_));
    for (std::size_t i = 0; i < carried.size(); ++i) {
      double* at = states_->get() + i * 3 * part();
      carried[i] = {at, at + part(), at + 2 * part(), {}};
    }
    exchange([&](std::size_t slice, int i, auto& operand, auto columns) {
      Eigen::Map<forms::Matrix<double>>(
          states.data() + (slice * 3 + static_cast<std::size_t>(i)) * part(), columns.rows(),
          columns.cols()) = columns;
      carried[slice].stored[i] = operand.stored;
    });
    states_->upload(states.data(), states.size());
    carried_memory_->upload(carried.data(), carried.size());
  }
  void to_host() {
    if (!pending_.empty()) run_slab();
    add_errors();
    if (!resident_) return;
    resident_ = false;
    std::vector<double> states(walks_.size() * static_cast<std::size_t>(slices_) * 3 * part());
    std::vector<Carried> carried(walks_.size() * static_cast<std::size_t>(slices_));
    states_->download(states.data(), states.size());
    carried_memory_->download(carried.data(), carried.size());
    exchange([&](std::size_t slice, int i, auto& operand, auto columns) {
      columns = Eigen::Map<forms::Matrix<double>>(
          states.data() + (slice * 3 + static_cast<std::size_t>(i)) * part(), columns.rows(),
          columns.cols());
      operand.stored = carried[slice].stored[i];
    });
  }

  void run_slab() {
    to_device();
    Slab slab{};
    slab.walks = walk_memory_->get();
    slab.chunks = chunk_memory_->get();
    slab.walk_count = static_cast<int>(walks_.size());
    slab.chunk_count = static_cast<int>(pending_.size());
    slab.slices = slices_;
    slab.mapped = mapped_;
    slab.first_token = pending_.front().begin;
    slab.tokens = pending_.back().begin + pending_.back().tokens - slab.first_token;
    slab.number = slab_number_++;
    slab.source = walks_[0]->source;
    for (auto [rows, elements] : {std::pair{&q_, &slab.source.q},
                                  {&k_, &slab.source.k},
                                  {&v_, &slab.source.v},
                                  {&g_, &slab.source.g},
                                  {&beta_, &slab.source.beta}})
      *elements = (*rows)->load(slab.first_token, slab.tokens);
    if (bias_) slab.source.dt_bias.data = bias_->get();
    slab.slots = slots_->get();
    slab.o = o_->get();
    slab.carried = carried_memory_->get();
    slab.used = used_->get();
    slab.truth = static_cast<const double*>(high_->load(slab.first_token, slab.tokens).data);
    if (low_)
      slab.truth_low = static_cast<const double*>(low_->load(slab.first_token, slab.tokens).data);
    slab.errors = errors_->get();
    chunk_memory_->upload(pending_.data(), pending_.size());
    device_.run(PrepareChunks{slab});
    device_.run(AdvanceStates{slab});
    device_.run(RowErrors{slab});
    add_errors();  // of the slab before, while the device works
    errors_->download(host_errors_.data(), walks_.size() * static_cast<std::size_t>(slab.tokens));
    first_error_ = slab.first_token;
    error_tokens_ = slab.tokens;
    pending_.clear();
  }

  void add_errors() {
    shadow::in_parallel(static_cast<std::int64_t>(walks_.size()), threads_, [&](std::int64_t w) {
      const shadow::WalkIndex& i = index_[static_cast<std::size_t>(w)];
      for (std::int64_t t = 0; t < error_tokens_; ++t)
        sums_.add_row(i.mode, i.draw, i.head, first_error_ + t,
                      host_errors_[static_cast<std::size_t>(w * error_tokens_ + t)]);
      progress_.add(error_tokens_);
    });
    error_tokens_ = 0;
  }

  TeamDevice& device_;
  const Case& case_;
  const TruthTensor& truth_;
  int threads_;
  shadow::ErrorSums& sums_;
  shadow::Progress& progress_;
  std::int64_t slab_number_;  // of no other slab of the walk
  int slices_, width_;
  std::int64_t slab_chunks_;
  std::vector<shadow::WalkIndex> index_;
  std::vector<std::unique_ptr<HostWalk>> walks_;
  std::vector<Walk> device_walks_;
  std::optional<DeviceArray<Walk>> walk_memory_;
  std::optional<DeviceArray<Chunk>> chunk_memory_;
  std::optional<DeviceArray<double>> slots_, o_, states_;
  std::optional<DeviceArray<Carried>> carried_memory_;
  std::optional<DeviceArray<std::uint64_t>> used_;
  std::optional<DeviceArray<RowError>> errors_;
  std::optional<DeviceArray<std::byte>> bias_;
  std::unique_ptr<TokenRows> q_, k_, v_, g_, beta_, high_, low_;
  std::vector<Chunk> pending_;
  std::vector<RowError> host_errors_;  // of the last slab, until they are added
  std::int64_t first_error_ = 0, error_tokens_ = 0;
  bool mapped_ = false, hand_off_ = false, resident_ = false;
};

}  // namespace

bool on_device(const Case& c) { return c.stage == "kda.prefill" || c.stage == "kda.core"; }

void add_draws(TeamDevice& device, const Case& c, const Plan& plan, const TensorMap& inputs,
               const Truth& truth, const ShadowOptions& options, shadow::SiteSet active,
               shadow::Sums& sums, shadow::SiteSet& used) {
  const std::int64_t walks = c.shape.HV * 2 * options.draws;
  shadow::Progress progress(options, walks * c.shape.T);
  std::vector<std::unique_ptr<ShadowSites>> sites;
  for (std::int64_t i = 0; i < walks; ++i)
    sites.push_back(std::make_unique<ShadowSites>(
        shadow::WalkIndex(i, options.draws).table(c, plan, options.draws, active)));
  const auto sequences = c.shape.sequence_segments();
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    Walks steps(device, c, inputs, truth, options, sums, sites, static_cast<std::int64_t>(n),
                progress);
    forms::follow_schedule(c, sequences[n], steps);
    steps.finish(used);
  }
  for (const auto& s : sites) used |= s->used();
}

}  // namespace numgate::team
