// How blocks of a kernel divide the tiles of GEMMs (ops/gemm/tile_division.cuh).
#pragma once

#include "core/device/context.h"

namespace hctr::ops {

/// How tiles are divided among `blocks` blocks: the first `rounds` tiles of each block are whole; the remaining steps
/// are divided evenly.
struct DividedTiles {
  int blocks, rounds;
};
/// Divides `tiles` tiles, which have `steps` k steps each, among blocks. There is one block per multiprocessor, or
/// fewer blocks if a block would have fewer than `least_steps` steps.
DividedTiles divide_tiles(int64_t tiles, int64_t steps, int64_t least_steps, int64_t multiprocessors);

namespace hopper {

inline constexpr int64_t kTileBytes = 128 * 128 * 4;  ///< bytes of the sums of a tile

/// Whether the context's stream has memory for exchanging partial sums: `tile_bytes` per multiprocessor. True for the
/// streams on which GEMMs run.
bool has_exchange_memory(Context&, int64_t tile_bytes = kTileBytes);

}  // namespace hopper
}  // namespace hctr::ops
