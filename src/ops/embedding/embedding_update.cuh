// Kernels that update rows; embedding_update*.cu launch them. A group of lanes sums each run of up to kPiece
// occurrences and updates its row. For long runs, a group of lanes applies the sum that embedding_sums.cuh computed.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_sums.cuh"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/embedding_vector.cuh"
#include "ops/embedding/row_rules.h"
#include "ops/embedding/stored_rows.cuh"
#include "ops/optimizer/optimizer.cuh"

namespace hctr::ops {
namespace {

/// Applies the rule to Width elements of a row from e on, and reports whether a result is infinite or NaN. gradient()
/// returns the elements of g. kRowFirst: loads the row before g, so that both loads overlap; this costs registers.
template <class Rule, int Width, bool kRowFirst, class Rows, class Scalars, class Gradient>
__device__ void apply(const StepState* step, const Optimizer& optimizer, const Scalars& scalars,
                      const Gradient& gradient, const GradientScale& gradient_scale, const RowData& data,
                      const Rows& rows, int64_t row, int64_t e) {
  const int64_t at = row * data.dim + e;
  Fragment<Width> g{};
  if constexpr (!kRowFirst) g = gradient();
  Fragment<Width> w = rows.template load<Width>(data.vectors, at), s[kMostStates]{};
#pragma unroll
  for (int n = 0; n < Rule::kStates; ++n) s[n] = rows.template load<Width>(data.states[n], at);
  if constexpr (kRowFirst) g = gradient();
  bool finite = true;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    float state[kMostStates];
#pragma unroll
    for (int n = 0; n < kMostStates; ++n) state[n] = s[n].v[i];
    Rule::update(optimizer, scalars, g.v[i] * gradient_scale, w.v[i], state);
    if constexpr (Rule::kTrains) finite = finite && left_finite<Rule>(w.v[i], state);
#pragma unroll
    for (int n = 0; n < kMostStates; ++n) s[n].v[i] = state[n];
  }
  report_spoiled(finite, step);
  rows.template store<Width>(data.vectors, at, w, 0, e);
#pragma unroll
  for (int n = 0; n < Rule::kStates; ++n) rows.template store<Width>(data.states[n], at, s[n], 1 + n, e);
}

template <int Width>
__device__ float square_sum(const Fragment<Width>& g, const GradientScale& gradient_scale) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Width; ++i) sum += g.v[i] * gradient_scale * (g.v[i] * gradient_scale);
  return sum;
}

/// The update scalars of a group's row, for all its lanes. `squares`: the lane's partial sum of g^2.
template <class Rule>
__device__ RowScalars<Rule> group_scalars(const Group& group, const Optimizer& optimizer, const StepState* state,
                                          const UpdateScalars& of_step, const RowData& data, int64_t row,
                                          float squares) {
  if constexpr (Rule::kScalarsOf == ScalarsOf::step) {
    return of_step;
  } else {
    for (int distance = group.lanes / 2; distance > 0; distance /= 2)
      squares += __shfl_xor_sync(group.mask, squares, distance, group.lanes);
    RowScalars<Rule> scalars{};
    if (group.lane == 0)
      scalars = row_scalars<Rule>(optimizer, *state, of_step, data, row, squares / static_cast<float>(data.dim));
    constexpr int kWords = sizeof scalars / sizeof(float);
    auto* words = reinterpret_cast<float*>(&scalars);
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __shfl_sync(group.mask, words[i], 0, group.lanes);
    return scalars;
  }
}

/// Prefetches element `at` into L2.
__device__ inline void prefetch(const RowMemory& memory, int64_t at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(memory.address(at)));
}

