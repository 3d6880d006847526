// The wgrads of several layers in one kernel, in two-byte types, for compute capability 9.0.
//
// One block per multiprocessor, or fewer blocks with equal numbers of tiles, computes tiles of the GEMMs x^T d_y. One
// warp copies TMA boxes of 64 columns and 64 samples of both operands to pipeline stages in shared memory. Two groups
// of four warps multiply the operands. The summed dimension, the samples, is contiguous in neither operand; the MMA
// instruction transposes both. One thread sums each element over all samples, in the same order for both tile sizes.
// The bits of an element therefore do not depend on the other GEMMs.
//
// Copies from L2 take longer than the MMAs. Tiles of 256 x 128 or 128 x 256 fill the registers of two groups and need
// the fewest copies in total. But if the number of 128 x 128 tiles is at most the number of multiprocessors, each
// multiprocessor computes one small tile, which needs fewer copies per block. A launch therefore uses the tile size
// with the fewest box copies per block. The producer warp prefetches the next tile while the groups store the current
// tile. Multiprocessors without a block are free for the kernels of embedding tables.
#include "ops/gemm/weight_gradient.cuh"

#include <span>

#include "core/device/profiler.h"
#include "ops/gemm/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kWeightGroups = 2, kWeightThreads = 128 * kWeightGroups + 32;

/// Tile sizes and pipeline stages of a block. Each group computes the rows of kOfGroup MMA instructions, 64 rows each.
/// A stage has boxes of kSamples samples and kBoxColumns columns: the boxes of the tile's rows, then of its columns. In
/// tile sizes that may be transposed, each group has a square part.
template <int kOfGroup>
struct TwoByteTiles : TurnedWeightTiles<64 * kOfGroup * kWeightGroups, 128> {
  static constexpr int kInstructions = kOfGroup, kRowsOfInstruction = 64, kWidth = 128;
  static constexpr int kRowsOfGroup = kRowsOfInstruction * kInstructions;
  static constexpr int kSamples = 64, kBoxColumns = 64, kBoxBytes = kSamples * 128;
  static constexpr int kBoxesOfGroup = kRowsOfGroup / kBoxColumns, kBoxesOfRows = kBoxesOfGroup * kWeightGroups;
  static constexpr int kBoxesOfColumns = kWidth / kBoxColumns, kBoxes = kBoxesOfRows + kBoxesOfColumns;
  static constexpr int kStageBytes = kBoxes * kBoxBytes, kStages = 192 * 1024 / kStageBytes;
  // each group's part is square, or tiles are never transposed
  static_assert(kRowsOfGroup == kWidth || kRowsOfGroup * kWeightGroups == kWidth);

  /// A thread's accumulators for its group's part of a tile, in the layout of the MMA instructions.
  struct Sums {
    float d[kInstructions][kWidth / 2];
  };

  static __device__ int steps(const WeightTile& tile) { return (tile.product.batch + kSamples - 1) / kSamples; }
};
using SmallWeightTiles = TwoByteTiles<1>;
using LargeWeightTiles = TwoByteTiles<2>;

/// This thread's group of four warps, and its index in the group.
__device__ inline int group() { return static_cast<int>(threadIdx.x) / 128; }
__device__ inline int thread_of_group() { return static_cast<int>(threadIdx.x) % 128; }

/// Shared memory of a block.
template <class Tiles>
struct TwoByteStorage {
  std::byte stages[Tiles::kStages * Tiles::kStageBytes];
  Pipeline<Tiles::kStages> operands;

  /// To be called from all threads of the block.
  __device__ void init_barriers() {
    if (threadIdx.x == 0) {
      operands.init(1, kWeightGroups);
      fence_mbarrier_init();
    }
    __syncthreads();
  }
};

