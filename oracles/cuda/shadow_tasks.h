// The shadow of the recurrence on a device: all walks (head, mode, draw) at once, a slab of chunks
// at a time. Chunks need no state for their operands, and columns of a state nothing of each other:
// 1. PrepareChunks: a block for each walk and chunk computes the chunk's operands.
// 2. AdvanceStates: a block for each walk and slice of columns takes the carried state through all
//    chunks of the slab, and writes that slice of o.
// 3. RowErrors: the errors of o against truth.
// Each is `blocks` blocks of team::kThreads threads that call run(block).
#pragma once
#include "oracles/cuda/team_arithmetic.h"
#include "oracles/forms/recurrence.h"
#include "oracles/shadow/rounding_sites.h"
#include "oracles/shadow/row_error.h"

namespace numgate::team {

using Sites = shadow::RoundingSites<Arithmetic>;

struct Walk {
  shadow::DrawTable table;
  forms::HeadScalars<double> scalars;
  std::int64_t head = 0, key_head = 0;
};

struct Chunk {
  std::int64_t begin = 0, tokens = 0;
  bool hand_off = false;  // S is handed off before it
};

// What is carried of one walk and slice, [K width] each.
struct Carried {
  double *S, *B, *M;
  Format stored[3];
};

struct Slab {
  const Walk* walks;
  const Chunk* chunks;
  int walk_count, chunk_count, slices;
  bool mapped;
  std::int64_t first_token, tokens, number;  // number: of the slab, for the noise
  forms::HeadSource source;                  // of any head
  double* slots;                             // operands by walk, chunk
  double* o;                                 // [walks tokens V]
  Carried* carried;                          // by walk, slice
  std::uint64_t* used;                       // by walk: sites that rounded
  const double *truth, *truth_low;           // [tokens heads V]; the latter may be null
  shadow::RowError* errors;                  // [walks tokens]

  NUMGATE_HOST_DEVICE int width() const { return static_cast<int>(source.V) / slices; }
  // Streams of noise of task `index` in step `step` of this slab.
  NUMGATE_HOST_DEVICE Arithmetic arithmetic(const Walk& walk, int step, int index) const {
    return Arithmetic(
        shadow::mix(shadow::mix(walk.table.stream + static_cast<std::uint64_t>(number * 2 + step)) +
                    static_cast<std::uint64_t>(index)));
  }
  NUMGATE_HOST_DEVICE void report(int walk, const Sites& sites) const {
    if (rank() != 0) return;
#if defined(__CUDA_ARCH__)
    atomicOr(reinterpret_cast<unsigned long long*>(used + walk), sites.used_bits());
#else
    used[walk] |= sites.used_bits();
#endif
  }
};

// A chunk's operands in memory: U in slices of columns, the others whole.
class Slot {
 public:
  NUMGATE_HOST_DEVICE static constexpr std::size_t doubles(std::size_t K, std::size_t V) {
    return forms::kChunk * (V + 3 * K + forms::kChunk) + K + K * K + 1;
  }
  NUMGATE_HOST_DEVICE Slot(const Slab& slab, int walk, int chunk)
      : n_(slab.chunks[chunk].tokens),
        K_(slab.source.K),
        V_(slab.source.V),
        width_(slab.width()),
        data_(slab.slots +
              (static_cast<std::size_t>(walk) * slab.chunk_count + chunk) * doubles(K_, V_)) {}

  NUMGATE_HOST_DEVICE void write(const forms::ChunkOperands<Matrix>& c) {
    for (int s = 0; s * width_ < V_; ++s) U(s).all() = c.U.values.middleCols(s * width_, width_);
    W().all() = c.W.values;
    KgT().all() = c.KgT.values;
    Qg().all() = c.Qg.values;
    Aqk().all() = c.Aqk.values;
    gamma().all() = c.gamma.values;
    if (rank() != 0) return;
    const Format formats[] = {c.U.stored,  c.W.stored,   c.KgT.stored,
                              c.Qg.stored, c.Aqk.stored, c.gamma.stored};
    for (int i = 0; i < 6; ++i) stored()[i] = formats[i];
  }
  NUMGATE_HOST_DEVICE void write(const forms::Operand<Matrix>& matrix) {
    own().all() = matrix.values;
    if (rank() == 0) stored()[6] = matrix.stored;
  }
  NUMGATE_HOST_DEVICE forms::ChunkOperands<Matrix> operands(int slice) {
    const Format* f = stored();
    return {{U(slice), f[0]}, {W(), f[1]},   {KgT(), f[2]},
            {Qg(), f[3]},     {Aqk(), f[4]}, {gamma(), f[5]}};
  }
  NUMGATE_HOST_DEVICE forms::Operand<Matrix> matrix() { return {own(), stored()[6]}; }