/// Updates a row with a group of lanes. gradient(e) returns Width elements of g from e on.
template <class Rule, class Rows, int Width, bool kRowFirst, class Gradient>
__device__ __forceinline__ void update_row(const Group& group, const Optimizer& optimizer, const StepState* state,
                                           const UpdateScalars& of_step, const RowData& data, int64_t row,
                                           const Gradient& gradient) {
  constexpr bool kSquares = Rule::kScalarsOf == ScalarsOf::mean_square;
  const int64_t own = group.lane * Width;
  // For a rule that reads g twice: the elements of g at the lane's first position. Most rows have no further elements.
  Fragment<Width> first{};
  float squares = 0;
  if constexpr (kSquares) {
    // The update of the row depends on the row's state, and the state depends on the whole gradient. The prefetches
    // overlap all three loads.
    if (group.lane == 0) prefetch(data.states[0], row);
    for (int64_t e = own; e < data.dim; e += group.lanes * Width) prefetch(data.vectors, row * data.dim + e);
    for (int64_t e = own; e < data.dim; e += group.lanes * Width) {
      const Fragment<Width> g = gradient(e);
      if (e == own) first = g;
      squares += square_sum(g, optimizer.gradient_scale(of_step));
    }
  }
  const RowScalars<Rule> scalars = group_scalars<Rule>(group, optimizer, state, of_step, data, row, squares);
  const Rows rows(data, row, state->updates);
  for (int64_t e = own; e < data.dim; e += group.lanes * Width)
    apply<Rule, Width, kRowFirst>(
        state, optimizer, scalars, [&] { return kSquares && e == own ? first : gradient(e); },
        optimizer.gradient_scale(of_step), data, rows, row, e);
  if (data.touched && group.lane == 0) data.touched[row] = 1;
}

// Updates the rows of short runs. Does nothing if the step is skipped, like all update kernels.
template <class Rule, class Rows, class Dy, int Width>
__device__ void update_short_runs(BlockRange range, Optimizer optimizer, const StepState* state,
                                  BagGradients<Dy, Width> gradients, RowGroups groups, RowData data, int lanes) {
  if (state->skip) return;
  const UpdateScalars of_step = block_scalars<Rule>(optimizer, state);
  const Group group(range, lanes);
  const int64_t runs = groups.counts->runs;
  for (int64_t run = group.index; run < runs; run += group.count) {
    const int32_t begin = groups.run_begin[run];
    const auto end = static_cast<int32_t>(groups.run_end(run, gradients.batch.key_capacity));
    if (end - begin > kPiece) continue;
    update_row<Rule, Rows, Width, false>(group, optimizer, state, of_step, data, groups.rows[begin],
                                         [&](int64_t e) { return gradients.sum_up(begin, end, e); });
  }
}

/// Updates the rows of long runs, whose sums are already computed: one group of lanes per run.
template <class Rule, class Rows, int Width>
__device__ void update_long_runs(BlockRange range, Optimizer optimizer, const StepState* state, RowGroups groups,
                                 const float* piece_sums, RowData data, int lanes) {
  if (state->skip) return;
  const UpdateScalars of_step = block_scalars<Rule>(optimizer, state);
  const Group group(range, lanes);
  for (int64_t i = group.index; i < groups.counts->long_runs; i += group.count) {
    const LongRun run = groups.long_runs[i];
    const float* sum = piece_sums + run.first_piece * data.dim;
    update_row<Rule, Rows, Width, false>(group, optimizer, state, of_step, data, groups.rows[groups.run_begin[run.run]],
                                         [&](int64_t e) { return load_fragment<Width>(sum + e); });
  }
}

/// Updates the rows of long and short runs in one launch, for small batches. Long runs come first. One loop handles
/// both kinds of runs, because two loops would keep the parameters of both in registers, and some rules would then
/// spill.
///
/// A group processes only one or a few runs, and each run is a chain of dependent loads. If the rule leaves enough
/// registers (kRowFirst), the row and its first gradients are loaded concurrently.
template <class Rule, class Rows, class Dy, int Width>
__device__ void update_runs(BlockRange range, Optimizer optimizer, const StepState* state,
                            BagGradients<Dy, Width> gradients, RowGroups groups, const float* piece_sums, RowData data,
                            int lanes) {
  if (state->skip) return;
  constexpr bool kRowFirst = Rule::kStates == 0 && Rule::kScalarsOf == ScalarsOf::step;
  const int32_t long_runs = groups.counts->long_runs, all = long_runs + groups.counts->runs;
  const UpdateScalars of_step = block_scalars<Rule>(optimizer, state);
  const Group group(range, lanes);
  // The number of groups and the index of this group are 32-bit integers here. The members of `group` result from
  // 64-bit divisions, which cost registers.
  const int each = kUpdateThreads / lanes, count = static_cast<int>(range.blocks) * each;
  for (int i = static_cast<int>(range.block) * each + static_cast<int>(threadIdx.x) / lanes; i < all; i += count) {
    int32_t run = i - long_runs;
    const float* sum = nullptr;
    if (run < 0) {
      const LongRun of = groups.long_runs[i];
      run = of.run;
      sum = piece_sums + of.first_piece * data.dim;
    }
    const int32_t begin = groups.run_begin[run];
    const auto end = static_cast<int32_t>(groups.run_end(run, gradients.batch.key_capacity));
    if (!sum && end - begin > kPiece) continue;
    FewBags<> first;
    if constexpr (kRowFirst) first = gradients.bags_from(begin, sum ? begin : end);
    const auto gradient = [&](int64_t e) {
      if (sum) return load_fragment<Width>(sum + e);
      if constexpr (kRowFirst)
        return gradients.sum_up_after(first, begin, end, e);
      else
        return gradients.sum_up(begin, end, e);
    };
    update_row<Rule, Rows, Width, kRowFirst>(group, optimizer, state, of_step, data, groups.rows[begin], gradient);
  }
}

