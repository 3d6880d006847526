// A GEMM tile on Hopper (ops/gemm/hopper.cuh): tile sizes, shared memory of a block, and the epilogue in registers.
#pragma once

#include <algorithm>

#include "core/device/tensor.h"
#include "ops/common/element_loops.cuh"
#include "ops/gemm/pipeline.cuh"
#include "ops/gemm/shared_storage.cuh"

namespace hctr::ops::hopper {

/// result [m, n] = a [m, k] b [k, n].
struct ProductShape {
  int m, n, k;
};

constexpr int kBoxRowBytes = 128;             // bytes per row of a box with the widest swizzle
constexpr int kBoxBytes = 64 * kBoxRowBytes;  // 64 rows
constexpr int kHelpers = 96;                  // three warps that prepare masks and biases

/// Tiles of 64 kGroups x kN; each of kGroups groups of four warps computes 64 rows. kTransposedB: n is contiguous in b,
/// else k. kBias: the epilogue adds a bias.
template <class T_, int kGroups_, int kN_, bool kTransposedB_, bool kBias_>
struct Tiling {
  using T = T_;
  static constexpr int kGroups = kGroups_, kN = kN_;
  static constexpr bool kTransposedB = kTransposedB_, kBias = kBias_;
  static constexpr int kM = 64 * kGroups, kThreads = 128 * (kGroups + 1), kConsumers = 128 * kGroups;
  static constexpr int kDepth = kBoxRowBytes / sizeof(T);    // values of k per pipeline stage
  static constexpr int kColumns = kBoxRowBytes / sizeof(T);  // columns of a TMA box of the result
  static constexpr int kFullBoxes = kN / kColumns, kLast = kN % kColumns;
  static constexpr int kBytesA = kM * kBoxRowBytes;
  static constexpr int kBoxesB = kTransposedB ? (kN + kColumns - 1) / kColumns : 1;
  static constexpr int kBoxBytesB = kTransposedB ? kBoxBytes : kN * kBoxRowBytes;
  static constexpr int kStageBytes = kBytesA + kBoxesB * kBoxBytesB;
  // Bytes of a group's result.
  static constexpr int kResultBytes = (64 * kN * static_cast<int>(sizeof(T)) + 1023) / 1024 * 1024;
  static constexpr int kMaskStride = (kN + 63) / 64 * 8, kMaskBytes = kM * kMaskStride;
  static constexpr int kBiasBytes = kBias ? kN * 4 : 0;
  // Bytes of shared memory besides the stages. The barriers need at most 256 of these bytes.
  static constexpr int kOtherBytes = kGroups * kResultBytes + 2 * (kMaskBytes + kBiasBytes) + 256 + int{kBoxAlignment};
  // Small tiles use at most half of the shared memory of a multiprocessor. Blocks of the next GEMM can then start
  // early.
  static constexpr int kMostBytes = kGroups == 1 ? kMostSharedBytes / 2 - 1024 : kMostSharedBytes;
  static constexpr int kStages = std::min(8, (kMostBytes - kOtherBytes) / kStageBytes);
  static_assert(kStages >= 2 && kStageBytes % kBoxAlignment == 0);
};

/// Shared memory of a block. `operands`: TMA loads fill a stage, and each group releases it. `tiles`: the producer
/// publishes the number of a tile, and the consumers release it together with the tile's mask and biases, which helper
/// warps write (`mask_ready`).
template <class Tiles>
struct TileStorage {
  std::byte stages[Tiles::kStages * Tiles::kStageBytes];    ///< operands
  std::byte results[Tiles::kGroups * Tiles::kResultBytes];  ///< boxes of 64 rows, in the layout of the TMA store
  uint8_t masks[2][Tiles::kMaskBytes];                      ///< one bit per element, kMaskStride bytes per row
  float biases[2][Tiles::kBias ? Tiles::kN : 1];
  Pipeline<Tiles::kStages> operands;
  Pipeline<2> tiles;
  uint64_t mask_ready[2];
  int tile[2];

