// A tile of a product in the registers of its threads: which elements of y are positive there, and what becomes of the
// products. For sources that are compiled for Hopper (ops/hopper.cuh).
#pragma once

#include <algorithm>

#include "device/tensor.h"
#include "ops/element_loops.cuh"
#include "ops/hopper.cuh"

namespace hctr::ops::hopper {

constexpr int kDepth = 64;                  // of k in a box: 128 bytes, the widest swizzle
constexpr int kBoxBytes = 64 * kDepth * 2;  // 64 rows of it
constexpr size_t kRingBytes = 192 * 1024;

template <int kGroups_, int kN_>
struct Tiling {
  static constexpr int kGroups = kGroups_, kN = kN_;
  static constexpr int kM = 64 * kGroups, kThreads = 128 * (kGroups + 1);
  static constexpr int kBoxesA = kGroups, kBoxesB = kN / 64;
  static constexpr int kStageBytes = (kBoxesA + kBoxesB) * kBoxBytes;
  static constexpr int kStages = std::min<int>(8, kRingBytes / kStageBytes);
  static constexpr int kConsumers = 128 * kGroups, kMaskBytes = kM * kN / 8, kSumBytes = kGroups * 4 * kN * 4;
  // Two masks, so that the next tile's is ready; and the address is rounded up to the 1,024 bytes of an atom.
  static constexpr size_t kSharedBytes =
      kStages * kStageBytes + 2 * kMaskBytes + kSumBytes + (2 * kStages + 4) * 8 + 1024;
};
using Large = Tiling<2, 256>;
using Middle = Tiling<2, 128>;
using Small = Tiling<1, 64>;

struct ProductShape {
  int m, n, k;
};

/// What becomes of a product p: d_z = y > 0 ? factor p : 0. `sums`: of the columns of d_z, for 64 rows each.
template <class T>
struct Finish {
  View<const T, 2> y;
  View<T, 2> d_z;
  float factor;
  float* sums;
};

template <class T>
__device__ inline float unpack(uint32_t both, int which) {
  T value;
  value.bits = static_cast<uint16_t>(both >> (16 * which));
  return static_cast<float>(value);
}

/// A thread's position in a tile: its first row and column.
struct TilePosition {
  int row, column, group, lane, thread;
};

template <class Tiles>
__device__ inline TilePosition position_in(int tile_m, int tile_n, int consumer) {
  const int lane = consumer % 32, warp = consumer / 32 % 4, group = consumer / 128;
  return {tile_m * Tiles::kM + 64 * group + 16 * warp + lane / 4, tile_n * Tiles::kN + 2 * (lane % 4), group, lane,
          consumer % 128};
}

/// Which of eight adjacent elements are positive: bit c for element c. NaN is not.
template <class T>
__device__ inline uint32_t positive(const uint4& eight) {
  constexpr uint32_t kInfinity = std::is_same_v<T, BFloat16> ? 0x7f80 : 0x7c00;
  const uint32_t two[4] = {eight.x, eight.y, eight.z, eight.w};
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if ((two[i] & 0xffff) - 1 < kInfinity) bits |= 1u << (2 * i);
    if ((two[i] >> 16) - 1 < kInfinity) bits |= 2u << (2 * i);
  }
  return bits;
}

/// Reads the mask of a tile, kN / 8 bytes a row, by threads 0 to kThreads - 1, of which this is `t`. Rows of y begin at
/// multiples of 16 bytes.
template <class Tiles, int kThreads, class T>
__device__ inline void read_mask(const View<const T, 2>& y, const ProductShape& shape, int tile_m, int tile_n, int t,
                                 uint8_t* mask) {
  constexpr int kPerRow = Tiles::kN / 8, kAtOnce = 16;
#pragma unroll 1
  for (int begin = t; begin < Tiles::kMaskBytes; begin += kAtOnce * kThreads) {
    uint4 eight[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int chunk = begin + i * kThreads;
      const int row = tile_m * Tiles::kM + chunk / kPerRow, column = tile_n * Tiles::kN + chunk % kPerRow * 8;
      eight[i] = make_uint4(0, 0, 0, 0);
      if (chunk < Tiles::kMaskBytes && row < shape.m && column < shape.n)
        eight[i] = *reinterpret_cast<const uint4*>(y.row(row) + column);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (const int chunk = begin + i * kThreads; chunk < Tiles::kMaskBytes)
        mask[chunk] = static_cast<uint8_t>(positive<T>(eight[i]));
  }
}

/// Lanes 4 i to 4 i + 3 have two columns each of four chunks of eight; afterwards each has one whole chunk.
__device__ inline void exchange_in_quad(uint32_t (&v)[4], int lane) {
  const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? v[i] : v[i + 1], 1);
    (odd ? v[i] : v[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? v[i] : v[i + 2], 2);
    (upper ? v[i] : v[i + 2]) = got;
  }
}

