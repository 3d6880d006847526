// An f32 GEMM by multiply-adds with a fused epilogue, in one kernel for GPUs of compute capability 9.0.
//
// Each of the four quadrants of a multiprocessor issues at most one warp instruction per cycle. Every instruction other
// than a multiply-add therefore costs time. A multiply-add with two operands in the same register bank (of four) costs
// extra time. Hence:
//   - the TMA copies operands to pipeline stages in shared memory, without instructions of other threads
//   - a thread has 8 x 16 accumulators: 24 elements from shared memory, in six loads, serve 128 multiply-adds
//   - each multiply-add shares an operand with the preceding multiply-add (register reuse)
//   - an accumulator is in another bank than the operand of its column (rotated())
// A block has eight warps, each with 64 x 64 accumulators. The warps form groups: two groups of four warps for a large
// tile; four groups of two warps, or eight groups of one warp, for a small tile (F32Tiles). Each group multiplies its
// part of every k step, for the whole tile. Then the groups reduce their sums, and each group stores a part of the
// rows. A small tile has more groups, and each group computes fewer k of a step. Steps of small tiles therefore have
// more k, because a warp waits once per step. Tiles are divided evenly among blocks: ops/gemm/tile_division.cuh.
//
// The template parameter `Product` defines what a kernel computes: the operands of a tile, and how the sums of a tile
// are stored. A Product is one GEMM (F32Product) or a list of GEMMs (weight_gradient_f32_sm90a.cu).
#pragma once

#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/pipeline.cuh"
#include "ops/gemm/shared_storage.cuh"
#include "ops/gemm/tile_division.cuh"

namespace hctr::ops::hopper {

constexpr int kBoxRow = 128;  ///< bytes of a box row if k is contiguous

/// Tile sizes. kTransposedA: a is stored as [k, m], else as [m, k]. b is [k, n]. A group has kWarpsM x kWarpsN warps.
template <bool kTransposedA_, F32Tiles kTiles>
struct F32Tiling {
  static constexpr bool kTransposedA = kTransposedA_;
  static constexpr F32TileSize kSize = f32_tile_size(kTiles, kTransposedA);
  static constexpr int kM = kSize.m, kN = kSize.n, kDepth = kSize.depth;
  static constexpr int kWarpSide = 64, kWarpsM = kM / kWarpSide, kWarpsN = kN / kWarpSide;
  static constexpr int kWarps = 8, kThreads = 32 * kWarps, kWarpsOfGroup = kWarpsM * kWarpsN;
  static constexpr int kGroups = kWarps / kWarpsOfGroup, kGroupDepth = kDepth / kGroups;
  static constexpr int kRows = 8, kColumns = 16;    ///< rows and columns of a thread's accumulators
  static constexpr int kLanesM = 8, kLanesN = 4;    ///< arrangement of a warp's lanes
  static constexpr int kOwnRows = kRows / kGroups;  ///< rows per thread after the reduction over groups
  /// number of k in one box of operand a, if k is contiguous; a step may have several boxes
  static constexpr int kDepthOfBox = kBoxRow / 4;
  static constexpr int kBytesA = kM * kDepth * 4, kStageBytes = kBytesA + kN * kDepth * 4;
  static constexpr int kExchangeBytes = kThreads * kRows / 2 * kColumns * 4;
  static constexpr int kColumnSums = kGroups * kWarpsM * kN;
  static constexpr int kRingBytes = 144 * 1024, kStages = kRingBytes / kStageBytes;
  static_assert(kM * kN * 4 <= kTileBytes && kStageBytes % kBoxAlignment == 0);
  static_assert(kGroups * kWarpsOfGroup == kWarps && kDepth % kDepthOfBox == 0 && kDepthOfBox % kGroupDepth == 0);
};

/// The state of the producer: the remaining pieces, and the current tile with its remaining steps. The state is in
/// shared memory, because the producer role rotates across warps.
template <class Tile>
struct F32Copies {
  TilePieces pieces;
  Tile tile;
  int step, last;
};

struct F32Shape {
  int m, n, k;
};

/// First row and column of a tile.
struct F32Tile {
  int m, n;
};

/// The rows and columns of the result that a thread writes.
template <class Tiles>
struct F32Places {
  int first_row, first_column;
  /// If k is contiguous in a, adjacent lanes have adjacent rows; otherwise a lane has four adjacent rows.
  __device__ int row(int i) const { return first_row + (Tiles::kTransposedA ? i : Tiles::kLanesM * i); }
  __device__ int column(int j) const { return first_column + j % 4 + j / 4 * 4 * Tiles::kLanesN; }
};

__device__ inline float4 load_four(uint32_t shared) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(shared));
  return v;
}

