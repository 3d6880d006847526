// GEMMs for a small batch, on compute capability 9.0. The weights are constant, so each thread loads its first weights
// before the kernel waits for its predecessor: the loads overlap earlier kernels. Blocks of a cluster share k. The
// terms of an element are summed in this order: over the loads of a thread, over the threads of a warp (as a tree),
// over the warps of a block, over the blocks of the cluster. This order depends on k and the dtype alone.
#include "core/device/launch.cuh"
#include "ops/common/element_loops.cuh"
#include "ops/gemm/few_rows.h"
#include "ops/gemm/hopper.cuh"

namespace hctr::ops {
namespace {

/// Operands of the kernel. `columns`: number of groups of kColumns columns in the result.
template <class T>
struct FewRowsOperands {
  View<const T, 2> x, w;
  const T* bias;
  View<T, 2> y;
  int columns, passes;
  bool relu;
};

/// Distance in shared memory, in floats, between the values of two consecutive k. Eight values are padded to twelve
/// against bank conflicts.
constexpr int few_rows_stride(int rows) { return rows == 8 ? 12 : rows; }

template <int kRows>
__device__ inline void read_rows(const float* from, float (&to)[kRows]) {
  if constexpr (kRows >= 4) {
#pragma unroll
    for (int r = 0; r < kRows; r += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + r);
      to[r] = four.x, to[r + 1] = four.y, to[r + 2] = four.z, to[r + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int r = 0; r < kRows; ++r) to[r] = from[r];
  }
}

/// Loads a thread's weights of one pass, from row `first` on; zeros past the last row and column.
template <class T, class Threads>
__device__ inline void load_weights(const View<const T, 2>& w, int64_t first, int column,
                                    cuda::Pack<T, Threads::kEach> (&to)[Threads::kLoads]) {
#pragma unroll
  for (int i = 0; i < Threads::kLoads; ++i) {
    const int64_t k = first + Threads::row(static_cast<int>(threadIdx.x), i);
    uint4 bits{};
    if (k < w.size(0) && column < w.size(1)) bits = __ldg(reinterpret_cast<const uint4*>(w.row(k) + column));
    to[i] = *reinterpret_cast<const cuda::Pack<T, Threads::kEach>*>(&bits);
  }
}

/// Copies x[first_row ..., first_k ...] to shared memory, k by k; zeros past the last row and k.
template <class T, int kRows, class Threads>
__device__ inline void stage_rows(const View<const T, 2>& x, int64_t first_row, int64_t first_k, float* to) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kRows * FewRowsSplit::kRows; i += Threads::kThreads) {
    const int r = i / FewRowsSplit::kRows, k = i % FewRowsSplit::kRows;
    const bool exists = first_row + r < x.size(0) && first_k + k < x.size(1);
    to[k * few_rows_stride(kRows) + r] = exists ? static_cast<float>(x.row(first_row + r)[first_k + k]) : 0.0f;
  }
}

/// Sums over the rows of a warp. In each round a lane keeps one half of its columns and sends the other half. The sum
/// of column Threads::column_of_lane() remains in sum[r][0].
template <int kRows, int kEach>
__device__ inline void sum_warp(float (&sum)[kRows][kEach]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int width = kEach / 2, mask = 16; width > 0; width /= 2, mask /= 2) {
    const bool upper = (lane & mask) != 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < width; ++c) {
        const float kept = upper ? sum[r][c + width] : sum[r][c], sent = upper ? sum[r][c] : sum[r][c + width];
        sum[r][c] = kept + __shfl_xor_sync(0xffffffffu, sent, mask);
      }
  }
}

