#include <omp.h>

#include <algorithm>
#include <cmath>

#include "oracles/certificate.h"
#include "oracles/definitions/kda_recurrence.h"
#include "oracles/truth_engine.h"
#include "oracles/truth_operands.h"

namespace numgate {
namespace {

// A slab's operands stay in the second-level cache while eight columns of the state walk it in the
// first.
constexpr std::int64_t kTile = kTightenTokens;

struct Head {
  OperandTile tile;
  std::vector<DDPack> S;        // [block of 8 columns, K]
  std::vector<DDPack> o;        // [block, token]
  std::vector<double> squares;  // [block]: of the state after the slab
  NormBound bound;
  std::vector<double> largest, radius;  // [token]

  Head(std::int64_t K, std::int64_t blocks)
      : tile(K, kTile),
        S(static_cast<std::size_t>(blocks * K)),
        o(static_cast<std::size_t>(blocks * kTile)),
        squares(static_cast<std::size_t>(blocks)),
        largest(kTile),
        radius(kTile) {}
};

class CpuEngine final : public RecurrenceEngine {
 public:
  CpuEngine(const RecurrenceStage& stage, int threads)
      : stage_(stage),
        K_(stage.shape.K),
        HV_(stage.shape.HV),
        blocks_(stage.columns / kLanes),
        threads_(threads > 0 ? threads : omp_get_max_threads()),
        heads_(static_cast<std::size_t>(HV_), Head(K_, blocks_)) {}

  std::int64_t slab_tokens() const override { return kTile; }
  int depth() const override { return 1; }

  void start(const State0& state0) override {
    for (std::int64_t h = 0; h < HV_; ++h) {
      double square = 0;
      for (std::int64_t c = 0; c < stage_.columns; ++c)
        for (std::int64_t d = 0; d < K_; ++d) {
          const double value = state0 ? state0(h, d, c) : 0.0;
          DDPack& S = head(h).S[static_cast<std::size_t>(c / kLanes * K_ + d)];
          S.hi[c % kLanes] = value;
          S.lo[c % kLanes] = 0;
          square += value * value;
        }
      head(h).bound = NormBound(std::sqrt(square) * (1.0 + 0x1p-30));
    }
  }

  void push(const InputSlab& inputs, Segment tokens) override {
    tokens_ = tokens;
    const std::int64_t octets = (tokens.size() + kLanes - 1) / kLanes;
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (std::int64_t i = 0; i < HV_ * octets; ++i)
      prepare(inputs, i / octets, i % octets * kLanes);
    for (Head& h : heads_)
      for (std::size_t i = 0; i < static_cast<std::size_t>(tokens.size()); ++i) {
        h.bound.step(h.tile.norms[i]);
        h.largest[i] = h.bound.largest();
        h.radius[i] = h.bound.output_radius(h.tile.norms[i]);
      }
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (std::int64_t i = 0; i < HV_ * blocks_; ++i) walk(inputs, i / blocks_, i % blocks_);
    for (Head& h : heads_) {
      double square = 0;
      for (double s : h.squares) square += s;
      h.bound.tighten(std::sqrt(square));
    }
  }
  Segment pop() override { return tokens_; }

