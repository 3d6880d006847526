// How blocks of a kernel divide the tiles of matrix products (ops/gemm/tile_division.cuh).
#pragma once

#include "core/device/context.h"

namespace hctr::ops {

/// How tiles are divided among `blocks` blocks: the first `rounds` of each are whole, what is left is divided evenly.
struct DividedTiles {
  int blocks, rounds;
};
/// For so many tiles, each of so many steps of the summed dimension: among a block for each multiprocessor, or fewer
/// that have `least_steps` each.
DividedTiles divide_tiles(int64_t tiles, int64_t steps, int64_t least_steps, int64_t multiprocessors);

namespace hopper {

inline constexpr int64_t kTileBytes = 128 * 128 * 4;  ///< of the sums of a tile

/// Whether the context's stream has memory for sums that blocks hand over, one for each multiprocessor, each of so many
/// bytes: it is one of those that products run on.
bool has_exchange_memory(Context&, int64_t tile_bytes = kTileBytes);

}  // namespace hopper
}  // namespace hctr::ops