/// Shared memory of a block.
template <class Tiles, class Tile>
struct F32Storage {
  std::byte stages[Tiles::kStages * Tiles::kStageBytes];  ///< each a box of operand a, then one of operand b
  float4 others[Tiles::kExchangeBytes / sizeof(float4)];  ///< for the reduction over groups
  float column_sums[Tiles::kColumnSums];                  ///< [kGroups kWarpsM][kN]
  Pipeline<Tiles::kStages> operands;
  F32Copies<Tile> copies;
};

/// Producer, one thread: starts the TMA copies of the next step into the free stage `stage`; does nothing after the
/// last step.
template <class Tiles, class Product>
__device__ inline void load_next_step(const Product& p, F32Storage<Tiles, typename Product::Tile>& shared, int stage) {
  auto& c = shared.copies;
  if (c.step == c.last) {
    TilePiece piece;
    if (!c.pieces.next(p.division, piece)) return;
    c.tile = p.template tile<Tiles>(piece.tile);
    c.step = piece.first, c.last = piece.last;
  }
  const int k = c.step++ * Tiles::kDepth;
  std::byte* const to = shared.stages + stage * Tiles::kStageBytes;
  uint64_t* const full = shared.operands.producer_barrier(stage);
  shared.operands.producer_expect_tx(stage, Tiles::kStageBytes);
  if constexpr (Tiles::kTransposedA)
    tma_load(to, p.map_a(c.tile), c.tile.m, k, full);
  else
#pragma unroll
    for (int box = 0; box < Tiles::kDepth / Tiles::kDepthOfBox; ++box)
      tma_load(to + box * Tiles::kM * kBoxRow, p.map_a(c.tile), k + box * Tiles::kDepthOfBox, c.tile.m, full);
  tma_load(to + Tiles::kBytesA, p.map_b(c.tile), c.tile.n, k, full);
}

/// Offset in a stage of the first element of operand `a` that a thread reads: column first_k of row first_m + lane_m,
/// or of row first_m + 4 lane_m if kTransposedA.
template <class Tiles>
__device__ inline int offset_of_a(int first_m, int lane_m, int first_k) {
  if constexpr (Tiles::kTransposedA) {
    return 4 * (first_k * Tiles::kM + first_m + 4 * lane_m);
  } else {
    const int box = first_k / Tiles::kDepthOfBox, unit = first_k % Tiles::kDepthOfBox / 4;
    return kBoxRow * (box * Tiles::kM + first_m + lane_m) + 16 * (lane_m ^ unit);
  }
}

/// Accumulates a group's part of one step. a and b: addresses of the thread's first elements. A loop iteration covers
/// four k; a longer body would not fit in the instruction cache of a multiprocessor quadrant. The operand registers
/// alternate between iterations, which lets the compiler assign registers without bank conflicts.
template <class Tiles>
__device__ inline void add_step(float (&sums)[Tiles::kRows][Tiles::kColumns], uint32_t a, uint32_t b) {
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns, kAtOnce = 4;
  const auto load = [](float* to, uint32_t at) {
    const float4 v = load_four(at);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  };
  const auto load_b = [&](float(&of_b)[kColumns], int k) {
#pragma unroll
    for (int q = 0; q < kColumns / 4; ++q) load(of_b + 4 * q, b + 4 * (k * Tiles::kN + q * 4 * Tiles::kLanesN));
  };
  if constexpr (Tiles::kTransposedA) {
    float of_a[2][kRows], of_b[2][kColumns];
    const auto load_both = [&](int to, int k) {
#pragma unroll
      for (int q = 0; q < kRows / 4; ++q) load(of_a[to] + 4 * q, a + 4 * (k * Tiles::kM + q * 4 * Tiles::kLanesM));
      load_b(of_b[to], k);
    };
    load_both(0, 0);
#pragma unroll 1
    for (int first = 0; first < Tiles::kGroupDepth; first += kAtOnce) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        load_both((k + 1) % 2, k + 1);  // the last load is unused, but reads valid shared memory
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int there = 0; there < kColumns; ++there) {
            const int j = i % 2 ? kColumns - 1 - there : there;  // serpentine order (register reuse)
            sums[i][j] = fmaf(of_a[k % 2][i], of_b[k % 2][j], sums[i][j]);
          }
      }
      a += kAtOnce * 4 * Tiles::kM, b += kAtOnce * 4 * Tiles::kN;
    }
  } else {
#pragma unroll 1
    for (int first = 0; first < Tiles::kGroupDepth; first += kAtOnce) {
      float of_a[2][4], of_b[4][kColumns];
#pragma unroll
      for (int l = 0; l < 4; ++l) load_b(of_b[l], l);
      // 16-byte units of a row are swizzled by the row number; all rows of a thread have the same low bits.
      const uint32_t unit = a ^ static_cast<uint32_t>(4 * first);
      const auto load_a = [&](int i) { load(of_a[i % 2], unit + i * Tiles::kLanesM * kBoxRow); };
      load_a(0);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (i + 1 < kRows) load_a(i + 1);
#pragma unroll
        for (int l = 0; l < 4; ++l)
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            const int j = (c + l + 2) % kColumns;  // starts with an element in another register bank than `a`
            sums[i][j] = fmaf(of_a[i % 2][l], of_b[l][j], sums[i][j]);
          }
      }
      b += kAtOnce * 4 * Tiles::kN;
    }
  }
}

