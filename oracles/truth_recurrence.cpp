#include "oracles/truth_recurrence.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "oracles/certificate.h"
#include "oracles/definitions/kda_recurrence.h"

namespace numgate {
namespace {

// A tile's operands stay in the second-level cache while eight columns of the state walk it in the
// first.
constexpr std::int64_t kTile = 32;

struct Head {
  OperandTile tile;
  std::vector<DDPack> S;        // [block of 8 columns, K]
  std::vector<double> squares;  // [block]: of the state after the tile
  NormBound bound;
  double largest = 0;        // bound on the state's norm so far
  std::vector<double> norm;  // [token of the tile]: the same up to that token
  std::vector<ColumnAudit> audits;
  AuditRecord operands;

  Head(std::int64_t K, std::int64_t columns)
      : tile(K, kTile),
        S(static_cast<std::size_t>(columns / kLanes * K)),
        squares(static_cast<std::size_t>(columns / kLanes)),
        norm(kTile) {}
};

class Walk {
 public:
  Walk(const RecurrenceRun& run, const TruthOptions& options)
      : run_(run),
        K_(run.source.shape.K),
        HV_(run.source.shape.HV),
        blocks_(run.columns / kLanes),
        threads_(options.threads > 0 ? options.threads : omp_get_max_threads()),
        heads_(static_cast<std::size_t>(HV_), Head(K_, run.columns)) {
    const std::int64_t audits =
        std::min<std::int64_t>(HV_ * options.audit_columns, kMaxAuditColumns);
    for (std::int64_t a = 0; a < audits; ++a) {
      const std::int64_t h = a * HV_ / audits;
      heads_[static_cast<std::size_t>(h)].audits.emplace_back(
          K_, h, (2 * a + 1) * run.columns / (2 * audits));
    }
    if (audits > 0) audited_ = audited_tokens(run.source.shape.T);
  }

  void run(const std::function<void(double)>& progress, AuditResult& result) {
    for (std::size_t n = 0; n < run_.sequences.size(); ++n) {
      start(static_cast<std::int64_t>(n));
      const Segment sequence = run_.sequences[n];
      for (std::int64_t t = sequence.begin; t < sequence.end; t += kTile) {
        const std::int64_t end = std::min(t + kTile, sequence.end);
        walk_tile(t, end - t);
        if (progress) progress(static_cast<double>(end) / static_cast<double>(run_.source.shape.T));
      }
      finish(static_cast<std::int64_t>(n));
    }
    AuditRecord all;
    all.worst_log2 = result.worst_log2;
    all.where = result.worst_where;
    for (const Head& head : heads_) {
      all.merge(head.operands);
      for (const ColumnAudit& a : head.audits) all.merge(a.record());
      result.columns += static_cast<std::int64_t>(head.audits.size());
    }
    result.prepared += prepared_;
    result.worst_log2 = all.worst_log2;
    result.worst_where = all.where;
  }

 private:
  void start(std::int64_t n) {
    for (std::int64_t h = 0; h < HV_; ++h) {
      Head& head = heads_[static_cast<std::size_t>(h)];
      double square = 0;
      for (std::int64_t c = 0; c < run_.columns; ++c)
        for (std::int64_t d = 0; d < K_; ++d) {
          const double value = run_.state0 ? run_.state0(n, h, d, c) : 0.0;
          DDPack& S = head.S[static_cast<std::size_t>(c / kLanes * K_ + d)];
          S.hi[c % kLanes] = value;
          S.lo[c % kLanes] = 0;
          square += value * value;
        }
      head.bound = NormBound(std::sqrt(square) * (1.0 + 0x1p-30));
      head.largest = head.bound.state();
      for (ColumnAudit& a : head.audits)
        for (std::int64_t d = 0; d < K_; ++d)
          a.start(d, run_.state0 ? run_.state0(n, a.head(), d, a.column()) : 0.0);
    }
  }

  void walk_tile(std::int64_t t0, std::int64_t count) {
    const std::int64_t octets = (count + kLanes - 1) / kLanes;
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (std::int64_t i = 0; i < HV_ * octets; ++i) {
      const std::int64_t at = i % octets * kLanes;
      prepare(i / octets, t0, at, static_cast<int>(std::min<std::int64_t>(kLanes, count - at)));
    }
    for (std::int64_t h = 0; h < HV_; ++h) bound(h, t0, count);
    audit_tile(t0, count);
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (std::int64_t i = 0; i < HV_ * blocks_; ++i) {
      // A block with an audited column takes longest: it goes first.
      Head& head = heads_[static_cast<std::size_t>(i / blocks_)];
      const std::int64_t first = head.audits.empty() ? 0 : head.audits[0].column() / kLanes;
      walk_block(i / blocks_, (first + i) % blocks_, t0, count);
    }
    for (Head& head : heads_) {
      double square = 0;
      for (double s : head.squares) square += s;
      head.bound.tighten(std::sqrt(square));
      head.operands.require();
      for (const ColumnAudit& a : head.audits) a.record().require();
    }
  }

