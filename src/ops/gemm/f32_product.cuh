// An f32 GEMM by multiply-adds with a fused epilogue, in one kernel for GPUs of compute capability 9.0.
//
// Each of the four quadrants of a multiprocessor issues at most one warp instruction per cycle. Every instruction other
// than a multiply-add therefore costs time. Registers are in four banks; a multiply-add costs extra time if two of its
// operands are in the same bank. Hence:
//   - the TMA copies operands to pipeline stages in shared memory, without instructions of other threads
//   - a thread has 8 x 16 accumulators, and for 128 multiply-adds it loads 24 elements by six instructions
//   - each multiply-add shares an operand with the preceding multiply-add (register reuse)
//   - an accumulator is in another bank than the operand of its column (rotated())
// A block has eight warps, each with 64 x 64 accumulators. The warps form groups: two groups of four warps for a large
// tile; four groups of two warps, or eight groups of one warp, for a small tile (F32Tiles). Each group computes partial
// sums of the whole tile, for its share of the k of every step. Then the groups reduce their sums, and each group
// stores a part of the rows. A small tile has more groups, so the share of a group is smaller. Steps of small tiles
// therefore have more values of k, because a warp waits once per step. Tiles are divided evenly among blocks:
// ops/gemm/tile_division.cuh.
//
// The template parameter `Product` defines what a kernel computes: the operands of a tile, and how the sums of a tile
// are stored. A Product is one GEMM (F32Product) or a list of GEMMs (weight_gradient_f32_sm90a.cu).
#pragma once

#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"
#include "ops/gemm/epilogue.cuh"
#include "ops/gemm/f32_main_loop.cuh"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/f32_sums.cuh"

namespace hctr::ops::hopper {

/// Epilogue of the f32 kernel. finish(shape, places, accumulators) replaces a thread's accumulators by elements of the
/// result.
template <class E, class Tiles>
concept F32Epilogue =
    Epilogue<E, void, const F32Shape&, const F32Places<Tiles>&, float (&)[Tiles::kOwnRows][Tiles::kColumns]>;

/// Template argument Product: one GEMM with an epilogue.
template <class E>
struct F32Product {
  using Tile = F32Tile;
  CUtensorMap a, b;
  F32Shape shape;
  int across;  ///< number of tiles side by side in the result
  TileDivision division;
  View<float, 2> result;
  SumExchange exchange;
  E epilogue;

  template <class Tiles>
  __device__ Tile tile(int number) const {
    return {number / across * Tiles::kM, number % across * Tiles::kN};
  }
  __device__ const CUtensorMap& map_a(const Tile&) const { return a; }
  __device__ const CUtensorMap& map_b(const Tile&) const { return b; }
  __device__ void prefetch_maps(int thread) const {
    if (thread == 0) prefetch_tensormap(a), prefetch_tensormap(b);
  }