/// Four adjacent sums in rotated order, for a 16-byte store to other groups or blocks. Such a store needs its four
/// values in registers of consecutive banks. With the rotation, each sum is in another register bank than the B element
/// of its column, so an FMA reads both without a bank conflict.
__device__ inline float4 rotated(const float* sums) { return make_float4(sums[3], sums[0], sums[1], sums[2]); }
__device__ inline void add_rotated(float* sums, float4 others) {
  sums[3] += others.x, sums[0] += others.y, sums[1] += others.z, sums[2] += others.w;
}

/// Reduces sums over the groups of a block by recursive halving. In each round, two groups exchange halves of `held`,
/// and each group adds the received half to the half that it keeps. The last round leaves kOwnRows rows per group.
/// `place`: this thread's offset in `others`; no other thread may still read the element at `place`.
template <class Tiles, int kHeld>
__device__ inline void add_groups(int group, const float (&held)[kHeld][Tiles::kColumns], float4* others, int place,
                                  float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
  // kDistance: difference between the indices of two groups that exchange sums
  constexpr int kKept = kHeld / 2, kDistance = kKept / Tiles::kOwnRows;
  constexpr int kOther = kDistance * 32 * Tiles::kWarpsOfGroup;
  float4 *const to = others + place, *const from = others + (place ^ kOther);
  float kept[kKept][Tiles::kColumns];
  const auto exchange = [&]<int kFirst, int kGiven>() {
#pragma unroll
    for (int i = 0; i < kKept; ++i)
#pragma unroll
      for (int j = 0; j < Tiles::kColumns; j += 4)
        to[(i * Tiles::kColumns + j) / 4 * Tiles::kThreads] = rotated(held[kGiven + i] + j);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kKept; ++i)
#pragma unroll
      for (int j = 0; j < Tiles::kColumns; j += 4) {
#pragma unroll
        for (int c = 0; c < 4; ++c) kept[i][j + c] = held[kFirst + i][j + c];
        add_rotated(kept[i] + j, from[(i * Tiles::kColumns + j) / 4 * Tiles::kThreads]);
      }
  };
  if ((group & kDistance) == 0)
    exchange.template operator()<0, kKept>();
  else
    exchange.template operator()<kKept, 0>();
  if constexpr (kKept > Tiles::kOwnRows) {
    add_groups<Tiles, kKept>(group, kept, others, place ^ kOther, own);
  } else {
#pragma unroll
    for (int i = 0; i < kKept; ++i)
#pragma unroll
      for (int j = 0; j < Tiles::kColumns; ++j) own[i][j] = kept[i][j];
  }
}

/// Template argument Team of give_sums() and take_sums(): all threads of a block.
template <class Tiles>
struct F32Team {
  static constexpr int kThreads = Tiles::kThreads, kQuads = Tiles::kOwnRows * Tiles::kColumns / 4;
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static void synchronize() { __syncthreads(); }
};
template <class Tiles>
__device__ inline void give_f32_sums(const SumExchange& exchange,
                                     const float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
  constexpr int kOfRow = Tiles::kColumns / 4;
  give_sums<F32Team<Tiles>>(exchange, [&](int q) { return rotated(own[q / kOfRow] + q % kOfRow * 4); });
}
template <class Tiles>
__device__ inline void take_f32_sums(const SumExchange& exchange, const TileDivision& division, int tile,
                                     float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
  constexpr int kOfRow = Tiles::kColumns / 4;
  take_sums<F32Team<Tiles>>(exchange, division, tile, [&](int q, const float4& others) {
    add_rotated(own[q / kOfRow] + q % kOfRow * 4, others);
  });
}

/// Stores a thread's rows of the result. kAligned: rows are aligned to 16 bytes.
template <class Tiles, bool kAligned>
__device__ inline void store_rows(const F32Shape& shape, const View<float, 2>& result, const F32Places<Tiles>& places,
                                  const float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
#pragma unroll
  for (int i = 0; i < Tiles::kOwnRows; ++i) {
    const int row = places.row(i);
    if (row >= shape.m) continue;
    float* const to = result.row(row);
#pragma unroll
    for (int j = 0; j < Tiles::kColumns; j += 4) {
      const int column = places.column(j);
      if (kAligned && column + 4 <= shape.n)
        *reinterpret_cast<float4*>(to + column) = make_float4(own[i][j], own[i][j + 1], own[i][j + 2], own[i][j + 3]);
      else
#pragma unroll
        for (int c = 0; c < (kAligned ? 3 : 4); ++c)
          if (column + c < shape.n) to[column + c] = own[i][j + c];
    }
  }
}

