// How blocks divide a product of ops/f32_product.cuh evenly, or several with as many steps of k: they take whole tiles,
// and where tiles do not go round, parts of the sums of a tile. Such sums are added in their order by the block that
// has the last part of k, so results depend on the shapes and on the number of multiprocessors alone.
#pragma once

#include <cstdint>
#include <limits>

#include "device/cuda_runtime_calls.h"
#include "ops/f32_product.h"

namespace hctr::ops::hopper {

/// Of a tile: sums over the steps [first, last).
struct F32Piece {
  int tile, first, last;
};

/// How the tiles are divided. The first `rounds` tiles of every block are whole: block b has tiles b, b + blocks, ...
/// The steps of all tiles from shared_tile on, `shared_steps`, are divided evenly.
struct F32Division {
  int steps;  ///< of a tile
  int rounds, shared_tile, shared_steps;

  __host__ __device__ int first_of(int block, int blocks) const {
    return static_cast<int>(int64_t{shared_steps} * block / blocks);
  }
};

/// How so many tiles, each of so many steps, are divided, and among how many blocks.
struct F32Blocks {
  int blocks;
  F32Division division;
  F32Blocks(const char* name, int64_t tiles, int64_t steps) {
    const F32Divided divided = divide_f32_product(tiles, steps, hctr::cuda::multiprocessors());
    const int64_t whole = int64_t{divided.rounds} * divided.blocks;
    HCTR_EXPECT((tiles - whole) * steps <= std::numeric_limits<int32_t>::max() && tiles + whole < (int64_t{1} << 31),
                name, " of too many tiles");
    blocks = divided.blocks;
    division = {static_cast<int>(steps), divided.rounds, static_cast<int>(whole),
                static_cast<int>((tiles - whole) * steps)};
  }
};

/// The pieces of a block. A piece that another block needs comes first, and one that needs those of blocks before this
/// one comes last: so nobody waits for a block that may not have begun.
struct F32Pieces {
  int block, blocks, first, last, round;
  bool part_first;

  __device__ F32Pieces(const F32Division& d, int block_, int blocks_)
      : block(block_),
        blocks(blocks_),
        first(d.first_of(block, blocks)),
        last(d.first_of(block + 1, blocks)),
        round(0) {
    part_first = last > first && last % d.steps != 0;
  }
  __device__ bool next(const F32Division& d, F32Piece& piece) {
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

/// Sums that blocks hand to others: [blocks] tiles, and for each whether it is there, 0 before and after a kernel.
struct F32Exchange {
  float* sums;
  uint32_t* there;
};
/// The memory of the context's stream for this.
F32Exchange f32_exchange(Context&);

/// Four adjacent sums in the order in which they are stored for others. They are stored at once, which needs registers
/// of four adjacent banks; so none is in the bank of the number of its column.
__device__ inline float4 rotated(const float* sums) { return make_float4(sums[3], sums[0], sums[1], sums[2]); }
__device__ inline void add_rotated(float* sums, float4 others) {
  sums[3] += others.x, sums[0] += others.y, sums[1] += others.z, sums[2] += others.w;
}

/// Where this thread's sums of block `block` are.
template <class Tiles>
__device__ inline float4* sums_of_block(const F32Exchange& exchange, int block) {
  return reinterpret_cast<float4*>(exchange.sums + int64_t{block} * (Tiles::kM * Tiles::kN)) + threadIdx.x;
}

template <class Tiles>
__device__ inline void give_sums(const F32Exchange& exchange, const float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
  const int block = static_cast<int>(blockIdx.x);
  float4* const to = sums_of_block<Tiles>(exchange, block);
#pragma unroll
  for (int i = 0; i < Tiles::kOwnRows; ++i)
#pragma unroll
    for (int j = 0; j < Tiles::kColumns; j += 4)
      to[(i * Tiles::kColumns + j) / 4 * Tiles::kThreads] = rotated(own[i] + j);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(exchange.there + block, 1u);
}

/// Adds the sums of the blocks before this one, back to the one with the first step of the tile.
template <class Tiles>
__device__ inline void take_sums(const F32Exchange& exchange, const F32Division& division, int tile,
                                 float (&own)[Tiles::kOwnRows][Tiles::kColumns]) {
  const int first_step = (tile - division.shared_tile) * division.steps, blocks = static_cast<int>(gridDim.x);
  int first = static_cast<int>(blockIdx.x) - 1;
  while (division.first_of(first, blocks) > first_step) --first;
  for (int block = first + static_cast<int>(threadIdx.x); block < static_cast<int>(blockIdx.x);
       block += Tiles::kThreads) {
    while (atomicAdd(exchange.there + block, 0u) == 0) {
    }
    atomicExch(exchange.there + block, 0u);
    __threadfence();
  }
  __syncthreads();
  for (int block = static_cast<int>(blockIdx.x) - 1; block >= first; --block) {
    const float4* const from = sums_of_block<Tiles>(exchange, block);
#pragma unroll
    for (int i = 0; i < Tiles::kOwnRows; ++i)
#pragma unroll
      for (int j = 0; j < Tiles::kColumns; j += 4)
        add_rotated(own[i] + j, __ldcg(from + (i * Tiles::kColumns + j) / 4 * Tiles::kThreads));
  }
}

}  // namespace hctr::ops::hopper
