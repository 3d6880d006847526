// Arguments of the factorization machine's kernels: sizes, and how a warp traverses a row of vectors.
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
  __host__ __device__ int others() const { return columns - slots * dim; }  // columns of y after those of slots
};

/// Views without data where a gradient is not requested.
template <class T>
struct FmGradientViews {
  View<T, 2> x, vectors, weights;
};

constexpr int kFmWarpThreads = 256, kFmWarps = kFmWarpThreads / 32;  // block size of kernels with one sample a warp

/// `shared`: words of shared memory that each warp needs.
template <class Word>
cuda::Grid fm_warps_grid(int64_t samples, int shared) {
  return {(samples + kFmWarps - 1) / kFmWarps, kFmWarpThreads, kFmWarps * static_cast<size_t>(shared) * sizeof(Word)};
}

/// How a warp traverses y's row in words of kElements elements: lane l has the words l, l + lanes, ..., which are the
/// same elements of vectors `at_once` apart, of `per_vector` words each.
template <int kElements>
struct FmWarp {
  int lane = static_cast<int>(threadIdx.x) % 32, per_vector, at_once, lanes;
  __device__ explicit FmWarp(const FmShape& shape)
      : per_vector(shape.dim / kElements), at_once(shape.by_dim.divide(32 * kElements)), lanes(at_once * per_vector) {}

  __device__ bool works() const { return lane < lanes; }
  /// Position of the lane's first word among a sample's slots, and the distance to its next word.
  __device__ int first_element(const FmShape& shape) const {
    return kElements * lane + shape.by_dim.divide(kElements * lane);
  }
  __device__ int step() const { return kElements * lanes + at_once; }
  /// The lane's first word from number `least` on.
  __device__ int first_from(int least) const { return lane + (least - lane + lanes - 1) / lanes * lanes; }
  /// In lane l < per_vector: the sum over the lanes with the same elements, in order.
  __device__ float sum(float value) const {
    float total = value;
    for (int i = 1; i < at_once; ++i) total += __shfl_sync(0xffffffffu, value, lane + i * per_vector);
    return total;
  }
  /// That sum in all lanes with these elements.
  __device__ float sum_for_all(float value, const FmShape& shape) const {
    return __shfl_sync(0xffffffffu, sum(value), lane - shape.by_dim.divide(kElements * lane) * per_vector);
  }
  /// Writes sample b's sums over lanes: of pairs, and of weights.
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

/// Half the difference of the squared sum and the sum of squares. Without a fused multiply-add a single vector gives
/// exactly 0.
__device__ float sum_of_pairs(float sum, float squares) { return __fsub_rn(__fmul_rn(sum, sum), squares) / 2; }

}  // namespace
}  // namespace hctr::ops