/// Stores the column sums of a tile of F32Product.
template <class Tiles, class Product>
__device__ inline void store_column_sums(const Product& p, int tile, int warp_row, const F32Places<Tiles>& places,
                                         const float (&own)[Tiles::kOwnRows][Tiles::kColumns], float* column_sums) {
  const int thread = static_cast<int>(threadIdx.x), first_column = tile % p.across * Tiles::kN;
  __syncthreads();  // all threads have read the previous tile's column sums
#pragma unroll
  for (int j = 0; j < Tiles::kColumns; ++j) {
    float of_rows[Tiles::kOwnRows];
#pragma unroll
    for (int i = 0; i < Tiles::kOwnRows; ++i) of_rows[i] = own[i][j];
#pragma unroll
    for (int apart = 1; apart < Tiles::kOwnRows; apart *= 2)
#pragma unroll
      for (int i = 0; i < Tiles::kOwnRows; i += 2 * apart) of_rows[i] += of_rows[i + apart];
    float sum = of_rows[0];
#pragma unroll
    for (int lanes = 1; lanes <= 16; lanes *= 4) sum += __shfl_xor_sync(~0u, sum, lanes);
    if ((thread & 21) == 0) column_sums[warp_row * Tiles::kN + places.column(j) - first_column] = sum;
  }
  __syncthreads();
  if (const int column = first_column + thread; thread < Tiles::kN && column < p.shape.n) {
    float sum = 0;
#pragma unroll
    for (int row = 0; row < Tiles::kColumnSums / Tiles::kN; ++row) sum += column_sums[row * Tiles::kN + thread];
    p.end.sums[int64_t{tile / p.across} * p.shape.n + column] = sum;
  }
}

/// Template argument Product: one GEMM with an epilogue.
template <class End>
struct F32Product {
  using Tile = F32Tile;
  CUtensorMap a, b;
  F32Shape shape;
  int across;  ///< number of tiles side by side in the result
  TileDivision division;
  View<float, 2> result;
  SumExchange exchange;
  End end;

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
    end.finish(shape, places, own);
    store_rows<Tiles, true>(shape, result, places, own);
    if constexpr (End::kSums) store_column_sums(*this, number, warp_row, places, own, column_sums);
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
  int count = 0;  // steps so far
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
    __syncthreads();  // the previous piece's exchange has ended
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

/// Launches result = end(op(a) b) with kTiles. Shapes: a [m, k], or [k, m] if kTransposedA; b [k, n].
template <bool kTransposedA, F32Tiles kTiles, class End>
void start_f32_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                       const End& end) {
  using hctr::cuda::tensor_map, hctr::cuda::Swizzle;
  using Tiles = F32Tiling<kTransposedA, kTiles>;
  using Storage = F32Storage<Tiles, F32Tile>;
  const F32Shape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)), static_cast<int>(b.dim(0))};
  const CUtensorMap map_a = kTransposedA ? tensor_map(a, Tiles::kM, Tiles::kDepth, Swizzle::none)
                                         : tensor_map(a, Tiles::kDepthOfBox, Tiles::kM);
  const int64_t across = (shape.n + Tiles::kN - 1) / Tiles::kN, tiles = (shape.m + Tiles::kM - 1) / Tiles::kM * across;
  const int64_t steps = (shape.k + Tiles::kDepth - 1) / Tiles::kDepth;
  const TileBlocks divided(name, tiles, steps, divide_f32_product(kTiles, tiles, steps, hctr::cuda::multiprocessors()));
  const F32Product<End> product{map_a,
                                tensor_map(b, Tiles::kN, Tiles::kDepth, Swizzle::none),
                                shape,
                                static_cast<int>(across),
                                divided.division,
                                result.view<float, 2>(),
                                sum_exchange(ctx),
                                end};
  hctr::cuda::launch(ctx, name, hctr::cuda::early({divided.blocks, Tiles::kThreads, shared_bytes<Storage>()}),
                     f32_product_kernel<Tiles, F32Product<End>>, product);
}

/// Launches result = end(op(a) b) with the tiles `asked`, or with f32_tiles() for the shape. Returns the rows per tile.
template <bool kTransposedA, class End>
int64_t f32_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                    const End& end, std::optional<F32Tiles> asked) {
  const F32Tiles tiles =
      asked ? *asked : f32_tiles(kTransposedA, result.dim(0), result.dim(1), b.dim(0), hctr::cuda::multiprocessors());
  const auto start = [&]<F32Tiles kTiles>() { start_f32_product<kTransposedA, kTiles>(ctx, name, a, b, result, end); };
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
