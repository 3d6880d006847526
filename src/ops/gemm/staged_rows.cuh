// Stages rows in shared memory, for kernels that access single elements but read and write global memory in packs.
#pragma once

#include "ops/common/element_loops.cuh"

namespace hctr::ops::cuda {

/// Elements per row in shared memory, rounded up to whole packs.
template <class T>
__host__ __device__ int64_t staged_width(int64_t columns) {
  constexpr int V = 16 / sizeof(T);
  return chunks_per_row(columns, V) * V;
}

/// Copies `rows` rows from global to shared memory if kToShared, else from shared to global memory. In global memory,
/// the rows start at row `first`. `packs`: whether the rows in global memory are aligned to 16 bytes.
template <bool kToShared, class T, class Element>
__device__ void move_rows(View<Element, 2> memory, int64_t first, int rows, T* shared, bool packs = true) {
  constexpr int V = 16 / sizeof(T);
  const int columns = static_cast<int>(memory.size(1)), per_row = (columns + V - 1) / V;
  for (int i = static_cast<int>(threadIdx.x); i < rows * per_row; i += static_cast<int>(blockDim.x)) {
    const int row = i / per_row, begin = i % per_row * V;
    auto* far = memory.row(first + row) + begin;
    T* near = shared + i * V;
    if (packs && begin + V <= columns) {
      if constexpr (kToShared)
        *reinterpret_cast<uint4*>(near) = *reinterpret_cast<const uint4*>(far);
      else
        *reinterpret_cast<uint4*>(far) = *reinterpret_cast<const uint4*>(near);
    } else {
      for (int j = 0; j < V && begin + j < columns; ++j) {
        if constexpr (kToShared)
          near[j] = far[j];
        else
          far[j] = near[j];
      }
    }
  }
}

/// Copies elements between two 16-byte aligned addresses.
template <class T>
__device__ void copy_block(const T* from, T* to, int elements) {
  constexpr int V = 16 / sizeof(T);
  for (int i = static_cast<int>(threadIdx.x) * V; i < elements; i += static_cast<int>(blockDim.x) * V)
    if (i + V <= elements)
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
    else
      for (int j = i; j < elements; ++j) to[j] = from[j];
}

}  // namespace hctr::ops::cuda
