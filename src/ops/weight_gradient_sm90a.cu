// The gradients of the weights of several layers in one kernel, for GPUs of compute capability 9.0.
//
// A block for each multiprocessor, or fewer with as many tiles each, computes tiles of 256 x 128, or 128 x 256, of the
// products x^T d_y. One warp copies boxes of 64 columns of 64 samples of both operands to a ring in shared memory; two
// groups of four warps multiply them, 128 x 128 of the result each. The samples, over which is summed, are not adjacent
// in either operand: the matrix instruction transposes both. Each element is summed over all samples in one place, so
// its bits do not depend on the other products.
//
// Copies from the L2 cache take longer than products. So tiles are as large as the registers of two groups, and the
// warp that copies is ahead with the next tile while the groups store one. Multiprocessors that are left over serve
// tables.
#include "ops/weight_gradient.cuh"

#include <span>

#include "device/profiler.h"
#include "ops/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kWeightGroups = 2, kWeightThreads = 128 * kWeightGroups + 32;

/// Tiles, and the ring of a block. A stage of it has boxes of kSamples samples of kBoxColumns columns: first those of
/// the rows of a tile, then those of its columns. Each group has a square part of a tile: as many of its rows as it has
/// columns.
struct TwoByteTiles : TurnedWeightTiles<128 * kWeightGroups, 128> {
  static constexpr int kSamples = 64, kBoxColumns = 64, kBoxBytes = kSamples * 128;
  static constexpr int kBoxesOfColumns = kColumns / kBoxColumns, kBoxesOfRows = kWeightGroups * kBoxesOfColumns;
  static constexpr int kStageBytes = (kBoxesOfRows + kBoxesOfColumns) * kBoxBytes, kStages = 4;
  static constexpr size_t kSharedBytes = kStages * kStageBytes + 2 * kStages * sizeof(uint64_t) + 1024;
  static_assert(kSharedBytes <= 227 * 1024);

  static __device__ int steps(const WeightTile& tile) { return (tile.product.batch + kSamples - 1) / kSamples; }
};

/// What a thread has of its group's part of a tile, as two instructions of 64 rows each leave it.
struct WeightSums {
  static constexpr int kInstructions = 2, kRows = 64;
  float d[kInstructions][TwoByteTiles::kColumns / 2];
};

/// The group of four warps that this thread belongs to, and its place there.
__device__ inline int group() { return static_cast<int>(threadIdx.x) / 128; }
__device__ inline int thread_of_group() { return static_cast<int>(threadIdx.x) % 128; }

/// Where the stages of a block are, with the barriers of each: full once copied, empty once both groups have read it.
struct TwoByteRing {
  std::byte* boxes;
  uint64_t *full, *empty;

  __device__ explicit TwoByteRing(std::byte* dynamic_shared) {
    const uint32_t misaligned = shared_address(dynamic_shared) % 1024;
    boxes = dynamic_shared + (misaligned ? 1024 - misaligned : 0);
    full = reinterpret_cast<uint64_t*>(boxes + TwoByteTiles::kStages * TwoByteTiles::kStageBytes);
    empty = full + TwoByteTiles::kStages;
  }

  /// By all threads of the block.
  __device__ void init_barriers() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < TwoByteTiles::kStages; ++s) {
        init_barrier(full + s, 1);
        init_barrier(empty + s, kWeightGroups);
      }
      fence_barrier_init();
    }
    __syncthreads();
  }

  /// By one thread: copies both operands of a tile, step by step, from this place on.
  __device__ void load(const WeightTile& tile, RingPosition<TwoByteTiles>& place) const {
    constexpr int kBox = TwoByteTiles::kBoxColumns;
    const CUtensorMap &of_rows = tile.map_of_rows(), &of_columns = tile.map_of_columns();
    const int steps = TwoByteTiles::steps(tile);
    for (int step = 0; step < steps; ++step, place.advance()) {
      const int sample = step * TwoByteTiles::kSamples;
      wait_for(empty + place.stage, place.parity ^ 1);
      std::byte* at = boxes + place.stage * TwoByteTiles::kStageBytes;
      uint64_t* const copied = full + place.stage;
      arrive_and_expect(copied, TwoByteTiles::kStageBytes);
      for (int i = 0; i < TwoByteTiles::kBoxesOfRows; ++i, at += TwoByteTiles::kBoxBytes)
        load_box(at, of_rows, tile.row + kBox * i, sample, copied);
      for (int i = 0; i < TwoByteTiles::kBoxesOfColumns; ++i, at += TwoByteTiles::kBoxBytes)
        load_box(at, of_columns, tile.column + kBox * i, sample, copied);
    }
  }
};

/// By a group: the product of its part of a tile. The rows of the result are always the first operand: of a transposed
/// tile those are its columns, which both groups have.
template <class T>
__device__ inline void multiply_weight_tile(const WeightTile& tile, const TwoByteRing& ring,
                                            RingPosition<TwoByteTiles>& place, WeightSums& sums) {
  constexpr int kBoxBytes = TwoByteTiles::kBoxBytes, kColumns = TwoByteTiles::kColumns;
  const int own = group() * TwoByteTiles::kBoxesOfColumns * kBoxBytes, of_both = TwoByteTiles::kBoxesOfRows * kBoxBytes;
  const int first_at = tile.transposed ? of_both : own, second_at = tile.transposed ? own : of_both;
  const int steps = TwoByteTiles::steps(tile);
  uint64_t* before = nullptr;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, place.advance()) {
    wait_for(ring.full + place.stage, place.parity);
    const std::byte* at = ring.boxes + place.stage * TwoByteTiles::kStageBytes;
    uint64_t first = describe_transposed(at + first_at, kBoxBytes);
    uint64_t second = describe_transposed(at + second_at, kBoxBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < TwoByteTiles::kSamples / 16; ++k) {
#pragma unroll
      for (int i = 0; i < WeightSums::kInstructions; ++i)
        multiply<T, kColumns, true>(sums.d[i], first + i * (kBoxBytes >> 4), second, step > 0 || k > 0);
      first += 16 * 128 >> 4;  // 16 samples
      second += 16 * 128 >> 4;
    }
    commit_products();
    wait_for_products<1>();
    if (before && thread_of_group() == 0) arrive(before);
    before = ring.empty + place.stage;
  }
  wait_for_products<0>();
  if (thread_of_group() == 0) arrive(before);
}

