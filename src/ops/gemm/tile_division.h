// How blocks of a kernel divide the tiles of GEMMs (ops/gemm/tile_division.cuh).
#pragma once

#include "core/device/context.h"

namespace hctr::ops {

/// How tiles are divided among `blocks` blocks: the first `rounds` of each are whole, the remaining steps are divided
/// evenly.
struct DividedTiles {
  int blocks, rounds;
};
/// For this many tiles with this many steps of the summed dimension each: one block a multiprocessor, or fewer blocks
/// with at least `least_steps` each.
DividedTiles divide_tiles(int64_t tiles, int64_t steps, int64_t least_steps, int64_t multiprocessors);

namespace hopper {

inline constexpr int64_t kTileBytes = 128 * 128 * 4;  ///< bytes of a tile's sums

/// Whether the context's stream has memory for the partial sums that blocks exchange, one a multiprocessor, each of
/// this many bytes: true for the streams on which GEMMs run.
bool has_exchange_memory(Context&, int64_t tile_bytes = kTileBytes);

}  // namespace hopper
}  // namespace hctr::ops