  __device__ void init_barriers() {
    operands.init(1, Tiles::kGroups);
    tiles.init(1, Tiles::kConsumers);
    for (int p = 0; p < 2; ++p) mbarrier_init(mask_ready + p, kHelpers);
    fence_mbarrier_init();
  }
};

/// Address of (row, byte within the row) of a group's 64 rows in its boxes.
template <class Tiles>
__device__ inline std::byte* result_at(std::byte* result, int row, int byte) {
  const int box = byte / kBoxRowBytes, in_box = byte % kBoxRowBytes;
  if (Tiles::kLast == 0 || box < Tiles::kFullBoxes)
    return result + box * kBoxBytes + row * kBoxRowBytes + ((in_box / 16) ^ (row % 8)) * 16 + in_box % 16;
  return result + box * kBoxBytes + row * (Tiles::kLast * static_cast<int>(sizeof(typename Tiles::T))) + in_box;
}

/// Applies the epilogue to `d`, the accumulators of one thread in its group's 64 rows; writes to `result`. `mask`,
/// `bias`: the mask bits and the biases of this tile. `thread`: index in the group.
template <class Tiles, class E>
__device__ inline void finish_products(const E& epilogue, const uint8_t* mask, const float* bias, int group, int thread,
                                       const float* d, std::byte* result) {
  using T = typename Tiles::T;
  const int lane = thread % 32, first_row = 16 * (thread / 32), row = first_row + lane / 4, column = 2 * (lane % 4);
  mask += (64 * group + row) * Tiles::kMaskStride;
#pragma unroll
  for (int q = 0; q < (Tiles::kN + 63) / 64; ++q) {
    const uint2 bits[2] = {*reinterpret_cast<const uint2*>(mask + 8 * q),
                           *reinterpret_cast<const uint2*>(mask + 8 * Tiles::kMaskStride + 8 * q)};
#pragma unroll
    for (int j = 0; j < 8 && 64 * q + 8 * j < Tiles::kN; j += 2) {
      // value[c][r]: two elements of column block j + c, in the thread's row r; the two rows are 8 apart
      float2 value[2][2];
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const uint32_t word = j + c < 4 ? bits[r].x : bits[r].y, both = word >> (8 * ((j + c) % 4) + column);
          const float* p = d + 32 * q + 4 * (j + c) + 2 * r;
          float2 of_columns = make_float2(0, 0);
          if constexpr (Tiles::kBias)
            of_columns = *reinterpret_cast<const float2*>(bias + 64 * q + 8 * (j + c) + column);
          value[c][r] =
              make_float2(epilogue.finish(p[0], of_columns.x, both & 1), epilogue.finish(p[1], of_columns.y, both & 2));
        }
      if constexpr (sizeof(T) == 2) {
        uint32_t two[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) two[i] = round_two<T>(value[i / 2][i % 2].x, value[i / 2][i % 2].y);
        const int of_lane = lane / 8;  // the matrix of which this lane passes a row address
        stmatrix(result_at<Tiles>(result, first_row + of_lane % 2 * 8 + lane % 8, 2 * (64 * q + 8 * (j + of_lane / 2))),
                 two);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          *reinterpret_cast<float2*>(
              result_at<Tiles>(result, row + i % 2 * 8, 4 * (64 * q + 8 * (j + i / 2) + column))) = value[i / 2][i % 2];
      }
    }
  }
}

/// One thread: stores the boxes of a group's 64 rows, at (row, column) of the result. `last`: the TMA map of a narrower
/// box, for the rest of the tile's width.
template <class Tiles>
__device__ inline void store_result(const CUtensorMap& to, const CUtensorMap& last, int row, int column,
                                    const std::byte* result) {
#pragma unroll
  for (int i = 0; i < Tiles::kFullBoxes; ++i) tma_store(to, column + i * Tiles::kColumns, row, result + i * kBoxBytes);
  if constexpr (Tiles::kLast > 0)
    tma_store(last, column + Tiles::kFullBoxes * Tiles::kColumns, row, result + Tiles::kFullBoxes * kBoxBytes);
  tma_store_commit_group();
}

template <class T>
__device__ inline float unpack(uint32_t both, int which) {
  T value;
  value.bits = static_cast<uint16_t>(both >> (16 * which));
  return static_cast<float>(value);
}

/// sums[column] = the sum over a group's 64 rows of the rounded results, for columns below `columns`, in a fixed order.
/// `thread`: index in the group.
template <class Tiles>
__device__ inline void sum_columns(const std::byte* result, int thread, int columns, float* sums) {
  using T = typename Tiles::T;
  constexpr int kEach = 4 / sizeof(T);  // adjacent columns per thread, four bytes
  for (int column = kEach * thread; column < Tiles::kN; column += kEach * 128) {
    const int byte = column * static_cast<int>(sizeof(T)), unit = byte % kBoxRowBytes / 16;
    const bool narrow = byte / kBoxRowBytes >= Tiles::kFullBoxes;  // the narrow last box is not swizzled
    const std::byte* const first = result + byte / kBoxRowBytes * kBoxBytes + byte % 16;
    const int row_bytes = narrow ? Tiles::kLast * static_cast<int>(sizeof(T)) : kBoxRowBytes;
    float parts[4][kEach] = {};
#pragma unroll
    for (int row = 0; row < 64; ++row) {
      const std::byte* at = first + row * row_bytes + (narrow ? unit : unit ^ (row % 8)) * 16;
      if constexpr (kEach == 2) {
        const uint32_t both = *reinterpret_cast<const uint32_t*>(at);
        parts[row % 4][0] += unpack<T>(both, 0);
        parts[row % 4][1] += unpack<T>(both, 1);
      } else {
        parts[row % 4][0] += *reinterpret_cast<const float*>(at);
      }
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (column + e < columns) sums[column + e] = (parts[0][e] + parts[1][e]) + (parts[2][e] + parts[3][e]);
  }
}

}  // namespace hctr::ops::hopper