/// Producer, one thread: copies both operands of a tile, step by step, from the pipeline position `at` on.
template <class Tiles>
__device__ inline void load_weight_tile(const WeightTile& tile, TwoByteStorage<Tiles>& shared,
                                        PipelineState<Tiles::kStages>& at) {
  constexpr int kBox = Tiles::kBoxColumns;
  const CUtensorMap &of_rows = tile.map_of_rows(), &of_columns = tile.map_of_columns();
  const int steps = Tiles::steps(tile);
  for (int step = 0; step < steps; ++step, at.advance()) {
    const int sample = step * Tiles::kSamples;
    shared.operands.producer_acquire(at);
    std::byte* to = shared.stages + at.stage * Tiles::kStageBytes;
    uint64_t* const full = shared.operands.producer_barrier(at.stage);
    shared.operands.producer_expect_tx(at.stage, Tiles::kStageBytes);
    for (int i = 0; i < Tiles::kBoxesOfRows; ++i, to += Tiles::kBoxBytes)
      tma_load(to, of_rows, tile.row + kBox * i, sample, full);
    for (int i = 0; i < Tiles::kBoxesOfColumns; ++i, to += Tiles::kBoxBytes)
      tma_load(to, of_columns, tile.column + kBox * i, sample, full);
  }
}

/// Computes a group's part of a tile. The first MMA operand always has the rows of the result. In a transposed tile,
/// the rows of the result are the tile's columns, which both groups read.
template <class T, class Tiles>
__device__ inline void multiply_weight_tile(const WeightTile& tile, TwoByteStorage<Tiles>& shared,
                                            PipelineState<Tiles::kStages>& at, typename Tiles::Sums& sums) {
  constexpr int kBoxBytes = Tiles::kBoxBytes;
  const int own = group() * Tiles::kBoxesOfGroup * kBoxBytes, of_both = Tiles::kBoxesOfRows * kBoxBytes;
  const int first_at = tile.transposed ? of_both : own, second_at = tile.transposed ? own : of_both;
  consume_stages<true>(shared.operands, at, Tiles::steps(tile), thread_of_group() == 0, [&](int stage, int step) {
    const std::byte* const boxes = shared.stages + stage * Tiles::kStageBytes;
    uint64_t first = transposed_matrix_descriptor(boxes + first_at, kBoxBytes);
    uint64_t second = transposed_matrix_descriptor(boxes + second_at, kBoxBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < Tiles::kSamples / 16; ++k) {
#pragma unroll
      for (int i = 0; i < Tiles::kInstructions; ++i)
        wgmma<T, Tiles::kWidth, true>(sums.d[i], first + i * (kBoxBytes >> 4), second, step > 0 || k > 0);
      first += 16 * 128 >> 4;  // advances by 16 samples
      second += 16 * 128 >> 4;
    }
    wgmma_commit_group();
  });
}

/// A lane has two adjacent columns in each of two groups of eight columns. The lane exchanges one pair with its
/// neighbor lane and returns four adjacent columns: even lanes in the first group, odd lanes in the second.
__device__ inline float4 exchange_for_four(const float2& of_first, const float2& of_second) {
  const bool odd = threadIdx.x % 2;
  const float2 kept = odd ? of_second : of_first, given = odd ? of_first : of_second;
  const float x = __shfl_xor_sync(~0u, given.x, 1), y = __shfl_xor_sync(~0u, given.y, 1);
  return odd ? make_float4(x, y, kept.x, kept.y) : make_float4(kept.x, kept.y, x, y);
}

/// Stores a group's part of a tile. Four lanes store 64 adjacent bytes. kFours: whether has_fours(). If true, the code
/// is short enough to avoid instruction cache misses.
template <bool kFours, class Tiles>
__device__ inline void store_weight_part(const WeightTile& tile, const typename Tiles::Sums& sums) {
  const WeightProduct& product = tile.product;
  const int thread = thread_of_group(), lane = thread % 32, own = group() * Tiles::kRowsOfGroup;
  const int first_row = (tile.transposed ? tile.column : tile.row + own) + thread / 32 * 16 + lane / 4;
  const int first_column = (tile.transposed ? tile.row + own : tile.column) + lane % 2 * 8 + lane / 2 % 2 * 4;
#pragma unroll
  for (int i = 0; i < Tiles::kInstructions; ++i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first_row + Tiles::kRowsOfInstruction * i + 8 * r;
      float* const to = product.d_w + row * product.stride;
#pragma unroll
      for (int j = 0; j < Tiles::kWidth / 16; ++j) {
        const float* const d = sums.d[i] + 8 * j + 2 * r;
        const float4 four = exchange_for_four(make_float2(d[0], d[1]), make_float2(d[4], d[5]));
        const int column = first_column + 16 * j;
        if (row < product.in) store_four<kFours>(to + column, four, product.out - column);
      }
    }
  }
}
template <class Tiles>
__device__ inline void store_weight_gradient(const WeightTile& tile, const typename Tiles::Sums& sums) {
  if (has_fours(tile.product))
    store_weight_part<true, Tiles>(tile, sums);
  else
    store_weight_part<false, Tiles>(tile, sums);
}