/// Stores the columns that `out` holds, 16 bytes a lane.
template <class T>
__device__ inline void store(const View<T, 2>& y, const ProductShape& shape, const TilePosition& at, int q,
                             const uint32_t (&out)[16]) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = out[2 * (4 * half + k) + r];
      exchange_in_quad(v, at.lane);
      const int row = at.row + 8 * r;
      const int column = at.column - 2 * (at.lane % 4) + 64 * q + 32 * half + 8 * (at.lane % 4);
      if (row >= shape.m || column >= shape.n) continue;
      T* to = y.row(row) + column;
      if (column + 8 <= shape.n) {
        *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
      } else {
#pragma unroll
        for (int c = 0; c < 8; ++c)
          if (column + c < shape.n) to[c].bits = static_cast<uint16_t>(v[c / 2] >> (16 * (c % 2)));
      }
    }
}

/// The sums over the 16 rows of a warp of the columns that `out` holds, each of which eight lanes have: in three steps
/// lanes give each other half of their columns. Lane l ends with columns j = l / 4 and its two, in sum[0] and sum[1].
template <class T>
__device__ inline void sum_of_warp_rows(const uint32_t (&out)[16], int lane, float (&sum)[2]) {
  float s[16];  // [j][e]
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) s[2 * j + e] = unpack<T>(out[2 * j], e) + unpack<T>(out[2 * j + 1], e);
  const auto halve = [&]<int kHalf>(std::integral_constant<int, kHalf>) {  // of the values that a lane has
    const bool upper = lane & (2 * kHalf);                                 // bit 16, 8, 4
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float mine = upper ? s[kHalf + i] : s[i], other = upper ? s[i] : s[kHalf + i];
      s[i] = mine + __shfl_xor_sync(~0u, other, 2 * kHalf);
    }
  };
  halve(std::integral_constant<int, 8>());
  halve(std::integral_constant<int, 4>());
  halve(std::integral_constant<int, 2>());
  sum[0] = s[0];
  sum[1] = s[1];
}

/// Finishes a tile whose products the threads of a group hold in d. `of_warps`: memory for four sums of each column.
template <class Tiles, class T>
__device__ inline void finish_tile(const Finish<T>& end, const ProductShape& shape, int tile_m, int tile_n,
                                   int consumer, const uint8_t* mask, const float* d, float* of_warps) {
  const TilePosition at = position_in<Tiles>(tile_m, tile_n, consumer);
  const int warp = at.thread / 32, first_row = at.row - at.lane / 4 - 16 * warp;
  mask += (at.row - tile_m * Tiles::kM) * (Tiles::kN / 8);
  float sums[Tiles::kN / 64][2];
#pragma unroll
  for (int q = 0; q < Tiles::kN / 64; ++q) {
    uint32_t out[16];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint2 bits = *reinterpret_cast<const uint2*>(mask + r * 8 * (Tiles::kN / 8) + q * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const uint32_t both = (j < 4 ? bits.x : bits.y) >> (8 * (j % 4) + 2 * (at.lane % 4));
        const float* p = d + 32 * q + 4 * j + 2 * r;
        out[2 * j + r] = round_two<T>(both & 1 ? end.factor * p[0] : 0.0f, both & 2 ? end.factor * p[1] : 0.0f);
      }
    }
    sum_of_warp_rows<T>(out, at.lane, sums[q]);
    store(end.d_z, shape, at, q, out);
  }
  // of the four warps, in order
#pragma unroll
  for (int q = 0; q < Tiles::kN / 64; ++q)
    *reinterpret_cast<float2*>(of_warps + warp * Tiles::kN + 64 * q + 8 * (at.lane / 4) + 2 * (at.lane % 4)) =
        make_float2(sums[q][0], sums[q][1]);
  synchronize_group(1 + at.group, 128);
  for (int c = at.thread; c < Tiles::kN; c += 128) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) sum += of_warps[w * Tiles::kN + c];
    const int column = tile_n * Tiles::kN + c;
    if (column < shape.n && first_row < shape.m) end.sums[int64_t{first_row / 64} * shape.n + column] = sum;
  }
  synchronize_group(1 + at.group, 128);
}

}  // namespace hctr::ops::hopper
