// The main loop of the f32 GEMM kernel (ops/gemm/f32_product.cuh): TMA loads of a step, and its multiply-adds.
#pragma once

#include "ops/gemm/f32_tile.cuh"

namespace hctr::ops::hopper {

__device__ inline float4 load_four(uint32_t shared) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(shared));
  return v;
}

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

/// Accumulates a group's part of one step. a and b: addresses of the thread's first elements. A loop iteration
/// processes four values of k. A longer loop body would exceed the instruction cache of a quadrant of the
/// multiprocessor. Successive values of k use different operand registers, which lets the compiler assign registers
/// without bank conflicts.
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
        // the last call loads values that are not used, but the addresses are in shared memory
        load_both((k + 1) % 2, k + 1);
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
      // The 16-byte units of a row are swizzled by the low bits of the row number, which are equal for all rows of a
      // thread.
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
            // start with an element of b that is in another register bank than the element of a
            const int j = (c + l + 2) % kColumns;
            sums[i][j] = fmaf(of_a[i % 2][l], of_b[l][j], sums[i][j]);
          }
      }
      b += kAtOnce * 4 * Tiles::kN;
    }
  }
}

}  // namespace hctr::ops::hopper
