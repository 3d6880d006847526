// Kernel arguments of the interaction: the vectors of all samples, and their gradients.
#pragma once

#include "core/device/tensor.h"

namespace hctr::ops {

/// The number of pairs of different vectors.
__host__ __device__ inline int64_t pairs_of(int64_t vectors) { return vectors * (vectors - 1) / 2; }

template <class T>
struct Vectors {
  View<const T, 2> dense, slots;
  int dim, count;
  __device__ const T* at(int64_t b, int i) const {
    return i == 0 ? dense.row(b) : slots.row(b) + static_cast<int64_t>(i - 1) * dim;
  }
};
template <class T>
struct VectorGradients {
  View<T, 2> dense, slots;  ///< null: not requested
  int dim;
  __device__ T* at(int64_t b, int i) const {
    if (i == 0) return dense.data ? dense.row(b) : nullptr;
    return slots.data ? slots.row(b) + static_cast<int64_t>(i - 1) * dim : nullptr;
  }
};

}  // namespace hctr::ops
