// Tiles of the f32 GEMM kernel (ops/gemm/f32_product.cuh): sizes, the shared memory of a block, and which elements of a
// tile a thread has.
#pragma once

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
  /// number of values of k in one box of operand a, if k is contiguous; a step may have several boxes
  static constexpr int kDepthOfBox = kBoxRow / 4;
  static constexpr int kBytesA = kM * kDepth * 4, kStageBytes = kBytesA + kN * kDepth * 4;
  static constexpr int kExchangeBytes = kThreads * kRows / 2 * kColumns * 4;
  static constexpr int kColumnSums = kGroups * kWarpsM * kN;
  static constexpr int kStages = 144 * 1024 / kStageBytes;
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

/// Shared memory of a block. `operands`: TMA loads fill a stage, and each warp releases it.
template <class Tiles, class Tile>
struct F32Storage {
  std::byte stages[Tiles::kStages * Tiles::kStageBytes];  ///< per stage: operand a, then operand b
  float4 others[Tiles::kExchangeBytes / sizeof(float4)];  ///< sums of other groups, for the reduction over groups
  float column_sums[Tiles::kColumnSums];                  ///< [kGroups kWarpsM][kN]
  Pipeline<Tiles::kStages> operands;
  F32Copies<Tile> copies;
};

}  // namespace hctr::ops::hopper