/// Of two times eight columns a lane has two adjacent ones each. It gives those that its neighbour wants for those that
/// the neighbour has: returns four adjacent ones, even lanes of the first eight, odd lanes of the second.
__device__ inline float4 exchange_for_four(const float2& of_first, const float2& of_second) {
  const bool odd = threadIdx.x % 2;
  const float2 kept = odd ? of_second : of_first, given = odd ? of_first : of_second;
  const float x = __shfl_xor_sync(~0u, given.x, 1), y = __shfl_xor_sync(~0u, given.y, 1);
  return odd ? make_float4(x, y, kept.x, kept.y) : make_float4(kept.x, kept.y, x, y);
}

/// By a group: stores its part of a tile. Four lanes store 64 adjacent bytes. kFours: all fours of the result are whole
/// and aligned; the code is then short enough not to wait for instructions.
template <bool kFours>
__device__ inline void store_weight_part(const WeightTile& tile, const WeightSums& sums) {
  constexpr int kColumns = TwoByteTiles::kColumns;
  const WeightProduct& product = tile.product;
  const int thread = thread_of_group(), lane = thread % 32, own = group() * kColumns;
  const int first_row = (tile.transposed ? tile.column : tile.row + own) + thread / 32 * 16 + lane / 4;
  const int first_column = (tile.transposed ? tile.row + own : tile.column) + lane % 2 * 8 + lane / 2 % 2 * 4;
#pragma unroll
  for (int i = 0; i < WeightSums::kInstructions; ++i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first_row + WeightSums::kRows * i + 8 * r;
      float* const to = product.d_w + row * product.stride;
#pragma unroll
      for (int j = 0; j < kColumns / 16; ++j) {
        const float* const d = sums.d[i] + 8 * j + 2 * r;
        const float4 four = exchange_for_four(make_float2(d[0], d[1]), make_float2(d[4], d[5]));
        const int column = first_column + 16 * j;
        if (row < product.in) store_four<kFours>(to + column, four, product.out - column);
      }
    }
  }
}
__device__ inline void store_weight_gradient(const WeightTile& tile, const WeightSums& sums) {
  if (has_fours(tile.product))
    store_weight_part<true>(tile, sums);
  else
    store_weight_part<false>(tile, sums);
}

template <class T>
__global__ void __launch_bounds__(kWeightThreads, 1)
    weight_gradient_kernel(const __grid_constant__ WeightProducts list) {
  extern __shared__ std::byte dynamic_of_weights[];
  const TwoByteRing ring(dynamic_of_weights);
  const int own = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const bool copies = threadIdx.x == 128 * kWeightGroups;
  if (copies) {
    const WeightProduct& product = list.jobs[product_of(list, own)];
    prefetch_map(product.x);
    prefetch_map(product.d_y);
  }
  ring.init_barriers();

  RingPosition<TwoByteTiles> place;
  const int tiles = list.first_block[list.count];
  if (copies) {
    for (int number = own; number < tiles; number += blocks) ring.load(TwoByteTiles::tile(list, number), place);
  } else if (threadIdx.x < 128 * kWeightGroups) {
    for (int number = own; number < tiles; number += blocks) {
      const WeightTile tile = TwoByteTiles::tile(list, number);
      WeightSums sums;
      multiply_weight_tile<T>(tile, ring, place, sums);
      store_weight_gradient(tile, sums);
    }
  }
}

template <class T>
void start_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  while (!launches.empty()) {
    WeightProducts list;
    for (; list.count < WeightProducts::kMost && list.count < static_cast<int>(launches.size()); ++list.count)
      list.jobs[list.count] = weight_product(*launches[static_cast<size_t>(list.count)]);
    launches = launches.subspan(static_cast<size_t>(list.count));
    set_first_blocks<TwoByteTiles>(list);
    count_flops(ctx, flops_of(list));
    const int64_t tiles = list.first_block[list.count], processors = hctr::cuda::multiprocessors();
    const int64_t rounds = (tiles + processors - 1) / processors;
    // Not early: blocks that wait would keep tables from their multiprocessors.
    const hctr::cuda::Grid grid{(tiles + rounds - 1) / rounds, kWeightThreads, TwoByteTiles::kSharedBytes};
    hctr::cuda::launch(ctx, "weight_gradient", grid, weight_gradient_kernel<T>, list);
  }
}

}  // namespace

void hopper::add_weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  using hctr::cuda::tensor_map;
  const CUtensorMap map_x = tensor_map(x, TwoByteTiles::kBoxColumns, TwoByteTiles::kSamples);
  const CUtensorMap map_d_y = tensor_map(d_y, TwoByteTiles::kBoxColumns, TwoByteTiles::kSamples);
  add_weight_product(ctx, weight_product(x, map_x, d_y, map_d_y, d_w),
                     x.dtype() == DType::bf16 ? start_weight_gradients<BFloat16> : start_weight_gradients<Half>);
}

}  // namespace hctr::ops