  void outputs(double* hi, double* lo, double* radius) override {
    for (std::int64_t i = 0; i < tokens_.size(); ++i)
      for (std::int64_t h = 0; h < HV_; ++h) {
        const std::int64_t row = i * HV_ + h;
        radius[row] = head(h).radius[static_cast<std::size_t>(i)];
        for (std::int64_t b = 0; b < blocks_; ++b) {
          const DDPack& o = head(h).o[static_cast<std::size_t>(b * kTile + i)];
          const std::int64_t at = row * stage_.columns + b * kLanes;
          std::copy_n(reinterpret_cast<const double*>(&o.hi), kLanes, hi + at);
          if (lo) std::copy_n(reinterpret_cast<const double*>(&o.lo), kLanes, lo + at);
        }
      }
  }
  ColumnSample column(std::int64_t h, std::int64_t column) override {
    const auto l = static_cast<int>(column % kLanes);
    const std::int64_t b = column / kLanes;
    ColumnSample sample;
    sample.largest.assign(head(h).largest.begin(), head(h).largest.begin() + tokens_.size());
    for (std::int64_t i = 0; stage_.query && i < tokens_.size(); ++i)
      sample.o.push_back(lane(head(h).o[static_cast<std::size_t>(b * kTile + i)], l));
    for (std::int64_t d = 0; d < K_; ++d)
      sample.state.push_back(lane(head(h).S[static_cast<std::size_t>(b * K_ + d)], l));
    return sample;
  }
  OperandTile operands(std::int64_t h, std::int64_t t) override {
    const OperandTile& from = head(h).tile;
    const auto at = static_cast<std::size_t>(t - tokens_.begin);
    OperandTile one(K_, 1);
    const auto copy = [&](const std::vector<DD>& x, std::vector<DD>& to) {
      std::copy_n(x.begin() + static_cast<std::int64_t>(at) * K_, K_, to.begin());
    };
    copy(from.alpha, one.alpha);
    copy(from.khat, one.khat);
    copy(from.qhat, one.qhat);
    one.beta[0] = from.beta[at];
    one.norms[0] = from.norms[at];
    return one;
  }
  FinalState state() override {
    FinalState out;
    for (std::int64_t h = 0; h < HV_; ++h) {
      out.radius.push_back(head(h).bound.state_radius());
      for (std::int64_t d = 0; d < K_; ++d)
        for (std::int64_t c = 0; c < stage_.columns; ++c) {
          const DD s = lane(head(h).S[static_cast<std::size_t>(c / kLanes * K_ + d)],
                            static_cast<int>(c % kLanes));
          out.hi.push_back(s.hi);
          out.lo.push_back(s.lo);
        }
    }
    return out;
  }

 private:
  Head& head(std::int64_t h) { return heads_[static_cast<std::size_t>(h)]; }
  static DD lane(const DDPack& x, int l) { return {x.hi[l], x.lo[l]}; }

  // Tokens [at, at + 8) of the slab.
  void prepare(const InputSlab& inputs, std::int64_t h, std::int64_t at) {
    OperandTile& tile = head(h).tile;
    const OperandSource source{stage_.shape, *inputs.tensors, stage_.raw, inputs.first};
    const auto count = std::min<std::int64_t>(kLanes, tokens_.size() - at);
    tile.fill(source, h, tokens_.begin + at, at, static_cast<int>(count));
    if (!stage_.value) return;
    for (std::int64_t i = at; i < at + count; ++i) {
      double square = 0;
      for (std::int64_t c = 0; c < stage_.columns; ++c) {
        const double v = inputs.tensors->at("v").at(value_at(inputs, h, i) + c);
        square += v * v;
      }
      tile.norms[static_cast<std::size_t>(i)].v = std::sqrt(square) * (1.0 + 0x1p-40);
    }
  }
  std::int64_t value_at(const InputSlab& inputs, std::int64_t h, std::int64_t i) const {
    return ((tokens_.begin - inputs.first + i) * HV_ + h) * stage_.columns;
  }

  void walk(const InputSlab& inputs, std::int64_t h, std::int64_t b) {
    const OperandTile& tile = head(h).tile;
    const Tensor* values = stage_.value ? &inputs.tensors->at("v") : nullptr;
    DDPack* S = head(h).S.data() + b * K_;
    DDPack* o = head(h).o.data() + b * kTile;
    for (std::int64_t i = 0; i < tokens_.size(); ++i) {
      const DD* alpha = tile.alpha.data() + i * K_;
      const DD* khat = tile.khat.data() + i * K_;
      const DD beta = tile.beta[static_cast<std::size_t>(i)];
      const DDPack v = values
                           ? load<DDPack>(*values, value_at(inputs, h, i) + b * kLanes, 1, kLanes)
                           : DDPack(0.0);
      if (stage_.query)
        o[i] = definition::kda_step(K_, alpha, khat, tile.qhat.data() + i * K_, beta, v, S);
      else
        definition::kda_write(K_, alpha, khat, beta, v, S);
    }
    Pack square{};
    for (std::int64_t d = 0; d < K_; ++d) square += S[d].hi * S[d].hi;
    double sum = 0;
    for (int l = 0; l < kLanes; ++l) sum += square[l];
    head(h).squares[static_cast<std::size_t>(b)] = sum;
  }

  const RecurrenceStage stage_;
  const std::int64_t K_, HV_, blocks_;
  const int threads_;
  std::vector<Head> heads_;
  Segment tokens_{};
};

}  // namespace

std::unique_ptr<RecurrenceEngine> make_cpu_engine(const RecurrenceStage& stage, int threads) {
  return std::make_unique<CpuEngine>(stage, threads);
}

}  // namespace numgate
