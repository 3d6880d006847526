// Kernels that update rows; embedding_update*.cu launch them. A group of lanes sums each run of up to kPiece
// occurrences and updates its row. For a long run, the group takes the sum that embedding_sums.cuh computed.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_sums.cuh"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/embedding_vector.cuh"
#include "ops/embedding/row_rules.h"
#include "ops/embedding/sort_digits.cuh"
#include "ops/embedding/stored_rows.cuh"
#include "ops/optimizer/optimizer.cuh"

namespace hctr::ops {
namespace {

/// Width consecutive elements of a row (`w`) and of the row's optimizer states (`s`).
template <class Rule, class Rows, int Width>
struct RowPart {
  Fragment<Width> w{}, s[kMostStates]{};

  __device__ void load(const RowData& data, const Rows& rows, int64_t row, int64_t e) {
    const int64_t at = row * data.dim + e;
    w = rows.template load<Width>(data.vectors, at);
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n) s[n] = rows.template load<Width>(data.states[n], at);
  }
  /// Applies the rule with the gradient g, stores the results, and reports to `step` if a result is infinite or NaN.
  template <class Scalars>
  __device__ void update(const StepState* step, const Optimizer& optimizer, const Scalars& scalars,
                         const Fragment<Width>& g, const GradientScale& gradient_scale, const RowData& data,
                         const Rows& rows, int64_t row, int64_t e) {
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
    const int64_t at = row * data.dim + e;
    rows.template store<Width>(data.vectors, at, w, 0, e);
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n) rows.template store<Width>(data.states[n], at, s[n], 1 + n, e);
  }
};

template <int Width>
__device__ float square_sum(const Fragment<Width>& g, const GradientScale& gradient_scale) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Width; ++i) sum += g.v[i] * gradient_scale * (g.v[i] * gradient_scale);
  return sum;
}

