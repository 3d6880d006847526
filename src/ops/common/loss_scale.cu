// Loss scaling kernels. One thread updates the scale. The overflow check reads each gradient once; only threads that
// found an overflow write the flag.
#include "ops/common/loss_scale.h"

#include "ops/common/element_loops.cuh"

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

/// Checks this thread's elements of g for overflow.
template <int V, class T>
__device__ void search_overflow(int64_t thread, int64_t threads, const View<const T, 2>& g,
                                const OverflowSearch& search) {
  const int64_t rows = g.size(0), columns = g.size(1), per_row = cuda::chunks_per_row(columns, V);
  bool all_fit = true;
#pragma unroll 4  // four loads run concurrently
  for (int64_t i = thread; i < rows * per_row; i += threads) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    float values[V] = {};
    cuda::read<V>(g.row(s.row) + s.column, columns - s.column, values);
#pragma unroll
    for (int j = 0; j < V; ++j) all_fit = all_fit && fabsf(values[j]) <= search.largest;  // NaN: false
  }
  if (!all_fit) *search.found = 1;  // a benign race, because every thread writes the same value
}

template <int V, class T>
__global__ void find_overflow_kernel(View<const T, 2> g, OverflowSearch search) {
  search_overflow<V>(cuda::thread_index(), cuda::thread_count(), g, search);
}

/// A tensor whose dtype is dispatched in the kernel, since one kernel checks tensors of several dtypes.
struct SearchedTensor {
  View<const std::byte, 2> rows;  ///< row_stride counts elements of `dtype`
  DType dtype;
  bool packs;  ///< whether 16-byte loads are aligned (cuda::takes_packs())

  template <class T>
  __device__ void search_as(int64_t thread, int64_t threads, const OverflowSearch& search) const {
    const View<const T, 2> g{reinterpret_cast<const T*>(rows.data), {rows.size(0), rows.size(1)}, rows.row_stride};
    if (packs)
      search_overflow<16 / sizeof(T)>(thread, threads, g, search);
    else
      search_overflow<1>(thread, threads, g, search);
  }
  __device__ void search(int64_t thread, int64_t threads, const OverflowSearch& search) const {
    if (dtype == DType::f16)
      search_as<Half>(thread, threads, search);
    else if (dtype == DType::bf16)
      search_as<BFloat16>(thread, threads, search);
    else
      search_as<float>(thread, threads, search);
  }
};

struct SearchedTensors {
  static constexpr int kMost = 48;
  int count = 0;
  int32_t first_block[kMost + 1] = {};
  SearchedTensor of[kMost];
};

/// Checks all tensors for overflow. The last block to finish updates the scale.
__global__ void end_after_search_kernel(const __grid_constant__ SearchedTensors all, OverflowSearch search,
                                        LossScaleRule rule, int32_t* blocks_done, LossScale* scale, StepState* state) {
  cuda::start_early();
  const auto block = static_cast<int32_t>(blockIdx.x);
  int of = 0;
  while (of + 1 < all.count && block >= all.first_block[of + 1]) ++of;
  const int32_t first = all.first_block[of], blocks = all.first_block[of + 1] - first;
  if (block < first + blocks)
    all.of[of].search(int64_t{block - first} * blockDim.x + threadIdx.x, int64_t{blocks} * blockDim.x, search);
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

void cuda::end_scaled_step_after_search(Context& ctx, const std::vector<Tensor>& all, OverflowSearch search,
                                        LossScaleRule rule, Tensor, Tensor blocks_done, LossScale* scale,
                                        StepState* state) {
  constexpr int kThreads = 1024,
                // few blocks, because each block increments one shared counter, and because other kernels run
                // concurrently
      kBlocksEach = 1;
  SearchedTensors list;
  for (const Tensor& g : all) {
    if (list.count == SearchedTensors::kMost) {
      cuda::find_overflow(ctx, g, search);
      continue;
    }
    const Extent extent = extent_of({g});
    if (extent.rows * extent.columns == 0) continue;
    dispatch_float(g.dtype(), [&]<class T>() {
      constexpr int V = 16 / sizeof(T);
      const View<const T, 2> rows = rows_of<const T>(g, extent);
      const bool packs = takes_packs<V>(rows);
      const int64_t items = extent.rows * chunks_per_row(extent.columns, packs ? V : 1);
      const int64_t blocks = grid_for(items, kThreads, hctr::cuda::blocks_of_device(kBlocksEach)).blocks;
      list.of[list.count] = {
          {reinterpret_cast<const std::byte*>(rows.data), {extent.rows, extent.columns}, rows.row_stride},
          g.dtype(),
          packs};
      list.first_block[list.count + 1] = list.first_block[list.count] + static_cast<int32_t>(blocks);
    });
    ++list.count;
  }
  launch(ctx, "end_scaled_step_after_search", early({std::max<int64_t>(1, list.first_block[list.count]), kThreads}),
         end_after_search_kernel, list, search, rule, blocks_done.data<int32_t>(), scale, state);
}

void cuda::end_scaled_step(Context& ctx, LossScaleRule rule, Tensor overflow, LossScale* scale, StepState* state) {
  launch(ctx, "end_scaled_step", Grid{1, 1}, end_kernel, rule, overflow.data<float>(), scale, state);
}

}  // namespace hctr::ops
