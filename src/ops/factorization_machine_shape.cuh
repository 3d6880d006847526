// What the kernels of a factorization machine are given: sizes, and how a warp goes over a row of vectors.
#pragma once

#include "ops/element_loops.cuh"
#include "ops/small_divisor.h"

namespace hctr::ops {
namespace {

struct FmShape {
  FmShape(int64_t of_slots, int64_t of_vector, int64_t of_y)
      : slots(static_cast<int>(of_slots)),
        dim(static_cast<int>(of_vector)),
        columns(static_cast<int>(of_y)),
        by_dim(dim),
        by_width(dim + 1),
        by_of_slots(slots * (dim + 1)) {}
  int slots, dim, columns;
  SmallDivisor by_dim, by_width, by_of_slots;
  __host__ __device__ int slot_width() const { return dim + 1; }
  __host__ __device__ int of_slots() const { return slots * slot_width(); }
  __host__ __device__ int others() const { return columns - slots * dim; }  // columns of y behind those of slots
};

/// Views without data where a gradient is not wanted.
template <class T>
struct FmGradientViews {
  View<T, 2> x, vectors, weights;
};

}  // namespace
}  // namespace hctr::ops
