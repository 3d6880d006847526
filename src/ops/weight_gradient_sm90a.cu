// The gradients of the weights of several layers in one kernel, for GPUs of compute capability 9.0.
//
// A block for each multiprocessor, or fewer with as many tiles each, computes tiles of 128 x 128 of the products x^T
// d_y. One warp copies boxes of 64 columns of 64 samples of both operands to a ring in shared memory; two groups of
// four warps multiply them, 64 rows of the result each. The samples, over which is summed, are not adjacent in either
// operand: the matrix instruction transposes both. Each element is summed over all samples in one place, so its bits do
// not depend on the other products.
//
// Copies from the L2 cache take longer than products. So tiles are large, and the warp that copies is ahead with the
// next tile while the groups store one. Multiprocessors that are left over serve tables.
#include "ops/weight_gradient.cuh"

#include <span>

#include "device/profiler.h"
#include "ops/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kWeightGroups = 2, kWeightThreads = 128 * kWeightGroups + 32;
constexpr int kWeightColumns = 128, kWeightSums = kWeightColumns / 2;  // of a tile; of a thread

/// Tiles, and the ring of a block. A stage of it has boxes of kSamples samples of kBoxColumns columns: first those of
/// x, as many as the tile has rows, then those of d_y.
struct TwoByteTiles : WeightTiles<64 * kWeightGroups, kWeightColumns> {
  static constexpr int kSamples = 64, kBoxColumns = 64, kBoxBytes = kSamples * 128;
  static constexpr int kBoxesOfX = kRows / kBoxColumns, kBoxes = kBoxesOfX + kColumns / kBoxColumns;
  static constexpr int kStageBytes = kBoxes * kBoxBytes, kStages = 192 * 1024 / kStageBytes;
  static constexpr size_t kSharedBytes = kStages * kStageBytes + 2 * kStages * sizeof(uint64_t) + 1024;
};

/// A tile, and the steps of kSamples samples over which it sums.
struct WeightTile {
  const WeightProduct& product;
  int row, column, steps;
};

/// The group of four warps that this thread belongs to, and its place there. A group has 64 rows of every tile.
__device__ inline int group() { return static_cast<int>(threadIdx.x) / 128; }
__device__ inline int thread_of_group() { return static_cast<int>(threadIdx.x) % 128; }

__device__ inline WeightTile tile_of(const WeightProducts& list, int number) {
  const int j = product_of(list, number), place = number - list.first_block[j];
  const WeightProduct& product = list.jobs[j];
  const int across = TwoByteTiles::across(product);
  return {product, place / across * TwoByteTiles::kRows, place % across * TwoByteTiles::kColumns,
          (product.batch + TwoByteTiles::kSamples - 1) / TwoByteTiles::kSamples};
}

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
    for (int step = 0; step < tile.steps; ++step, place.advance()) {
      const int sample = step * TwoByteTiles::kSamples;
      wait_for(empty + place.stage, place.parity ^ 1);
      std::byte* at = boxes + place.stage * TwoByteTiles::kStageBytes;
      uint64_t* const copied = full + place.stage;
      arrive_and_expect(copied, TwoByteTiles::kStageBytes);
      for (int i = 0; i < TwoByteTiles::kBoxesOfX; ++i, at += TwoByteTiles::kBoxBytes)
        load_box(at, tile.product.x, tile.row + kBox * i, sample, copied);
      for (int i = 0; i < TwoByteTiles::kBoxes - TwoByteTiles::kBoxesOfX; ++i, at += TwoByteTiles::kBoxBytes)
        load_box(at, tile.product.d_y, tile.column + kBox * i, sample, copied);
    }
  }
};

/// By a group: the product of a tile.
template <class T>
__device__ inline void multiply_weight_tile(int steps, const TwoByteRing& ring, RingPosition<TwoByteTiles>& place,
                                            float (&d)[kWeightSums]) {
  constexpr int kBoxBytes = TwoByteTiles::kBoxBytes;
  int before = -1;
  for (int step = 0; step < steps; ++step) {
    wait_for(ring.full + place.stage, place.parity);
    const std::byte* at = ring.boxes + place.stage * TwoByteTiles::kStageBytes;
    uint64_t first = describe_transposed(at + group() * kBoxBytes, kBoxBytes);
    uint64_t second = describe_transposed(at + kWeightGroups * kBoxBytes, kBoxBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < TwoByteTiles::kSamples / 16; ++k) {
      multiply<T, kWeightColumns, true>(d, first, second, step > 0 || k > 0);
      first += 16 * 128 >> 4;  // 16 samples
      second += 16 * 128 >> 4;
    }
    commit_products();
    wait_for_products<1>();
    if (before >= 0 && thread_of_group() == 0) arrive(ring.empty + before);
    before = place.stage;
    place.advance();
  }
  wait_for_products<0>();
  if (thread_of_group() == 0) arrive(ring.empty + before);
}

/// Stores what the threads of a group have of a tile.
__device__ inline void store_weight_gradient(const WeightTile& tile, const float (&d)[kWeightSums]) {
  const WeightProduct& product = tile.product;
  const int thread = thread_of_group(), lane = thread % 32;
  const bool pairs = product.stride % 2 == 0 && reinterpret_cast<uintptr_t>(product.d_w) % 8 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = tile.row + 64 * group() + 16 * (thread / 32) + lane / 4 + 8 * r;
    if (row >= product.in) continue;
    float* const to = product.d_w + row * product.stride;
#pragma unroll
    for (int j = 0; j < kWeightColumns / 8; ++j) {
      const int column = tile.column + 8 * j + 2 * (lane % 4);
      const float first = d[4 * j + 2 * r], second = d[4 * j + 2 * r + 1];
      if (pairs && column + 1 < product.out) {
        *reinterpret_cast<float2*>(to + column) = make_float2(first, second);
      } else {
        if (column < product.out) to[column] = first;
        if (column + 1 < product.out) to[column + 1] = second;
      }
    }
  }
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
    for (int tile = own; tile < tiles; tile += blocks) ring.load(tile_of(list, tile), place);
  } else if (threadIdx.x < 128 * kWeightGroups) {
    for (int number = own; number < tiles; number += blocks) {
      const WeightTile tile = tile_of(list, number);
      float d[kWeightSums];
      multiply_weight_tile<T>(tile.steps, ring, place, d);
      store_weight_gradient(tile, d);
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
