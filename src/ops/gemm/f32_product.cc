#include "ops/gemm/f32_product.h"

#include <algorithm>
#include <limits>

namespace hctr::ops {
namespace {

// Times in microseconds on an H100, fitted to measured GEMMs of 512 to 4,096 rows. Only the ratios of the times matter.

/// kStartTime: a kernel whose blocks each compute one piece of a tile. kPieceTime: each further piece of a block,
/// including the reduction over groups and the store. kHandOverTime: the wait for another block's partial sums.
constexpr double kStartTime = 5.2, kPieceTime = 1.5, kHandOverTime = 2.3;
/// Time to add another block's partial sums of a 128 x 128 tile.
constexpr double kTakeTime = 0.7;
/// Peak multiply-adds of a multiprocessor per microsecond.
constexpr double kPeak = 252'000;

/// Efficiency of blocks with these tiles. A warp waits once per step. The fewer values of k it processes in a step, the
/// lower the efficiency. The values of `half` and `quarter` are estimates: above the efficiency measured with 32 values
/// of k per step, and below the efficiency of `square`.
double f32_efficiency(F32Tiles tiles) {
  switch (tiles) {
    case F32Tiles::half:
      return 0.755;
    case F32Tiles::quarter:
      return 0.68;
    default:
      return 0.775;
  }
}

int64_t units_of(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

/// Work of the busiest block: its numbers of steps and of pieces. `parts`: number of blocks that share a tile
/// (split-K); 1 if no tile is shared.
struct BlockWork {
  int64_t steps, pieces, parts;
};
BlockWork most_work(const DividedTiles& d, int64_t tiles, int64_t steps) {
  const int64_t divided = tiles - int64_t{d.rounds} * d.blocks;
  if (divided == 0) return {d.rounds * steps, d.rounds, 1};
  const int64_t share = units_of(divided * steps, d.blocks);
  if (d.blocks % divided == 0) return {d.rounds * steps + share, d.rounds + 1, d.blocks / divided};
  // A block's share of the k steps may be parts of several tiles, and several blocks may share a tile.
  return {d.rounds * steps + share, d.rounds + units_of(share, steps) + 1,
          units_of(steps * d.blocks, divided * steps) + 1};
}

double estimated_time(F32Tiles tiling, const DividedTiles& d, int64_t tiles, int64_t steps) {
  const F32TileSize size = f32_tile_size(tiling, false);
  const BlockWork work = most_work(d, tiles, steps);
  const double sums = double{1} * size.m * size.n;
  double time = kStartTime + static_cast<double>(work.pieces - 1) * kPieceTime +
                static_cast<double>(work.steps) * sums * size.depth / (kPeak * f32_efficiency(tiling));
  if (work.parts > 1) time += kHandOverTime + static_cast<double>(work.parts - 1) * kTakeTime * sums / (128 * 128);
  return time;
}

/// Estimated time of a GEMM [m, k] [k, n] with the tiles `tiling`.
double estimated_time(F32Tiles tiling, bool transposed_a, int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  const F32TileSize size = f32_tile_size(tiling, transposed_a);
  const int64_t tiles = units_of(m, size.m) * units_of(n, size.n), steps = units_of(k, size.depth);
  return estimated_time(tiling, divide_f32_product(tiling, tiles, steps, multiprocessors), tiles, steps);
}

/// Estimated time of the library's GEMM. `each`: million multiply-adds per multiprocessor. The estimate is valid if
/// `each` is less than kLeastOfEach of f32_product_gains(). For F32Use::ended, the estimate excludes the time of our
/// fused epilogue. The library splits large k (split-K) and adds the partial sums in a separate kernel.
double time_of_library(F32Use use, double each, int64_t k) {
  const auto depth = static_cast<double>(k) / 1000;
  return use == F32Use::ended ? 5.0 + 6.5 * each + 5.0 * depth : 3.8 + 5.8 * each + 6.6 * depth;
}

}  // namespace

F32Tiles f32_tiles(bool transposed_a, int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  F32Tiles best = F32Tiles::square;
  double least = std::numeric_limits<double>::infinity();
  for (const F32Tiles tiling : kF32Tiles) {
    const double time = estimated_time(tiling, transposed_a, m, n, k, multiprocessors);
    if (time < least * (1 - 1e-9)) least = time, best = tiling;  // if candidates are equal, the first one stays
  }
  return best;
}

// If there are at most as many tiles as multiprocessors, also considers giving each block an equal part of one tile.
// Some multiprocessors may then be idle, but no block has parts of two tiles.
DividedTiles divide_f32_product(F32Tiles tiling, int64_t tiles, int64_t steps, int64_t multiprocessors) {
  // minimum number of values of k per block; with fewer, exchanging partial sums costs more time than it saves
  constexpr int64_t kLeastDepth = 128;
  const int64_t least_steps = kLeastDepth / f32_tile_size(tiling, false).depth;
  DividedTiles best = divide_tiles(tiles, steps, least_steps, multiprocessors);
  double least = estimated_time(tiling, best, tiles, steps);
  const int64_t most_parts = std::min(multiprocessors / tiles, std::max<int64_t>(1, steps / least_steps));
  for (int64_t parts = 1; parts <= most_parts; ++parts) {
    const DividedTiles even{static_cast<int>(tiles * parts), parts == 1 ? 1 : 0};
    const double time = estimated_time(tiling, even, tiles, steps);
    if (time < least) least = time, best = even;
  }
  return best;
}

// The thresholds were measured with 132 multiprocessors. The library is faster in four cases: large GEMMs with few
// columns; wgrads with few tiles; a transposed b with a small GEMM or a small k, because our copy of b costs too much;
// small GEMMs with a small k, for which the library needs no split-K kernel.
bool f32_product_gains(F32Use use, int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  constexpr double kLeastOfEach = 6, kLeastTransposedOfEach = 20;  // million multiply-adds per multiprocessor
  constexpr int64_t kLeastSide = 256, kLeastPlainColumns = 384, kLeastDepth = 128, kLeastSmallDepth = 256,
                    kLeastWeights = 150'000;
  // Microseconds by which our kernel may be slower alone. Within a step the library costs extra, because it often
  // launches several kernels.
  constexpr double kGap = 1;
  if (std::min(m, n) < kLeastSide || k < kLeastDepth) return false;
  const double each = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) /
                      (1e6 * static_cast<double>(multiprocessors));
  const bool large = each >= kLeastOfEach;
  switch (use) {
    case F32Use::weight_gradient:
      return large && m * n >= kLeastWeights;
    case F32Use::transposed:
      return large && n >= kLeastPlainColumns && (each >= kLeastTransposedOfEach || n <= k);
    default: {
      if (large) return use == F32Use::ended || n >= kLeastPlainColumns;
      if (k < kLeastSmallDepth) return false;
      const F32Tiles tiling = f32_tiles(false, m, n, k, multiprocessors);
      return estimated_time(tiling, false, m, n, k, multiprocessors) <= time_of_library(use, each, k) + kGap;
    }
  }
}

}  // namespace hctr::ops