template <class T, class Tiles>
__global__ void __launch_bounds__(kWeightThreads, 1)
    weight_gradient_kernel(const __grid_constant__ WeightProducts list) {
  auto& shared = shared_storage<TwoByteStorage<Tiles>>();
  const int own = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const bool copies = threadIdx.x == 128 * kWeightGroups;
  if (copies) {
    const WeightProduct& product = list.jobs[product_of(list, own)];
    prefetch_tensormap(product.x);
    prefetch_tensormap(product.d_y);
  }
  shared.init_barriers();

  PipelineState<Tiles::kStages> at;
  const int tiles = list.first_block[list.count];
  if (copies) {
    for (int number = own; number < tiles; number += blocks) load_weight_tile(Tiles::tile(list, number), shared, at);
  } else if (threadIdx.x < 128 * kWeightGroups) {
    for (int number = own; number < tiles; number += blocks) {
      const WeightTile tile = Tiles::tile(list, number);
      typename Tiles::Sums sums;
      multiply_weight_tile<T, Tiles>(tile, shared, at, sums);
      store_weight_gradient<Tiles>(tile, sums);
    }
  }
}

/// Maximum number of tiles of the list per block.
int64_t weight_rounds(const WeightProducts& list) {
  const int64_t tiles = list.first_block[list.count], processors = hctr::cuda::multiprocessors();
  return (tiles + processors - 1) / processors;
}

/// Number of boxes that a block copies per kSamples samples, over all its tiles.
template <class Tiles>
int64_t boxes_of_block(WeightProducts list) {
  set_first_blocks<Tiles>(list);
  return weight_rounds(list) * Tiles::kBoxes;
}
bool has_large_tiles(const WeightProducts& list) {
  return boxes_of_block<LargeWeightTiles>(list) < boxes_of_block<SmallWeightTiles>(list);
}

template <class T, class Tiles>
void start_weight_tiles(Context& ctx, WeightProducts& list) {
  set_first_blocks<Tiles>(list);
  const int64_t tiles = list.first_block[list.count], rounds = weight_rounds(list);
  // No early start: waiting blocks would occupy multiprocessors that embedding tables need.
  const hctr::cuda::Grid grid{(tiles + rounds - 1) / rounds, kWeightThreads, shared_bytes<TwoByteStorage<Tiles>>()};
  hctr::cuda::launch(ctx, "weight_gradient", grid, weight_gradient_kernel<T, Tiles>, list);
}

template <class T>
void start_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  while (!launches.empty()) {
    WeightProducts list;
    for (; list.count < WeightProducts::kMost && list.count < static_cast<int>(launches.size()); ++list.count)
      list.jobs[list.count] = weight_product(*launches[static_cast<size_t>(list.count)]);
    launches = launches.subspan(static_cast<size_t>(list.count));
    count_flops(ctx, flops_of(list));
    if (has_large_tiles(list))
      start_weight_tiles<T, LargeWeightTiles>(ctx, list);
    else
      start_weight_tiles<T, SmallWeightTiles>(ctx, list);
  }
}

}  // namespace

void hopper::add_weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  using hctr::cuda::tensor_map;
  using Tiles = SmallWeightTiles;  // all tile sizes use the same boxes
  const CUtensorMap map_x = tensor_map(x, Tiles::kBoxColumns, Tiles::kSamples);
  const CUtensorMap map_d_y = tensor_map(d_y, Tiles::kBoxColumns, Tiles::kSamples);
  add_weight_product(ctx, weight_product(x, map_x, d_y, map_d_y, d_w),
                     x.dtype() == DType::bf16 ? start_weight_gradients<BFloat16> : start_weight_gradients<Half>);
}

}  // namespace hctr::ops
