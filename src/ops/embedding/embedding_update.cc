#include "ops/embedding/embedding_update.h"

#include <algorithm>

#include "core/base/prefetch.h"
#include "ops/embedding/row_rules.h"
#include "ops/embedding/stored_rows.h"
#include "ops/optimizer/optimizer_loop.h"

namespace hctr::ops {

void sum_long_runs(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy, float* piece_sums) {
  expect_shape("sum_long_runs dy", dy, {batch.samples, batch.columns, dy.dim(2)});
  HCTR_ON_DEVICE(ctx, sum_long_runs(ctx, batch, groups, combiner, dy, piece_sums));
}

void update_rows(Context& ctx, const Optimizer& optimizer, KeyBatch batch, RowGroups groups, Combiner combiner,
                 Tensor dy, const float* piece_sums, RowData data) {
  expect_shape("update_rows dy", dy, {batch.samples, batch.columns, data.dim});
  HCTR_EXPECT(ctx.state(), "update_rows() needs a step state");
  HCTR_EXPECT(!data.states[0] || data.state_dim == (optimizer.row_wise ? 1 : data.dim),
              "update_rows(): unexpected "
              "size of optimizer states: ",
              data.state_dim, " elements a row");
  HCTR_ON_DEVICE(ctx, update_rows(ctx, optimizer, batch, groups, combiner, dy, piece_sums, data));
}

void sum_row_gradients(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy,
                       const float* piece_sums, Tensor sums) {
  HCTR_EXPECT(ctx.state() && sums.rank() == 2 && sums.dense(),
              "sum_row_gradients() needs a step state and a dense "
              "matrix of sums, found shape ",
              to_string(sums.shape()));
  expect_shape("sum_row_gradients dy", dy, {batch.samples, batch.columns, sums.dim(1)});
  HCTR_ON_DEVICE(ctx, sum_row_gradients(ctx, batch, groups, combiner, dy, piece_sums, sums));
}

void sweep_rows(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, RowData data) {
  HCTR_EXPECT(ctx.state() && data.touched, "sweep_rows() needs a step state and marks of rows");
  HCTR_ON_DEVICE(ctx, sweep_rows(ctx, optimizer, rows, data));
}

namespace cpu {
namespace {

constexpr int64_t kUpdateBlock = kStretch;  // elements of the stack buffer
constexpr int64_t kRunsAhead = 12;          // prefetch distance in runs, or in occurrences

/// The gradients of a batch, indexed by bag.
template <class T>
struct BagGradients {
  KeyBatch batch;
  Combiner combiner;
  const int32_t* bags;
  View<T, 3> dy;
  int64_t dim;

  const T* vector(int64_t position) const {
    const auto bag = static_cast<uint32_t>(bags[position]), samples = static_cast<uint32_t>(batch.samples);
    return dy.row(bag % samples) + bag / samples * dim;
  }
  /// sum[i] = the weighted sum of element e + i over positions [begin, end), in order.
  void sum_up(int64_t begin, int64_t end, int64_t e, int64_t n, float* sum) const {
    std::fill(sum, sum + n, 0.0f);
    for (int64_t p = begin; p < end; ++p) {
      // Runs are contiguous, so this statement also prefetches for the next run.
      if (p + kRunsAhead < batch.key_capacity) prefetch(vector(p + kRunsAhead) + e, static_cast<size_t>(n) * sizeof(T));
      const float weight = batch.weight(combiner, bags[p]);
      const T* from = vector(p) + e;
      for (int64_t i = 0; i < n; ++i) sum[i] += weight * static_cast<float>(from[i]);
    }
  }
};

/// Sums `count` vectors in place: repeatedly reduces each group of kPiece vectors to one. The result is in the first
/// vector.
void sum_pieces(float* vectors, int64_t count, int64_t dim) {
  for (; count > 1; count = (count + kPiece - 1) / kPiece)
    for (int64_t to = 0; to * kPiece < count; ++to) {
      float* sum = vectors + to * dim;
      const int64_t first = to * kPiece, last = std::min(first + kPiece, count);
      if (to != first) std::copy(vectors + first * dim, vectors + (first + 1) * dim, sum);
      for (int64_t from = first + 1; from < last; ++from)
        for (int64_t e = 0; e < dim; ++e) sum[e] += vectors[from * dim + e];
    }
}

/// Applies the optimizer rule to rows of a table in one step.
struct RowUpdater {
  const Optimizer& optimizer;
  const RowData& data;
  const StepState& state;
  bool plain = data.all_f32();