  template <class Tiles>
  __device__ void finish(int number, const Tile&, int warp_row, const F32Places<Tiles>& places,
                         float (&own)[Tiles::kOwnRows][Tiles::kColumns], float* column_sums) const {
    epilogue.finish(shape, places, own);
    store_rows<Tiles, true>(shape, result, places, own);
    if constexpr (E::kSums) store_column_sums(*this, number, warp_row, places, own, column_sums);
  }
};

template <class Tiles, class Product>
__global__ void __launch_bounds__(Tiles::kThreads, 1) f32_product_kernel(const __grid_constant__ Product p) {
  auto& shared = shared_storage<F32Storage<Tiles, typename Product::Tile>>();
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  p.prefetch_maps(thread);
  hctr::cuda::start_early();
  TilePieces pieces(p.division, block, blocks);
  if (thread == 0) {
    shared.operands.init(1, Tiles::kWarps);
    fence_mbarrier_init();
    shared.copies = {pieces, {}, 0, 0};
    for (int s = 0; s < Tiles::kStages; ++s) load_next_step<Tiles>(p, shared, s);
  }
  __syncthreads();

  // In both operands, pairs of lanes load the same 16 bytes. A load therefore takes two cycles instead of four.
  const int lane_m = (lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4), lane_n = (lane >> 1 & 1) | (lane >> 2 & 2);
  const int group = warp / Tiles::kWarpsOfGroup, warp_m = warp % Tiles::kWarpsOfGroup / Tiles::kWarpsN;
  const int first_m = warp_m * Tiles::kWarpSide, first_n = warp % Tiles::kWarpsN * Tiles::kWarpSide;
  const int first_k = group * Tiles::kGroupDepth;
  const uint32_t of_a = shared_address(shared.stages) + offset_of_a<Tiles>(first_m, lane_m, first_k);
  const uint32_t of_b =
      shared_address(shared.stages) + Tiles::kBytesA + 4 * (first_k * Tiles::kN + first_n + 4 * lane_n);
  using State = PipelineState<Tiles::kStages>;
  int count = 0;  // number of steps so far, over all pieces
  TilePiece piece;
  while (pieces.next(p.division, piece)) {
    float sums[Tiles::kRows][Tiles::kColumns] = {};
    for (int step = piece.first; step < piece.last; ++step, ++count) {
      const auto at = State::after(count);
      const int stage = at.stage;
      shared.operands.consumer_wait(at);
      add_step<Tiles>(sums, of_a + stage * Tiles::kStageBytes, of_b + stage * Tiles::kStageBytes);
      // The TMA producer role rotates across warps to balance the load of the multiprocessor's quadrants. The stage of
      // the previous step is free once all warps have finished that step. The previous producer has then finished too.
      if (lane == 0 && count > 0 && count % Tiles::kWarps == warp) {
        const auto previous = State::after(count - 1);
        shared.operands.producer_wait_released(previous);
        load_next_step<Tiles>(p, shared, previous.stage);
      }
      __syncwarp();
      if (lane == 0) shared.operands.consumer_release(stage);
    }

    float own[Tiles::kOwnRows][Tiles::kColumns];
    __syncthreads();  // all threads have read `others` for the previous piece
    add_groups<Tiles, Tiles::kRows>(group, sums, shared.others, thread, own);
    if (piece.last < p.division.steps) {
      give_f32_sums<Tiles>(p.exchange, own);
      continue;
    }
    if (piece.first > 0) take_f32_sums<Tiles>(p.exchange, p.division, piece.tile, own);
    const auto tile = p.template tile<Tiles>(piece.tile);
    const int first_own = group * Tiles::kOwnRows;
    const int first_row = Tiles::kTransposedA ? first_own / 4 * 4 * Tiles::kLanesM + 4 * lane_m + first_own % 4
                                              : first_own * Tiles::kLanesM + lane_m;
    const F32Places<Tiles> places{tile.m + first_m + first_row, tile.n + first_n + 4 * lane_n};
    p.template finish<Tiles>(piece.tile, tile, Tiles::kWarpsM * group + warp_m, places, own, shared.column_sums);
  }
}

/// Launches result = epilogue(op(a) b) with kTiles. Shapes: a [m, k], or [k, m] if kTransposedA; b [k, n].
template <bool kTransposedA, F32Tiles kTiles, class E>
void start_f32_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                       const E& epilogue) {
  using hctr::cuda::tensor_map, hctr::cuda::Swizzle;
  using Tiles = F32Tiling<kTransposedA, kTiles>;
  using Storage = F32Storage<Tiles, F32Tile>;
  static_assert(F32Epilogue<E, Tiles>);
  const F32Shape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)), static_cast<int>(b.dim(0))};
  const CUtensorMap map_a = kTransposedA ? tensor_map(a, Tiles::kM, Tiles::kDepth, Swizzle::none)
                                         : tensor_map(a, Tiles::kDepthOfBox, Tiles::kM);
  const int64_t across = (shape.n + Tiles::kN - 1) / Tiles::kN, tiles = (shape.m + Tiles::kM - 1) / Tiles::kM * across;
  const int64_t steps = (shape.k + Tiles::kDepth - 1) / Tiles::kDepth;
  const TileBlocks divided(name, tiles, steps, divide_f32_product(kTiles, tiles, steps, hctr::cuda::multiprocessors()));
  const F32Product<E> product{map_a,
                              tensor_map(b, Tiles::kN, Tiles::kDepth, Swizzle::none),
                              shape,
                              static_cast<int>(across),
                              divided.division,
                              result.view<float, 2>(),
                              sum_exchange(ctx),
                              epilogue};
  hctr::cuda::launch(ctx, name, hctr::cuda::early({divided.blocks, Tiles::kThreads, shared_bytes<Storage>()}),
                     f32_product_kernel<Tiles, F32Product<E>>, product);
}

/// Launches result = epilogue(op(a) b). Uses `asked` tiles, or if none are given, f32_tiles() for the shape. Returns
/// the number of rows per tile.
template <bool kTransposedA, class E>
int64_t f32_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                    const E& epilogue, std::optional<F32Tiles> asked) {
  const F32Tiles tiles =
      asked ? *asked : f32_tiles(kTransposedA, result.dim(0), result.dim(1), b.dim(0), hctr::cuda::multiprocessors());
  const auto start = [&]<F32Tiles kTiles>() {
    start_f32_product<kTransposedA, kTiles>(ctx, name, a, b, result, epilogue);
  };
  switch (tiles) {
    case F32Tiles::square:
      start.template operator()<F32Tiles::square>();
      break;
    case F32Tiles::thin:
      start.template operator()<F32Tiles::thin>();
      break;
    case F32Tiles::half:
      start.template operator()<F32Tiles::half>();
      break;
    case F32Tiles::quarter:
      start.template operator()<F32Tiles::quarter>();
      break;
  }
  return f32_tile_size(tiles, kTransposedA).m;
}

}  // namespace hctr::ops::hopper
