// Arguments of the factorization machine kernels: sizes, and the order in which a warp traverses a row of vectors.
#pragma once

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"
#include "ops/common/small_divisor.h"

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
  __host__ __device__ int others() const { return columns - slots * dim; }  // columns of y after the slots' columns
};

/// Views of the gradients; a null view is not requested.
template <class T>
struct FmGradientViews {
  View<T, 2> x, vectors, weights;
};

constexpr int kFmWarpThreads = 256, kFmWarps = kFmWarpThreads / 32;  // block size of kernels with one sample per warp

/// The grid for one sample per warp. `shared`: words of shared memory per warp.
template <class Word>
cuda::Grid fm_warps_grid(int64_t samples, int shared) {
  return {(samples + kFmWarps - 1) / kFmWarps, kFmWarpThreads, kFmWarps * static_cast<size_t>(shared) * sizeof(Word)};
}

/// How a warp traverses a row of y in words of kElements elements. Lane l processes the words l, l + lanes, l + 2
/// lanes, ...: the same elements of every at_once-th vector. A vector has per_vector words.
template <int kElements>
struct FmWarp {
  int lane = static_cast<int>(threadIdx.x) % 32, per_vector, at_once, lanes;
  __device__ explicit FmWarp(const FmShape& shape)
      : per_vector(shape.dim / kElements), at_once(shape.by_dim.divide(32 * kElements)), lanes(at_once * per_vector) {}

  __device__ bool works() const { return lane < lanes; }
  /// first_element(): offset of the lane's first word in a sample's slots of x. step(): offset from a word to the
  /// lane's next word.
  __device__ int first_element(const FmShape& shape) const {
    return kElements * lane + shape.by_dim.divide(kElements * lane);
  }
  __device__ int step() const { return kElements * lanes + at_once; }
  /// Of the words that the lane processes, returns the lowest index that is at least `least`.
  __device__ int first_from(int least) const { return lane + (least - lane + lanes - 1) / lanes * lanes; }
  /// Sums `value` over all lanes that process the same elements of a vector, in a fixed order. The sum is returned in
  /// the lanes l < per_vector.
  __device__ float sum(float value) const {
    float total = value;
    for (int i = 1; i < at_once; ++i) total += __shfl_sync(0xffffffffu, value, lane + i * per_vector);
    return total;
  }
  /// Like sum(), but returns in every lane the sum for the elements of that lane.
  __device__ float sum_for_all(float value, const FmShape& shape) const {
    return __shfl_sync(0xffffffffu, sum(value), lane - shape.by_dim.divide(kElements * lane) * per_vector);
  }
  /// Sums `pairs` and `weight` over lanes, and writes them to `second` and `first` of sample b.
  template <class T>
  __device__ void write_sums(int64_t b, float pairs, float weight, const View<T, 2>& second,
                             const View<T, 2>& first) const {
    pairs = cuda::warp_sum(pairs);
    weight = cuda::warp_sum(weight);
    if (lane != 0) return;
    second.row(b)[0] = static_cast<T>(pairs);
    first.row(b)[0] = static_cast<T>(weight);
  }
};

/// (sum^2 - squares) / 2. Without a fused multiply-add, the result for a single vector is exactly 0.
__device__ float sum_of_pairs(float sum, float squares) { return __fsub_rn(__fmul_rn(sum, sum), squares) / 2; }

}  // namespace
}  // namespace hctr::ops