  /// Applies the rule to elements [e, e + n) of a row; e is a multiple of kUpdateBlock.
  template <class Rule, class Scalars>
  void update_part(const Scalars& scalars, const float* g, const GradientScale& gradient_scale, int64_t row, int64_t e,
                   int64_t n) const {
    const int64_t at = row * data.dim + e;
    if (plain) {
      WeightMemory memory{data.vectors.as<float>() + at, {}};
      for (int s = 0; s < Rule::kStates; ++s) memory.states[s] = data.states[s].as<float>() + at;
      const bool finite = update_elements<Rule>(optimizer, scalars, g, gradient_scale, memory, n);
      if (Rule::kTrains && !finite) report_spoiled(state);
      return;
    }
    const RowRounding rounding = data.rounding_of(row, state.updates);
    for (int64_t i = 0; i < n; i += kUpdateBlock) {
      const int64_t some = std::min(kUpdateBlock, n - i);
      float w[kUpdateBlock], states[kMostStates][kUpdateBlock];
      WeightMemory memory{w, {}};
      load_stretch(data.vectors, at + i, some, w);
      for (int s = 0; s < Rule::kStates; ++s) load_stretch(data.states[s], at + i, some, memory.states[s] = states[s]);
      if (!update_elements<Rule>(optimizer, scalars, g + i, gradient_scale, memory, some)) report_spoiled(state);
      store_stretch(data.vectors, at + i, some, w, rounding, 0, e + i);
      for (int s = 0; s < Rule::kStates; ++s)
        store_stretch(data.states[s], at + i, some, states[s], rounding, 1 + s, e + i);
    }
  }
};

double square_sum(const float* g, int64_t n, const GradientScale& gradient_scale) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(g[i] * gradient_scale) * static_cast<double>(g[i] * gradient_scale);
  return sum;
}

/// Prefetches the memory that an update of `row` reads. Rows are scattered, so memory latency dominates.
[[gnu::always_inline]] inline void prefetch_row(const RowData& data, int64_t row) {
  prefetch(data.vectors.address(row * data.dim), static_cast<size_t>(data.dim) * size_of(data.vectors.dtype));
  for (const RowMemory& state : data.states)
    if (state)
      prefetch(state.address(row * data.state_dim), static_cast<size_t>(data.state_dim) * size_of(state.dtype));
}

/// Sums the gradients of each row of the batch and applies the rule to the row.
template <class Rule, class T>
void update_by(Context& ctx, const Optimizer& optimizer, const KeyBatch& batch, const RowGroups& groups,
               Combiner combiner, const View<T, 3>& dy, const float* piece_sums, const RowData& data) {
  const int64_t dim = data.dim;
  const StepState& state = *ctx.state();
  const RowUpdater updater{optimizer, data, state};
  const BagGradients<T> gradients{batch, combiner, groups.bags, dy, dim};
  constexpr bool kSquares = Rule::kScalarsOf == ScalarsOf::mean_square;
  const UpdateScalars scalars = Rule::scalars(optimizer, state);
  const GradientScale scale = optimizer.gradient_scale(scalars);
  const auto of_row = [&](int64_t row, double squares) {
    if (data.touched) data.touched[row] = 1;
    return row_scalars<Rule>(optimizer, state, scalars, data, row,
                             static_cast<float>(squares / static_cast<double>(dim)));
  };
  ctx.threads().parallel_for(groups.counts->long_runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const LongRun run = groups.long_runs[i];
      const int64_t row = groups.rows[groups.run_begin[run.run]];
      const float* sum = piece_sums + run.first_piece * dim;
      updater.template update_part<Rule>(of_row(row, kSquares ? square_sum(sum, dim, scale) : 0), sum, scale, row, 0,
                                         dim);
    }
  });
  ctx.threads().parallel_for(groups.counts->runs, 256, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      if (run + kRunsAhead < end) prefetch_row(data, groups.rows[groups.run_begin[run + kRunsAhead]]);
      const int64_t first = groups.run_begin[run], last = groups.run_end(run, batch.key_capacity);
      if (last - first > kPiece) continue;
      const int64_t row = groups.rows[first];
      float sum[kUpdateBlock];
      const auto sum_block = [&](int64_t e) {
        const int64_t n = std::min(kUpdateBlock, dim - e);
        gradients.sum_up(first, last, e, n, sum);
        return n;
      };
      double squares = 0;
      for (int64_t e = 0; kSquares && e < dim; e += kUpdateBlock) {
        const int64_t n = sum_block(e);
        squares += square_sum(sum, n, scale);
      }
      const auto scalars_of_row = of_row(row, squares);
      for (int64_t e = 0; e < dim; e += kUpdateBlock) {
        // for a short row, `sum` still has the sums from the loop above
        const int64_t n = kSquares && dim <= kUpdateBlock ? dim : sum_block(e);
        updater.template update_part<Rule>(scalars_of_row, sum, scale, row, e, n);
      }
    }
  });
}

}  // namespace