template <class T, int kRows, int kSplit>
__global__ void __cluster_dims__(kSplit, 1, 1) __launch_bounds__(FewRowsThreads<T>::kThreads, 2)
    few_rows_kernel(const FewRowsOperands<T> of) {
  using Threads = FewRowsThreads<T>;
  constexpr int kElements = kRows * Threads::kColumns, kShare = kElements / kSplit;
  static_assert(kElements <= Threads::kThreads && kElements % kSplit == 0);
  __shared__ alignas(16) float rows[FewRowsSplit::kRows * few_rows_stride(kRows)];
  __shared__ float of_warps[Threads::kWarps][kElements];
  __shared__ float of_blocks[kSplit][kShare];

  const int thread = static_cast<int>(threadIdx.x), rank = static_cast<int>(blockIdx.x) % kSplit;
  const int tile = static_cast<int>(blockIdx.x) / kSplit, first_row = tile / of.columns * kRows;
  const int first_column = tile % of.columns * Threads::kColumns,
            own_column = first_column + Threads::first_column(thread);
  const FewRowsSplit split{kSplit, of.passes};
  // The element that this thread finishes; element e of a tile has row e / kColumns.
  const int element = rank * kShare + thread, row = first_row + element / Threads::kColumns,
            column = first_column + element % Threads::kColumns;
  const bool finishes = thread < kShare && row < of.y.size(0) && column < of.y.size(1);

  cudaTriggerProgrammaticLaunchCompletion();
  if constexpr (kSplit > 1) hopper::arrive_at_cluster();  // other blocks may now write sums to this block
  cuda::Pack<T, Threads::kEach> weights[Threads::kLoads];
  load_weights<T, Threads>(of.w, split.first_row(rank, 0), own_column, weights);
  const float bias = finishes ? static_cast<float>(of.bias[column]) : 0.0f;
  cudaGridDependencySynchronize();

  float sum[kRows][Threads::kEach] = {};
  for (int pass = 0; pass < of.passes; ++pass) {
    if (pass > 0) {
      load_weights<T, Threads>(of.w, split.first_row(rank, pass), own_column, weights);
      __syncthreads();  // all threads have read `rows`
    }
    stage_rows<T, kRows, Threads>(of.x, first_row, split.first_row(rank, pass), rows);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Threads::kLoads; ++i) {
      float in[kRows];
      read_rows<kRows>(rows + Threads::row(thread, i) * few_rows_stride(kRows), in);
#pragma unroll
      for (int c = 0; c < Threads::kEach; ++c) {
        const auto weight = static_cast<float>(weights[i].at[c]);
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r][c] = fmaf(in[r], weight, sum[r][c]);
      }
    }
  }
  sum_warp(sum);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    of_warps[thread / 32][r * Threads::kColumns + Threads::column_of_lane(thread % 32)] = sum[r][0];
  __syncthreads();

  float total = 0;
  if (thread < kElements) {
#pragma unroll
    for (int warp = 0; warp < Threads::kWarps; ++warp) total += of_warps[warp][thread];
  }
  if constexpr (kSplit > 1) {
    hopper::wait_for_cluster();  // every block of the cluster has started
    if (thread < kElements) hopper::store_in_block(&of_blocks[rank][thread % kShare], thread / kShare, total);
    hopper::arrive_at_cluster();
    hopper::wait_for_cluster();
    total = 0;
    if (finishes) {
#pragma unroll
      for (int block = 0; block < kSplit; ++block) total += of_blocks[block][thread];
    }
  }
  if (!finishes) return;
  total += bias;
  if (of.relu && total < 0) total = 0;  // a NaN stays NaN
  of.y.row(row)[column] = static_cast<T>(total);
}

template <class T, int kRows, int kSplit>
void launch_few_rows(Context& ctx, const FewRowsOperands<T>& of) {
  const int64_t tiles = (of.y.size(0) + kRows - 1) / kRows * of.columns;
  hctr::cuda::launch(ctx, "few_rows_linear", hctr::cuda::early({tiles * kSplit, FewRowsThreads<T>::kThreads, 0}),
                     few_rows_kernel<T, kRows, kSplit>, of);
}

template <class T, int kRows>
void launch_few_rows(Context& ctx, const FewRowsOperands<T>& of, int split) {
  if (split == 1) return launch_few_rows<T, kRows, 1>(ctx, of);
  if (split == 2) return launch_few_rows<T, kRows, 2>(ctx, of);
  if (split == 4) return launch_few_rows<T, kRows, 4>(ctx, of);
  launch_few_rows<T, kRows, 8>(ctx, of);
}

}  // namespace

void hopper::few_rows_linear(Context& ctx, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int kColumns = FewRowsThreads<T>::kColumns;
    const FewRowsSplit split = few_rows_split(w.dim(0));
    const FewRowsOperands<T> of{.x = x.view<const T, 2>(),
                                .w = w.view<const T, 2>(),
                                .bias = bias.data<const T>(),
                                .y = y.view<T, 2>(),
                                .columns = static_cast<int>((y.dim(1) + kColumns - 1) / kColumns),
                                .passes = split.passes,
                                .relu = relu};
    if (y.dim(0) == 1) return launch_few_rows<T, 1>(ctx, of, split.blocks);
    if (y.dim(0) == 2) return launch_few_rows<T, 2>(ctx, of, split.blocks);
    if (y.dim(0) <= 4) return launch_few_rows<T, 4>(ctx, of, split.blocks);
    launch_few_rows<T, 8>(ctx, of, split.blocks);
  });
}

}  // namespace hctr::ops
