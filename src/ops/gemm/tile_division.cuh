// How blocks evenly divide the tiles of one GEMM, or of several GEMMs with equal numbers of k steps. Blocks compute
// whole tiles, and partial sums of the remaining tiles (split-K). The block with the last steps of a tile adds the
// partial sums in order. Results therefore depend only on the shapes and the number of multiprocessors.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/expect.h"
#include "core/device/context.h"
#include "ops/gemm/tile_division.h"

namespace hctr::ops::hopper {

/// Part of a tile: partial sums over the steps [first, last).
struct TilePiece {
  int tile, first, last;
};

/// The division of tiles. The first `rounds` tiles of every block are whole: block b computes the tiles b, b + blocks
/// and so on. The `shared_steps` steps of all tiles from shared_tile on are divided evenly.
struct TileDivision {
  int steps;  ///< steps per tile
  int rounds, shared_tile, shared_steps;

  __host__ __device__ int first_of(int block, int blocks) const {
    return static_cast<int>(int64_t{shared_steps} * block / blocks);
  }
};

/// The grid of a kernel, and the division of its tiles and steps.
struct TileBlocks {
  int blocks;
  TileDivision division;
  TileBlocks(const char* name, int64_t tiles, int64_t steps, DividedTiles divided) : blocks(divided.blocks) {
    const int64_t whole = int64_t{divided.rounds} * divided.blocks;
    HCTR_EXPECT((tiles - whole) * steps <= std::numeric_limits<int32_t>::max() && tiles + whole < (int64_t{1} << 31),
                name, ": the GEMM has too many tiles for 32-bit numbers");
    division = {static_cast<int>(steps), divided.rounds, static_cast<int>(whole),
                static_cast<int>((tiles - whole) * steps)};
  }
};

/// Iterates over the pieces of a block. If another block needs the sums of a piece, that piece comes first. If a piece
/// needs the sums of earlier blocks, it comes last. With this order, no block waits for a block that may not have
/// started.
struct TilePieces {
  int block, blocks, first, last, round;
  bool part_first;

  __device__ TilePieces(const TileDivision& d, int block_, int blocks_)
      : block(block_),
        blocks(blocks_),
        first(d.first_of(block, blocks)),
        last(d.first_of(block + 1, blocks)),
        round(0) {
    part_first = last > first && last % d.steps != 0;
  }
  __device__ bool next(const TileDivision& d, TilePiece& piece) {
    if (!part_first && round < d.rounds) {
      piece = {block + blocks * round++, 0, d.steps};
      return true;
    }
    if (last <= first) return false;
    part_first = false;
    const int tile = (last - 1) / d.steps, begin = tile * d.steps, from = max(first, begin);
    piece = {d.shared_tile + tile, from - begin, last - begin};
    last = from;
    return true;
  }
};

// ---- exchange of partial sums between blocks
//
// A `Team` is the set of a block's kThreads threads that have sums. Each thread has kQuads groups of four sums.
// thread() is the thread's index, and synchronize() is a barrier for the team.

/// [blocks] tiles of partial sums, and [blocks] ready flags, which are 0 before and after a kernel.
struct SumExchange {
  float* sums;
  uint32_t* there;
};

/// The exchange memory of the context's stream. Requires has_exchange_memory().
SumExchange sum_exchange(Context&);

/// Address of this thread's sums from block `block`.
template <class Team>
__device__ inline float4* sums_of_block(const SumExchange& exchange, int block) {
  constexpr int kSums = Team::kThreads * Team::kQuads * 4;
  return reinterpret_cast<float4*>(exchange.sums + int64_t{block} * kSums) + Team::thread();
}
/// Publishes this block's partial sums. quad(q) returns the thread's q-th group of four sums, q < kQuads.
template <class Team, class Quad>
__device__ inline void give_sums(const SumExchange& exchange, const Quad& quad) {
  const int block = static_cast<int>(blockIdx.x);
  float4* const to = sums_of_block<Team>(exchange, block);
#pragma unroll
  for (int q = 0; q < Team::kQuads; ++q) to[q * Team::kThreads] = quad(q);
  __threadfence();
  Team::synchronize();
  if (Team::thread() == 0) atomicExch(exchange.there + block, 1u);
}

/// Waits for the partial sums of the earlier blocks of `tile`. Calls add(q, sums) for each such block, from the
/// preceding block back to the block with the tile's first step.
template <class Team, class Add>
__device__ inline void take_sums(const SumExchange& exchange, const TileDivision& division, int tile, const Add& add) {
  const int first_step = (tile - division.shared_tile) * division.steps, blocks = static_cast<int>(gridDim.x);
  int first = static_cast<int>(blockIdx.x) - 1;
  while (division.first_of(first, blocks) > first_step) --first;
  for (int block = first + Team::thread(); block < static_cast<int>(blockIdx.x); block += Team::kThreads) {
    uint32_t* const there = exchange.there + block;
    while (atomicAdd(there, 0u) == 0) {
    }
    atomicExch(there, 0u);
    __threadfence();
  }
  Team::synchronize();
  for (int block = static_cast<int>(blockIdx.x) - 1; block >= first; --block) {
    const float4* const from = sums_of_block<Team>(exchange, block);
#pragma unroll
    for (int q = 0; q < Team::kQuads; ++q) add(q, __ldcg(from + q * Team::kThreads));
  }
}

}  // namespace hctr::ops::hopper
