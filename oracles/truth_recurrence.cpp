#include "oracles/truth_recurrence.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>

#include "oracles/spin_barrier.h"
#include "oracles/task_queue.h"

namespace numgate {
namespace {

// One audited column and the threads that walk it in MPFR, behind the engine.
class AuditedColumn {
 public:
  AuditedColumn(const RecurrenceRun& run, std::int64_t head, std::int64_t column, int threads)
      : run_(run),
        threads_(threads),
        audit_(run.stage.shape.K, head, column, threads),
        tile_(run.stage.shape.K, kBlock),
        queue_(run.audit_backlog) {}

  void start(std::int64_t sequence) {
    queue_.push([this, sequence] {
      for (std::int64_t d = 0; d < run_.stage.shape.K; ++d)
        audit_.start(d,
                     run_.state0 ? run_.state0(sequence, audit_.head(), d, audit_.column()) : 0.0);
    });
  }
  void push(const InputSlab& inputs, Segment tokens, RecurrenceEngine& engine) {
    queue_.push([this, inputs, tokens, sample = engine.column(audit_.head(), audit_.column())] {
      walk(inputs, tokens, sample);
    });
  }
  const AuditRecord& wait() {
    queue_.wait();
    return audit_.record();
  }

  // Of the walks; after wait().
  double seconds() const { return seconds_; }

 private:
  static constexpr std::int64_t kBlock = 256;  // tokens whose operands the cache holds

  // The operands are prepared here, in double-double, whatever prepared the engine's.
  void walk(const InputSlab& inputs, Segment tokens, const ColumnSample& sample) {
    const auto begin = std::chrono::steady_clock::now();
    const RecurrenceStage& stage = run_.stage;
    const OperandSource source{stage.shape, *inputs.tensors, stage.raw, inputs.first};
    const bool query = stage.query;
    std::vector<double> v(kBlock);
    on_team(threads_, [&](int rank) {
      for (std::int64_t first = 0; first < tokens.size(); first += kBlock) {
        const std::int64_t t0 = tokens.begin + first, n = std::min(kBlock, tokens.size() - first);
        for (std::int64_t i = rank * kLanes; i < n; i += threads_ * kLanes) {
          const auto count = std::min<std::int64_t>(kLanes, n - i);
          tile_.fill(source, audit_.head(), t0 + i, i, static_cast<int>(count));
          for (std::int64_t j = i; stage.value && j < i + count; ++j)
            v[static_cast<std::size_t>(j)] = inputs.tensors->at("v").at(
                ((t0 - inputs.first + j) * stage.shape.HV + audit_.head()) * stage.columns +
                audit_.column());
        }
        audit_.meet();
        audit_.walk(rank, tile_, t0, n, query, v.data(), query ? sample.o.data() + first : nullptr,
                    first + n == tokens.size() ? sample.state.data() : nullptr,
                    sample.largest.data() + first);
      }
    });
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    audit_.record().require();
  }

  const RecurrenceRun& run_;
  const int threads_;
  ColumnAudit audit_;
  OperandTile tile_;
  double seconds_ = 0;
  TaskQueue queue_;  // last: its thread uses what is above
};

class Stream {
 public:
  Stream(RecurrenceEngine& engine, const RecurrenceRun& run, const TruthOptions& options)
      : engine_(engine), run_(run) {
    const std::int64_t HV = run.stage.shape.HV, audits = audited_columns(options, HV);
    threads_ = audit_threads(options, audits);
    for (std::int64_t a = 0; a < audits; ++a)
      columns_.push_back(std::make_unique<AuditedColumn>(
          run, a * HV / audits, (2 * a + 1) * run.stage.columns / (2 * audits), threads_));
    if (audits > 0) audited_ = audited_tokens(run.sequences.back().end);
  }

  void run(const std::function<void(double)>& progress, AuditResult& result) {
    const auto total = static_cast<double>(run_.sequences.back().end);
    for (std::size_t n = 0; n < run_.sequences.size(); ++n) {
      start(static_cast<std::int64_t>(n));
      const Segment sequence = run_.sequences[n];
      for (std::int64_t t = sequence.begin; t < sequence.end; t += engine_.slab_tokens()) {
        const Segment tokens{t, std::min(t + engine_.slab_tokens(), sequence.end)};
        flight_.push_back(run_.inputs(tokens));
        engine_.push(flight_.back(), tokens);
        if (static_cast<int>(flight_.size()) == engine_.depth()) consume();
        if (progress) progress(static_cast<double>(tokens.end) / total);
      }
      while (!flight_.empty()) consume();
      if (run_.state) run_.state(static_cast<std::int64_t>(n), engine_.state());
    }
    AuditRecord all;
    all.worst_log2 = result.worst_log2;
    all.where = result.worst_where;
    all.merge(operands_);
    for (const auto& column : columns_) {
      all.merge(column->wait());
      result.seconds = std::max(result.seconds, column->seconds());
    }
    result.columns += static_cast<std::int64_t>(columns_.size());
    result.prepared += prepared_;
    result.threads = threads_;
    result.worst_log2 = all.worst_log2;
    result.worst_where = all.where;
  }

 private:
  void start(std::int64_t n) {
    RecurrenceEngine::State0 state0;
    if (run_.state0)
      state0 = [this, n](std::int64_t h, std::int64_t d, std::int64_t c) {
        return run_.state0(n, h, d, c);
      };
    engine_.start(state0);
    for (const auto& column : columns_) column->start(n);
  }

  // The oldest slab in flight.
  void consume() {
    const Segment tokens = engine_.pop();
    const InputSlab inputs = std::move(flight_.front());
    flight_.pop_front();
    if (run_.output) run_.output(engine_, tokens);
    audit_operands(inputs, tokens);
    for (const auto& column : columns_) column->push(inputs, tokens, engine_);
  }

  // The engine's operands at the slab's audited tokens, each of one head, in turn.
  void audit_operands(const InputSlab& inputs, Segment tokens) {
    const OperandSource source{run_.stage.shape, *inputs.tensors, run_.stage.raw, inputs.first};
    for (; next_ < audited_.size() && audited_[next_] < tokens.end; ++next_) {
      const auto h = static_cast<std::int64_t>(next_) % run_.stage.shape.HV;
      const std::int64_t t = audited_[next_];
      prepared_ += numgate::audit_operands(source, h, t, engine_.operands(h, t), 0, operands_);
    }
    operands_.require();
  }

  RecurrenceEngine& engine_;
  const RecurrenceRun& run_;
  int threads_ = 1;  // an audited column
  std::deque<InputSlab> flight_;
  std::vector<std::unique_ptr<AuditedColumn>> columns_;
  std::vector<std::int64_t> audited_;
  std::size_t next_ = 0;
  std::int64_t prepared_ = 0;
  AuditRecord operands_;
};

}  // namespace

std::int64_t audited_columns(const TruthOptions& options, std::int64_t heads) {
  return std::min<std::int64_t>(heads * options.audit_columns, kMaxAuditColumns);
}

int audit_threads(const TruthOptions& options, std::int64_t columns) {
  if (options.audit_threads > 0) return options.audit_threads;
  if (options.device == OracleDevice::cpu) return 1;
  const int cores = options.threads > 0 ? options.threads : omp_get_max_threads();
  int threads = ColumnAudit::kParts;
  while (threads > 1 && threads * columns > cores) threads /= 2;
  return threads;
}

void run_recurrence(RecurrenceEngine& engine, const RecurrenceRun& run, const TruthOptions& options,
                    const std::function<void(double)>& progress, AuditResult& audit) {
  Stream(engine, run, options).run(progress, audit);
}

}  // namespace numgate
