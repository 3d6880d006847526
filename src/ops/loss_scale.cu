// One thread updates the scale. The search reads gradients once; only threads that found an overflow write.
#include "ops/loss_scale.h"

#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

__global__ void begin_kernel(const LossScale* scale, StepState* state, float* overflow) {
  cuda::start_early();
  state->loss_scale = scale->scale;
  state->updates = state->updates_before + state->step - scale->skipped;
  state->skip = 0;
  *overflow = 0;
}

__global__ void end_kernel(LossScaleRule rule, const float* overflow, LossScale* scale, StepState* state) {
  rule.finish(*overflow > 0, *scale, *state);
}

/// Of the elements of this thread.
template <int V, class T>
__device__ void search_overflow(const View<const T, 2>& g, const OverflowSearch& search) {
  const int64_t rows = g.size(0), columns = g.size(1), per_row = cuda::chunks_per_row(columns, V);
  bool all_fit = true;
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    float values[V] = {};
    cuda::read<V>(g.row(s.row) + s.column, columns - s.column, values);
#pragma unroll
    for (int j = 0; j < V; ++j) all_fit = all_fit && fabsf(values[j]) <= search.largest;  // false for NaN
  }
  if (!all_fit) *search.found = 1;  // all threads that write, write the same value
}

template <int V, class T>
__global__ void find_overflow_kernel(View<const T, 2> g, OverflowSearch search) {
  search_overflow<V>(g, search);
}

/// The last block to be done with the search ends the step.
template <int V, class T>
__global__ void end_after_search_kernel(View<const T, 2> g, OverflowSearch search, LossScaleRule rule,
                                        int32_t* blocks_done, LossScale* scale, StepState* state) {
  cuda::start_early();
  search_overflow<V>(g, search);
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(blocks_done, 1) != static_cast<int32_t>(gridDim.x) - 1) return;
  __threadfence();
  *blocks_done = 0;
  rule.finish(*static_cast<volatile float*>(search.found) > 0, *scale, *state);
}

}  // namespace

void cuda::begin_scaled_step(Context& ctx, const LossScale* scale, StepState* state, Tensor overflow) {
  launch(ctx, "begin_scaled_step", early({1, 1}), begin_kernel, scale, state, overflow.data<float>());
}

void cuda::find_overflow(Context& ctx, Tensor g, OverflowSearch search) {
  const Extent extent = extent_of({g});
  dispatch_float(g.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> rows = rows_of<const T>(g, extent);
    if (takes_packs<V>(rows))
      launch(ctx, "find_overflow", grid_for(extent.rows * chunks_per_row(extent.columns, V)),
             find_overflow_kernel<V, T>, rows, search);
    else
      launch(ctx, "find_overflow", grid_for(extent.rows * extent.columns), find_overflow_kernel<1, T>, rows, search);
  });
}

void cuda::end_scaled_step_after_search(Context& ctx, Tensor g, OverflowSearch search, LossScaleRule rule, Tensor,
                                        Tensor blocks_done, LossScale* scale, StepState* state) {
  constexpr int kThreads = 512, kBlocksEach = 4;  // few, since all of them count in one place
  const Extent extent = extent_of({g});
  dispatch_float(g.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> rows = rows_of<const T>(g, extent);
    const bool packs = takes_packs<V>(rows);
    const int64_t items = extent.rows * chunks_per_row(extent.columns, packs ? V : 1);
    launch(ctx, "end_scaled_step_after_search",
           early(grid_for(std::max<int64_t>(items, 1), kThreads, hctr::cuda::blocks_of_device(kBlocksEach))),
           packs ? end_after_search_kernel<V, T> : end_after_search_kernel<1, T>, rows, search, rule,
           blocks_done.data<int32_t>(), scale, state);
  });
}

void cuda::end_scaled_step(Context& ctx, LossScaleRule rule, Tensor overflow, LossScale* scale, StepState* state) {
  launch(ctx, "end_scaled_step", Grid{1, 1}, end_kernel, rule, overflow.data<float>(), scale, state);
}

}  // namespace hctr::ops