void sum_long_runs(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy, float* piece_sums) {
  const int64_t dim = dy.dim(2);
  dispatch_float(dy.dtype(), [&]<class T>() {
    const BagGradients<T> gradients{batch, combiner, groups.bags, dy.view<T, 3>(), dim};
    ctx.threads().parallel_for(groups.counts->pieces, 16, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece)
        for (int64_t e = 0; e < dim; e += kUpdateBlock)
          gradients.sum_up(groups.pieces[piece].begin, groups.pieces[piece].end, e, std::min(kUpdateBlock, dim - e),
                           piece_sums + piece * dim + e);
    });
  });
  ctx.threads().parallel_for(groups.counts->long_runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sum_pieces(piece_sums + groups.long_runs[i].first_piece * dim, groups.long_runs[i].pieces, dim);
  });
}

void update_rows(Context& ctx, const Optimizer& optimizer, KeyBatch batch, RowGroups groups, Combiner combiner,
                 Tensor dy, const float* piece_sums, RowData data) {
  if (ctx.state()->skip) return;
  dispatch_float(dy.dtype(), [&]<class T>() {
    dispatch_row_rule(optimizer, data, [&]<class Rule>() {
      update_by<Rule, T>(ctx, optimizer, batch, groups, combiner, dy.view<T, 3>(), piece_sums, data);
    });
  });
}

void sum_row_gradients(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy,
                       const float* piece_sums, Tensor sums) {
  if (ctx.state()->skip) return;
  const RowData data = rows_of_sums(sums);
  dispatch_float(dy.dtype(), [&]<class T>() {
    update_by<StoreGradientRule, T>(ctx, {}, batch, groups, combiner, dy.view<T, 3>(), piece_sums, data);
  });
}

void sweep_rows(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, RowData data) {
  const StepState& state = *ctx.state();
  if (state.skip) return;
  const RowUpdater updater{optimizer, data, state};
  dispatch_rule(optimizer.kind, [&]<class Rule>() {
    const UpdateScalars scalars = Rule::scalars(optimizer, state);
    ctx.threads().parallel_for(*rows, 1024, [&](int64_t begin, int64_t end) {
      constexpr float kNone[kUpdateBlock] = {};
      for (int64_t row = begin + 1; row <= end; ++row) {
        if (data.touched[row]) {
          data.touched[row] = 0;
          continue;
        }
        for (int64_t e = 0; e < data.dim; e += kUpdateBlock)
          updater.template update_part<Rule>(scalars, kNone, GradientScale{}, row, e,
                                             std::min(kUpdateBlock, data.dim - e));
      }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