/// Returns the update scalars of the group's row to every lane of the group. `squares`: the lane's partial sum of g^2.
/// `row_state`: the row's optimizer state, valid in lane 0; used only if the rule has one state per row.
template <class Rule>
__device__ RowScalars<Rule> group_scalars(const Group& group, const Optimizer& optimizer, const StepState* state,
                                          const UpdateScalars& of_step, const RowData& data, int64_t row, float squares,
                                          float row_state) {
  if constexpr (Rule::kScalarsOf == ScalarsOf::step) {
    return of_step;
  } else {
    for (int distance = group.lanes / 2; distance > 0; distance /= 2)
      squares += __shfl_xor_sync(group.mask, squares, distance, group.lanes);
    RowScalars<Rule> scalars{};
    if (group.lane == 0) {
      const float mean_square = squares / static_cast<float>(data.dim);
      if constexpr (Rule::kScalarsOf == ScalarsOf::mean_square) {
        scalars = Rule::of_row(optimizer, of_step, mean_square, row_state);
        data.states[0].as<float>()[row] = row_state;
      } else {
        scalars = row_scalars<Rule>(optimizer, *state, of_step, data, row, mean_square);
      }
    }
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

/// Updates a row with a group of lanes, for a rule whose scalars do not depend on the row. If the row has a single
/// gradient, loads the gradient and the row concurrently. Otherwise sums the gradients first, because loading the row
/// at the same time would need more registers. If Width is 1, each lane processes two parts of the row at a time.
template <class Rule, class Rows, int Width, class Gradient>
__device__ __forceinline__ void update_row_at_once(const Group& group, const Optimizer& optimizer,
                                                   const StepState* state, const UpdateScalars& of_step,
                                                   const RowData& data, int64_t row, const Gradient& gradient) {
  constexpr int kAtOnce = Width == 1 ? 2 : 1;
  const int next = group.lanes * Width, dim = static_cast<int>(data.dim);
  const Rows rows(data, row, state->updates);
  for (int begin = group.lane * Width; begin < dim; begin += kAtOnce * next) {
    RowPart<Rule, Rows, Width> part[kAtOnce];
    Fragment<Width> g[kAtOnce];
    const auto parts = [&](const auto& body) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (const int e = begin + k * next; e < dim) body(k, e);
    };
    if (gradient.is_single()) {
      parts([&](int k, int e) {
        g[k] = gradient.load_first(e);
        part[k].load(data, rows, row, e);
      });
      parts([&](int k, int) { g[k] = gradient.weighted(g[k]); });
    } else {
      parts([&](int, int e) { prefetch(data.vectors, row * dim + e); });
      parts([&](int k, int e) { g[k] = gradient.sum_up(e); });
      parts([&](int k, int e) { part[k].load(data, rows, row, e); });
    }
    parts([&](int k, int e) {
      part[k].update(state, optimizer, of_step, g[k], optimizer.gradient_scale(of_step), data, rows, row, e);
    });
  }
  if (data.touched && group.lane == 0) data.touched[row] = 1;
}

/// Updates a row with a group of lanes, for any rule.
template <class Rule, class Rows, int Width, class Gradient>
__device__ __forceinline__ void update_row(const Group& group, const Optimizer& optimizer, const StepState* state,
                                           const UpdateScalars& of_step, const RowData& data, int64_t row,
                                           const Gradient& gradient) {
  constexpr bool kSquares = Rule::kScalarsOf == ScalarsOf::mean_square;
  const int own = group.lane * Width, next = group.lanes * Width, dim = static_cast<int>(data.dim);
  const Rows rows(data, row, state->updates);
  // For a rule that reads g twice, keeps the elements at the lane's first position; most rows have no others. Computing
  // the row's update needs the row's state, which in turn needs the whole gradient. The loads of gradient, state and
  // row all run concurrently.
  RowPart<Rule, Rows, Width> first_part;
  Fragment<Width> first_gradient{};
  const bool loads_early = kSquares && std::is_same_v<Rows, PlainRows> && own < dim && gradient.is_single();
  float squares = 0, row_state = 0;
  if constexpr (kSquares) {
    if (group.lane == 0) row_state = data.states[0].as<float>()[row];
    if (loads_early) first_part.load(data, rows, row, own);
    for (int e = loads_early ? own + next : own; e < dim; e += next) prefetch(data.vectors, row * dim + e);
    for (int e = own; e < dim; e += next) {
      const Fragment<Width> g = gradient.sum_up(e);
      if (e == own) first_gradient = g;
      squares += square_sum(g, optimizer.gradient_scale(of_step));
    }
  }
  const RowScalars<Rule> scalars = group_scalars<Rule>(group, optimizer, state, of_step, data, row, squares, row_state);
  for (int e = own; e < dim; e += next) {
    const Fragment<Width> g = kSquares && e == own ? first_gradient : gradient.sum_up(e);
    RowPart<Rule, Rows, Width> part = first_part;
    if (!loads_early || e != own) part.load(data, rows, row, e);
    part.update(state, optimizer, scalars, g, optimizer.gradient_scale(of_step), data, rows, row, e);
  }
  if (data.touched && group.lane == 0) data.touched[row] = 1;
}

/// A run, loaded by one lane of a warp.
template <class Gradients>
struct LoadedRun {
  static constexpr int32_t kLong = -1;
  int32_t row = -1;  // -1: no run
  // For a short run, the range of its occurrences. For a long run, `begin` is the index of its sum, and `end` is kLong.
  int32_t begin = 0, end = 0;
  typename Gradients::Place first{};

  LoadedRun() = default;
  /// Loads run i of a list: first the long runs, then all runs. In the second part, long runs are skipped (row 0).
  __device__ LoadedRun(const RowGroups& groups, const Gradients& gradients, int32_t i, int32_t long_runs) {
    if (i < long_runs) {
      const LongRun of = groups.long_runs[i];
      row = groups.rows[groups.run_begin[of.run]];
      begin = of.first_piece;
      end = kLong;
      return;
    }
    begin = groups.run_begin[i - long_runs];
    end = static_cast<int32_t>(groups.run_end(i - long_runs, gradients.batch.key_capacity));
    if (end - begin > kPiece) return;
    row = groups.rows[begin];
    first = gradients.place_of(begin);
  }
  /// The run that `lane` has loaded. Call from all lanes of the warp.
  __device__ LoadedRun of_lane(int lane) const {
    LoadedRun run;
    run.row = __shfl_sync(kWholeWarp, row, lane);
    run.begin = __shfl_sync(kWholeWarp, begin, lane);
    run.end = __shfl_sync(kWholeWarp, end, lane);
    run.first.at = __shfl_sync(kWholeWarp, first.at, lane);
    run.first.weight = __shfl_sync(kWholeWarp, first.weight, lane);
    return run;
  }
};

/// The gradient of a loaded run.
template <class Gradients, int Width>
struct RunGradient {
  const Gradients& gradients;
  const LoadedRun<Gradients>& run;
  const float* piece_sums;
  int64_t dim;

  __device__ bool is_long() const { return run.end == run.kLong; }
  /// Whether weighted(load_first(e)) is already the whole gradient from element e on.
  __device__ bool is_single() const { return is_long() || run.end - run.begin == 1; }
  __device__ __forceinline__ Fragment<Width> load_first(int64_t e) const {
    return is_long() ? load_fragment<Width>(piece_sums + run.begin * dim + e) : gradients.load(run.first, e);
  }
  __device__ __forceinline__ Fragment<Width> weighted(const Fragment<Width>& first) const {
    return is_long() ? first : gradients.weighted(run.first, first);
  }
  /// Returns elements [e, e + Width) of the gradient.
  __device__ __forceinline__ Fragment<Width> sum_up(int64_t e) const {
    Fragment<Width> sum = weighted(load_first(e));
    if (!is_long()) gradients.add_up(run.begin + 1, run.end, e, sum);
    return sum;
  }
};

/// Updates the rows of all runs. Long runs come first; their sums are in `piece_sums`. Does nothing if the step is
/// skipped. Each lane of a warp loads one run; then groups of lanes update the rows of these runs one after the other.
/// A group therefore waits for memory only once per row. Without this, it would wait three times: for the run, for the
/// row number and the bag, and for the values.
template <class Rule, class Rows, class Dy, int Width>
__device__ void update_runs(BlockRange range, Optimizer optimizer, const StepState* state,
                            BagGradients<Dy, Width> gradients, RowGroups groups, const float* piece_sums, RowData data,
                            int lanes) {
  if (state->skip) return;
  using Gradients = BagGradients<Dy, Width>;
  constexpr bool kAtOnce = Rule::kScalarsOf == ScalarsOf::step && std::is_same_v<Rows, PlainRows>;
  constexpr int kMostRunsOfGroup = 8;  // runs that a group takes at a time; more would leave other groups without work
  const int32_t long_runs = groups.counts->long_runs, all = long_runs + groups.counts->runs;
  const UpdateScalars of_step = block_scalars<Rule>(optimizer, state);
  const Group group(range, lanes);
  const int lane = static_cast<int>(threadIdx.x) % 32, in_warp = 32 / lanes,
            warps = static_cast<int>(range.blocks) * (kUpdateThreads / 32),
            each = max(in_warp, min(min(32, kMostRunsOfGroup * in_warp), (all + warps - 1) / warps));
  for (int from = (static_cast<int>(range.block) * (kUpdateThreads / 32) + static_cast<int>(threadIdx.x) / 32) * each;
       from < all; from += warps * each) {
    const int here = min(each, all - from);
    LoadedRun<Gradients> mine;
    if (lane < here) mine = {groups, gradients, from + lane, long_runs};
    for (int i = lane / lanes; i - lane / lanes < here; i += in_warp) {
      const LoadedRun<Gradients> run = mine.of_lane(i);
      if (run.row < 0) continue;  // sum_row_gradients() also writes row 0
      const RunGradient<Gradients, Width> gradient{gradients, run, piece_sums, data.dim};
      if constexpr (kAtOnce)
        update_row_at_once<Rule, Rows, Width>(group, optimizer, state, of_step, data, run.row, gradient);
      else
        update_row<Rule, Rows, Width>(group, optimizer, state, of_step, data, run.row, gradient);
    }
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
    for (int64_t e = group.lane * Width; e < data.dim; e += lanes * Width) {
      RowPart<Rule, Rows, Width> part;
      part.load(data, rows, row, e);
      part.update(state, optimizer, scalars, Fragment<Width>{}, GradientScale{}, data, rows, row, e);
    }
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

constexpr int kBlocksEachOfSeveral = 2;  // blocks per multiprocessor and table, if several tables share a launch

constexpr int kBlocksOfFewRuns = 64;  // blocks per multiprocessor; enough for one thread per key and lane

// If several tables share a launch, a group gets this number of runs, or twice this number, so that all blocks fit.
constexpr int kRunsOfGroup = 8;

constexpr int kRunBlocksEach = 4;  // blocks per multiprocessor for long runs; few runs are very long

/// Minimum resident blocks per multiprocessor. The kernel is bound by memory latency, so occupancy matters. Four blocks
/// leave 64 registers per thread.
template <class Rule, int Width>
constexpr int kBlocksThatFit = Rule::kScalarsOf == ScalarsOf::mean_square && Width == 1 ? 3 : 4;

/// Grid size for the runs of a batch. `several`: whether other tables share the launch.
int64_t update_blocks(int64_t key_capacity, int lanes, bool several) {
  const int64_t threads = (key_capacity + RowGroups::most_long_runs(key_capacity)) * lanes;
  if (threads > blocks_of_device(kBlocksOfFewRuns) * kUpdateThreads)
    return blocks_of_device(several ? kBlocksEachOfSeveral : kBlocksEach);
  const int64_t blocks = grid_for(threads, kUpdateThreads, blocks_of_device(kBlocksEach)).blocks;
  if (!several) return blocks;
  const int64_t runs_of_group = blocks > blocks_of_device(kBlocksEachOfSeveral) ? kRunsOfGroup : 2 * kRunsOfGroup;
  return (blocks + runs_of_group - 1) / runs_of_group;
}

/// Runs update_rows() for rows that are accessed through Rows.
template <class Rows>
void update_rows_of(Context& ctx, const Optimizer& optimizer, const KeyBatch& batch, const RowGroups& groups,
                    Combiner combiner, const Tensor& dy, const float* piece_sums, const RowData& data) {
  const bool several = ctx.queue() && ctx.queue()->several();
  dispatch_gradients<Rows>(
      batch, groups, combiner, dy, [&]<class Dy, int Width>(const BagGradients<Dy, Width>& gradients, int lanes) {
        dispatch_row_rule(optimizer, data, [&]<class Rule>() {
          const int64_t blocks = update_blocks(batch.key_capacity, lanes, several);
          if constexpr (std::is_same_v<Rows, PlainRows>)
            launch_lockstep<update_runs<Rule, Rows, Dy, Width>, kUpdateThreads, kBlocksThatFit<Rule, Width>>(
                ctx, "update_rows", blocks, optimizer, ctx.state(), gradients, groups, piece_sums, data, lanes);
          else
            launch_single<update_runs<Rule, Rows, Dy, Width>, kUpdateThreads>(
                ctx, "update_rows", blocks, optimizer, ctx.state(), gradients, groups, piece_sums, data, lanes);
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
