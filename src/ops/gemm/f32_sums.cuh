// The sums of the f32 GEMM kernel (ops/gemm/f32_product.cuh) after its main loop: reduction over the groups of a block,
// exchange of partial sums between blocks, and stores of the result.
#pragma once

#include "core/device/tensor.h"
#include "ops/gemm/f32_tile.cuh"

namespace hctr::ops::hopper {

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
    p.epilogue.sums[int64_t{tile / p.across} * p.shape.n + column] = sum;
  }
}

}  // namespace hctr::ops::hopper