 private:
  NUMGATE_HOST_DEVICE Matrix at(Index offset, Index rows, Index cols) {
    return Matrix::borrow(data_ + offset, rows, cols);
  }
  static constexpr Index kC = forms::kChunk;
  NUMGATE_HOST_DEVICE Matrix U(int slice) { return at(slice * width_ * kC, n_, width_); }
  NUMGATE_HOST_DEVICE Matrix W() { return at(kC * V_, n_, K_); }
  NUMGATE_HOST_DEVICE Matrix KgT() { return at(kC * (V_ + K_), K_, n_); }
  NUMGATE_HOST_DEVICE Matrix Qg() { return at(kC * (V_ + 2 * K_), n_, K_); }
  NUMGATE_HOST_DEVICE Matrix Aqk() { return at(kC * (V_ + 3 * K_), n_, n_); }
  NUMGATE_HOST_DEVICE Matrix gamma() { return at(kC * (V_ + 3 * K_ + kC), K_, 1); }
  NUMGATE_HOST_DEVICE Matrix own() { return at(kC * (V_ + 3 * K_ + kC) + K_, K_, K_); }
  NUMGATE_HOST_DEVICE Format* stored() {
    return reinterpret_cast<Format*>(data_ + kC * (V_ + 3 * K_ + kC) + K_ + K_ * K_);
  }

  Index n_, K_, V_, width_;
  double* data_;
};

struct PrepareChunks {
  Slab slab;

  NUMGATE_HOST_DEVICE int blocks() const { return slab.walk_count * slab.chunk_count; }
  NUMGATE_HOST_DEVICE void run(int block) const {
    const int w = block / slab.chunk_count, c = block % slab.chunk_count;
    const Walk& walk = slab.walks[w];
    forms::HeadSource source = slab.source;
    source.head = walk.head;
    source.key_head = walk.key_head;
    Sites sites(walk.table, slab.arithmetic(walk, 0, c));
    const auto operands =
        forms::chunk_operands(sites, walk.scalars.constants,
                              forms::chunk_inputs(sites, source, walk.scalars, slab.chunks[c].begin,
                                                  slab.chunks[c].tokens));
    Slot slot(slab, w, c);
    slot.write(operands);
    if (slab.mapped && !forms::is_diagonal(sites)) slot.write(forms::chunk_matrix(sites, operands));
    slab.report(w, sites);
  }
};

struct AdvanceStates {
  Slab slab;

  NUMGATE_HOST_DEVICE int blocks() const { return slab.walk_count * slab.slices; }
  NUMGATE_HOST_DEVICE void run(int block) const {
    const int w = block / slab.slices, slice = block % slab.slices, width = slab.width();
    const Index K = slab.source.K, V = slab.source.V;
    const Walk& walk = slab.walks[w];
    Sites sites(walk.table, slab.arithmetic(walk, 1, slice));
    Carried& carried = slab.carried[block];
    const auto load = [&](double* from, int i) {
      return forms::Operand<Matrix>{Matrix::borrow(from, K, width).eval(), carried.stored[i]};
    };
    forms::Operand<Matrix> S = load(carried.S, 0), B, M;
    const bool columns_of_M = slab.mapped && slice * width < K;
    if (slab.mapped) B = load(carried.B, 1);
    if (columns_of_M) M = load(carried.M, 2);
    for (int c = 0; c < slab.chunk_count; ++c) {
      const Chunk& chunk = slab.chunks[c];
      Slot slot(slab, w, c);
      const auto operands = slot.operands(slice);
      if (chunk.hand_off) sites.store(Site::handoff, S);
      if (slab.mapped) forms::state_pass<Sites>(sites, operands, B, nullptr);
      if (columns_of_M && forms::is_diagonal(sites))
        forms::extend_diagonal(sites, operands, M);
      else if (columns_of_M)
        forms::extend_dense(sites, slot.matrix(), M);
      Matrix o;
      forms::state_pass(sites, operands, S, &o);
      double* to = slab.o + (w * slab.tokens + chunk.begin - slab.first_token) * V + slice * width;
      View(to, o.rows(), width, static_cast<int>(V), 1) = o;
    }
    const auto keep = [&](double* to, int i, const forms::Operand<Matrix>& x) {
      Matrix::borrow(to, K, width).all() = x.values;
      if (rank() == 0) carried.stored[i] = x.stored;
    };
    keep(carried.S, 0, S);
    if (slab.mapped) keep(carried.B, 1, B);
    if (columns_of_M) keep(carried.M, 2, M);
    slab.report(w, sites);
  }
};

struct RowErrors {
  Slab slab;

  NUMGATE_HOST_DEVICE int blocks() const {
    return static_cast<int>((slab.walk_count * slab.tokens + kThreads - 1) / kThreads);
  }
  NUMGATE_HOST_DEVICE void run(int block) const {
    for (int i = rank(); i < kThreads; i += size()) {
      const std::int64_t row = std::int64_t{block} * kThreads + i, w = row / slab.tokens;
      if (w >= slab.walk_count) return;
      const std::int64_t V = slab.source.V,
                         at =
                             ((row - w * slab.tokens) * slab.source.heads + slab.walks[w].head) * V;
      slab.errors[row] =
          shadow::row_error(slab.o + row * V, slab.truth + at,
                            slab.truth_low == nullptr ? nullptr : slab.truth_low + at, V);
    }
  }
};

}  // namespace numgate::team