  void prepare(std::int64_t h, std::int64_t t0, std::int64_t at, int count) {
    Head& head = heads_[static_cast<std::size_t>(h)];
    head.tile.fill(run_.source, h, t0 + at, at, count);
    if (!run_.v) return;
    for (std::int64_t i = at; i < at + count; ++i) {
      double square = 0;
      for (std::int64_t c = 0; c < run_.columns; ++c) {
        const double v = run_.v->at(((t0 + i) * HV_ + h) * run_.columns + c);
        square += v * v;
      }
      head.tile.norms[static_cast<std::size_t>(i)].v = std::sqrt(square) * (1.0 + 0x1p-40);
    }
  }

  void bound(std::int64_t h, std::int64_t t0, std::int64_t count) {
    Head& head = heads_[static_cast<std::size_t>(h)];
    for (std::int64_t i = 0; i < count; ++i) {
      const TokenNorms& norms = head.tile.norms[static_cast<std::size_t>(i)];
      head.bound.step(norms);
      head.largest = std::max(head.largest, head.bound.state());
      head.norm[static_cast<std::size_t>(i)] = head.largest;
      if (run_.o)
        run_.o->radius[static_cast<std::size_t>((t0 + i) * HV_ + h)] =
            head.bound.output_radius(norms);
    }
  }

  // The operands of the audited tokens in this tile, each of one head, in turn.
  void audit_tile(std::int64_t t0, std::int64_t count) {
    for (; next_ < audited_.size() && audited_[next_] < t0 + count; ++next_) {
      const auto h = static_cast<std::int64_t>(next_) % HV_;
      Head& head = heads_[static_cast<std::size_t>(h)];
      const std::int64_t t = audited_[next_];
      prepared_ += audit_operands(run_.source, h, t, head.tile, t - t0, head.operands);
    }
  }

  void walk_block(std::int64_t h, std::int64_t b, std::int64_t t0, std::int64_t count) {
    Head& head = heads_[static_cast<std::size_t>(h)];
    const OperandTile& tile = head.tile;
    DDPack* S = head.S.data() + b * K_;
    DDPack o[kTile];
    Pack v[kTile];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = ((t0 + i) * HV_ + h) * run_.columns + b * kLanes;
      const DD* alpha = tile.alpha.data() + i * K_;
      const DD* khat = tile.khat.data() + i * K_;
      const DD beta = tile.beta[static_cast<std::size_t>(i)];
      v[i] = run_.v ? load<DDPack>(*run_.v, at, 1, kLanes).hi : Pack{};
      if (!run_.o) {
        definition::kda_write(K_, alpha, khat, beta, DDPack(v[i]), S);
        continue;
      }
      o[i] =
          definition::kda_step(K_, alpha, khat, tile.qhat.data() + i * K_, beta, DDPack(v[i]), S);
      std::copy_n(reinterpret_cast<const double*>(&o[i].hi), kLanes, run_.o->hi.data() + at);
      if (!run_.o->lo.empty())
        std::copy_n(reinterpret_cast<const double*>(&o[i].lo), kLanes, run_.o->lo.data() + at);
    }
    Pack square{};
    for (std::int64_t d = 0; d < K_; ++d) square += S[d].hi * S[d].hi;
    double sum = 0;
    for (int l = 0; l < kLanes; ++l) sum += square[l];
    head.squares[static_cast<std::size_t>(b)] = sum;
    for (ColumnAudit& a : head.audits)
      if (a.column() / kLanes == b) audit_column(a, head, v, o, S, t0, count);
  }

  void audit_column(ColumnAudit& a, const Head& head, const Pack* v, const DDPack* o,
                    const DDPack* S, std::int64_t t0, std::int64_t count) {
    const auto l = static_cast<int>(a.column() % kLanes);
    double values[kTile];
    DD outputs[kTile];
    std::vector<DD> state(static_cast<std::size_t>(K_));
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = v[i][l];
      if (run_.o) outputs[i] = {o[i].hi[l], o[i].lo[l]};
    }
    for (std::int64_t d = 0; d < K_; ++d)
      state[static_cast<std::size_t>(d)] = {S[d].hi[l], S[d].lo[l]};
    a.walk(head.tile, t0, count, run_.o != nullptr, values, outputs, state.data(),
           head.norm.data());
  }

  void finish(std::int64_t n) {
    TruthTensor& out = *run_.state;
    for (std::int64_t h = 0; h < HV_; ++h) {
      const Head& head = heads_[static_cast<std::size_t>(h)];
      for (std::int64_t d = 0; d < K_; ++d) {
        const std::int64_t row = (n * HV_ + h) * K_ + d;
        out.radius[static_cast<std::size_t>(row)] = head.bound.state_radius();
        for (std::int64_t c = 0; c < run_.columns; ++c) {
          const DDPack& S = head.S[static_cast<std::size_t>(c / kLanes * K_ + d)];
          const auto i = static_cast<std::size_t>(row * run_.columns + c);
          out.hi[i] = S.hi[c % kLanes];
          if (!out.lo.empty()) out.lo[i] = S.lo[c % kLanes];
        }
      }
    }
  }

  const RecurrenceRun& run_;
  const std::int64_t K_, HV_, blocks_;
  const int threads_;
  std::vector<Head> heads_;
  std::vector<std::int64_t> audited_;
  std::size_t next_ = 0;
  std::int64_t prepared_ = 0;
};

}  // namespace

void run_recurrence(const RecurrenceRun& run, const TruthOptions& options,
                    const std::function<void(double)>& progress, AuditResult& audit) {
  Walk(run, options).run(progress, audit);
}

}  // namespace numgate