template <class Rule, class Rows, int Width>
__global__ void sweep_rows_kernel(Optimizer optimizer, const StepState* state, const uint32_t* last_row, RowData data,
                                  int lanes) {
  if (state->skip) return;
  const UpdateScalars scalars = block_scalars<Rule>(optimizer, state);
  const Group group(lanes);
  const int64_t last = *last_row;
  for (int64_t row = 1 + group.index; row <= last; row += group.count) {
    const bool touched = data.touched[row] != 0;
    __syncwarp(group.mask);  // all lanes read the flag before lane 0 clears it
    if (touched) {
      if (group.lane == 0) data.touched[row] = 0;
      continue;
    }
    const Rows rows(data, row, state->updates);
    for (int64_t e = group.lane * Width; e < data.dim; e += lanes * Width)
      apply<Rule, Width, true>(
          state, optimizer, scalars, [] { return Fragment<Width>{}; }, GradientScale{}, data, rows, row, e);
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::blocks_of_device;
using hctr::cuda::Grid;
using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::launch_lockstep;
using hctr::cuda::launch_single;

namespace {

/// Calls body(gradients, lanes) with the widest access that the gradients' memory and Rows allow. Two-byte rows whose
/// length is not a multiple of eight are rare, so their gradient dtype is dispatched in the kernel.
template <class Rows, class Body>
void dispatch_gradients(const KeyBatch& batch, const RowGroups& groups, Combiner combiner, const Tensor& dy,
                        Body&& body) {
  const int64_t dim = dy.dim(2), size = size_of(dy.dtype());
  const auto fits = [&](int64_t width) { return splits_by(width, dy.bytes(), size, dy.row_stride(), dim); };
  if (Rows::kWidest == 4 || fits(Rows::kWidest))
    dispatch_float(dy.dtype(), [&]<class T>() {
      const auto call = [&]<int Width>() {
        body(BagGradients<View<T, 3>, Width>{batch, combiner, groups.bags, dy.view<T, 3>()}, lanes_for(dim, Width));
      };
      if constexpr (Rows::kWidest == 4)
        dispatch_width(fits(4), call);
      else
        call.template operator()<Rows::kWidest>();
    });
  else if constexpr (Rows::kWidest > 4)
    dispatch_width(fits(4), [&]<int Width>() {
      const AnyFloatView any{{dy.bytes(), {dy.dim(0), dy.dim(1), dim}, dy.row_stride()}, dy.dtype()};
      body(BagGradients<AnyFloatView, Width>{batch, combiner, groups.bags, any}, lanes_for(dim, Width));
    });
}

constexpr int kBlocksEach = 8;  // blocks per multiprocessor; few, because each block computes the scalars of the step

constexpr int kBlocksOfFewRuns = 64;  // blocks per multiprocessor; enough for one thread per key and lane

constexpr int kRunsOfGroup = 4;  // if several tables share a launch, a block takes more runs, so that all blocks fit

constexpr int kRunBlocksEach = 4;  // blocks per multiprocessor for long runs; few runs are very long

/// Minimum resident blocks per multiprocessor for short runs; 0: the compiler decides. The kernel is bound by memory
/// latency, so occupancy matters. Four blocks leave 64 registers per thread, which suffice; without a bound some rules
/// use 105. Narrow accesses need fewer registers, wide accesses more.
template <class Rule, int Width>
constexpr int kBlocksThatFit = Rule::kScalarsOf != ScalarsOf::last_step && Width == 4 ? 4 : 0;

/// Minimum resident blocks per multiprocessor for update_runs(). No rule spills registers with these values.
template <class Rule, int Width>
constexpr int kBlocksThatFitOfFew = Width == 4 || Rule::kScalarsOf == ScalarsOf::last_step ? 4
                                    : Rule::kScalarsOf == ScalarsOf::mean_square           ? 3
                                                                                           : 0;

/// Grid sizes for short runs and for long runs.
std::pair<int64_t, int64_t> update_blocks(int64_t key_capacity, int lanes) {
  return {grid_for(key_capacity * lanes, kUpdateThreads, blocks_of_device(kBlocksEach)).blocks,
          grid_for(RowGroups::most_long_runs(key_capacity) * lanes, kUpdateThreads, blocks_of_device(kRunBlocksEach))
              .blocks};
}

/// Runs update_rows() for rows that are accessed through Rows.
template <class Rows>
void update_rows_of(Context& ctx, const Optimizer& optimizer, const KeyBatch& batch, const RowGroups& groups,
                    Combiner combiner, const Tensor& dy, const float* piece_sums, const RowData& data) {
  dispatch_gradients<Rows>(
      batch, groups, combiner, dy, [&]<class Dy, int Width>(const BagGradients<Dy, Width>& gradients, int lanes) {
        dispatch_row_rule(optimizer, data, [&]<class Rule>() {
          const auto [short_blocks, long_blocks] = update_blocks(batch.key_capacity, lanes);
          if constexpr (std::is_same_v<Rows, PlainRows>) {
            if (batch.key_capacity * lanes <= blocks_of_device(kBlocksOfFewRuns) * kUpdateThreads) {
              const int64_t blocks = long_blocks + short_blocks;
              const bool several = ctx.queue() && ctx.queue()->several();
              return launch_lockstep<update_runs<Rule, Rows, Dy, Width>, kUpdateThreads,
                                     kBlocksThatFitOfFew<Rule, Width>>(
                  ctx, "update_rows", several ? (blocks + kRunsOfGroup - 1) / kRunsOfGroup : blocks, optimizer,
                  ctx.state(), gradients, groups, piece_sums, data, lanes);
            }
            launch_lockstep<update_short_runs<Rule, Rows, Dy, Width>, kUpdateThreads, kBlocksThatFit<Rule, Width>>(
                ctx, "update_short_runs", short_blocks, optimizer, ctx.state(), gradients, groups, data, lanes);
            launch_lockstep<update_long_runs<Rule, Rows, Width>, kUpdateThreads>(
                ctx, "update_long_runs", long_blocks, optimizer, ctx.state(), groups, piece_sums, data, lanes);
          } else {
            launch_single<update_short_runs<Rule, Rows, Dy, Width>, kUpdateThreads>(
                ctx, "update_short_runs", short_blocks, optimizer, ctx.state(), gradients, groups, data, lanes);
            launch_single<update_long_runs<Rule, Rows, Width>, kUpdateThreads>(
                ctx, "update_long_runs", long_blocks, optimizer, ctx.state(), groups, piece_sums, data, lanes);
          }
        });
      });
}

/// Runs sweep_rows() for rows that are accessed through Rows.
template <class Rows>
void sweep_rows_of(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, const RowData& data) {
  dispatch_width_of<Rows>([&](int64_t width) { return data.dim % width == 0; },
                          [&]<int Width>() {
                            const int lanes = lanes_for(data.dim, Width);
                            dispatch_rule(optimizer.kind, [&]<class Rule>() {
                              launch(ctx, "sweep_rows", Grid{blocks_of_device(kBlocksEach), kUpdateThreads, 0},
                                     sweep_rows_kernel<Rule, Rows, Width>, optimizer, ctx.state(), rows, data, lanes);
                            });
                          });
}

}  // namespace

// Defined in embedding_update_rounded.cu, so that both files compile in parallel.
void update_rounded_rows(Context&, const Optimizer&, const KeyBatch&, const RowGroups&, Combiner, const Tensor& dy,
                         const float* piece_sums, const RowData&);
void sweep_rounded_rows(Context&, const Optimizer&, const uint32_t* rows, const RowData&);

}  // namespace cuda
}  // namespace hctr::ops
