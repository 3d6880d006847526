// The gradients of the weights of several layers in one kernel, for GPUs of compute capability 9.0.
//
// A block for each multiprocessor computes tiles of 128 x 128 of the products x^T d_y, and parts of the sums of others
// where tiles do not go round (ops/tile_division.cuh). One warp copies boxes of 64 columns of 64 samples of both
// operands to a ring in shared memory; two groups of four warps multiply them, 64 rows of the result each. The samples,
// over which is summed, are not adjacent in either operand: the matrix instruction transposes both.
//
// Copies from the L2 cache take longer than products. So tiles are as large as registers allow with room for sums of
// other blocks, and the warp that copies is ahead with the next piece while the groups store or hand over one.
#include "ops/weight_gradient.cuh"

#include <span>

#include "device/profiler.h"
#include "ops/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kWeightGroups = 2, kWeightThreads = 128 * kWeightGroups + 32;
constexpr int kWeightColumns = 128, kWeightSums = kWeightColumns / 2;  // of a tile; of a thread

using TwoByteStages = WeightStages<2, 64, 64 * kWeightGroups, kWeightColumns, 1>;

/// A group of four warps: it has 64 rows of every tile.
struct WeightGroup {
  static constexpr int kTeams = kWeightGroups, kThreads = 128, kQuads = kWeightSums / 4;
  __device__ static int team() { return static_cast<int>(threadIdx.x) / kThreads; }
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kThreads; }
  __device__ static void synchronize() { synchronize_group(1 + team(), kThreads); }
};

__device__ inline WeightTile tile_of_piece(const WeightProducts& list, const TilePiece& piece) {
  const int j = product_of(list, piece.tile);
  return weight_tile<TwoByteStages>(list.jobs[j], piece.tile - list.first_block[j], piece.first,
                                    piece.last - piece.first);
}

/// Begins to fetch the maps of the block's first piece.
__device__ inline void prefetch_maps(const DividedWeightProducts& p, TilePieces pieces) {
  TilePiece first;
  if (!pieces.next(p.division, first)) return;
  const WeightProduct& product = p.list.jobs[product_of(p.list, first.tile)];
  prefetch_map(product.x);
  prefetch_map(product.d_y);
}

__device__ inline void copy_pieces(const DividedWeightProducts& p, const WeightRing<TwoByteStages>& ring,
                                   TilePieces pieces) {
  RingPlace place;
  TilePiece piece;
  while (pieces.next(p.division, piece)) ring.load(tile_of_piece(p.list, piece), place);
}

/// By a group: its sums of a piece.
template <class T>
__device__ inline void multiply_piece(const TilePiece& piece, const WeightRing<TwoByteStages>& ring, RingPlace& place,
                                      float (&d)[kWeightSums]) {
  constexpr int kBoxBytes = TwoByteStages::kBoxBytes;
  int before = -1;
  for (int step = piece.first; step < piece.last; ++step) {
    wait_for(ring.full + place.stage, place.parity);
    const std::byte* at = ring.boxes + place.stage * TwoByteStages::kStageBytes;
    uint64_t first = describe_transposed(at + WeightGroup::team() * kBoxBytes, kBoxBytes);
    uint64_t second = describe_transposed(at + kWeightGroups * kBoxBytes, kBoxBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < TwoByteStages::kSamples / 16; ++k) {
      multiply<T, kWeightColumns, true>(d, first, second, step > piece.first || k > 0);
      first += 16 * 128 >> 4;  // 16 samples
      second += 16 * 128 >> 4;
    }
    commit_products();
    wait_for_products<1>();
    if (before >= 0 && WeightGroup::thread() == 0) arrive(ring.empty + before);
    before = place.stage;
    place.next<TwoByteStages>();
  }
  wait_for_products<0>();
  if (WeightGroup::thread() == 0) arrive(ring.empty + before);
}

/// Stores what the threads of a group have of a tile.
__device__ inline void store_weight_gradient(const WeightTile& tile, const float (&d)[kWeightSums]) {
  const WeightProduct& product = tile.product;
  const int thread = WeightGroup::thread(), lane = thread % 32;
  const bool pairs = product.stride % 2 == 0 && reinterpret_cast<uintptr_t>(product.d_w) % 8 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = tile.row + 64 * WeightGroup::team() + 16 * (thread / 32) + lane / 4 + 8 * r;
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
    weight_gradient_kernel(const __grid_constant__ DividedWeightProducts p) {
  extern __shared__ std::byte dynamic_of_weights[];
  const WeightRing<TwoByteStages> ring(dynamic_of_weights);
  TilePieces pieces(p.division, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  const bool multiplies = threadIdx.x < 128 * kWeightGroups, copies = threadIdx.x == 128 * kWeightGroups;
  if (copies) prefetch_maps(p, pieces);
  ring.init_barriers(kWeightGroups);
  hctr::cuda::start_early();
  if (copies) copy_pieces(p, ring, pieces);
  if (!multiplies) return;

  RingPlace place;
  TilePiece piece;
  while (pieces.next(p.division, piece)) {
    float d[kWeightSums];
    multiply_piece<T>(piece, ring, place, d);
    if (piece.last < p.division.steps) {
      give_sums<WeightGroup>(p.exchange,
                             [&](int q) { return make_float4(d[4 * q], d[4 * q + 1], d[4 * q + 2], d[4 * q + 3]); });
      continue;
    }
    if (piece.first > 0)
      take_sums<WeightGroup>(p.exchange, p.division, piece.tile, [&](int q, const float4& others) {
        d[4 * q] += others.x, d[4 * q + 1] += others.y, d[4 * q + 2] += others.z, d[4 * q + 3] += others.w;
      });
    store_weight_gradient(tile_of_piece(p.list, piece), d);
  }
}

/// Those with as many steps in one launch.
template <class T>
void start_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  constexpr const char* kName = "weight_gradient";
  HCTR_EXPECT(has_exchange_memory(ctx), kName, " on a stream that has no memory for parts of sums");
  start_equal_products(launches, TwoByteStages::steps, [&](WeightProducts& list) {
    set_first_blocks<TwoByteStages>(list);
    count_flops(ctx, flops_of(list));
    const int tiles = list.first_block[list.count], steps = TwoByteStages::steps(list.jobs[0]);
    const TileBlocks divided(kName, tiles, steps, divide_weight_gradients(tiles, steps, hctr::cuda::multiprocessors()));
    hctr::cuda::launch(ctx, kName, hctr::cuda::early({divided.blocks, kWeightThreads, TwoByteStages::kSharedBytes}),
                       weight_gradient_kernel<T>, DividedWeightProducts{list, divided.division, sum_exchange(ctx)});
  });
}

}  // namespace

void hopper::add_weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  add_weight_product(ctx, TwoByteStages::product(x, d_y, d_w),
                     x.dtype() == DType::bf16 ? start_weight_gradients<BFloat16> : start_weight_gradients<Half>);
}

}  // namespace hctr::ops
