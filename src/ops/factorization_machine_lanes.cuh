// The kernels of a factorization machine for vectors of at most 32 elements, of any type and at any address: a warp has
// a sample, a lane one column of every few vectors. A lane reads its columns with loads that are all under way
// together; next to each other, those of a warp are whole lines of memory.
#pragma once

#include "ops/factorization_machine_shape.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kFmLaneThreads = 256, kFmLaneWarps = kFmLaneThreads / 32;
constexpr int kFmLoads = 8;          // elements that a lane loads together
constexpr int kFmKeptElements = 14;  // elements of y and of its gradient that a lane keeps in registers

bool takes_lanes(const FmShape& shape) { return shape.dim <= 32; }

/// `shared`: elements of shared memory that each warp needs.
template <class T>
cuda::Grid fm_lanes_grid(int64_t samples, int shared) {
  return {(samples + kFmLaneWarps - 1) / kFmLaneWarps, kFmLaneThreads,
          kFmLaneWarps * static_cast<size_t>(shared) * sizeof(T)};
}

/// How a warp goes over y's row: lane l has the columns l, l + lanes, ..., which are the same element of vectors
/// `at_once` apart.
struct FmLanes {
  int lane = static_cast<int>(threadIdx.x) % 32, dim, at_once, lanes;
  __device__ explicit FmLanes(const FmShape& shape)
      : dim(shape.dim), at_once(shape.by_dim.divide(32)), lanes(at_once * shape.dim) {}

  __device__ bool works() const { return lane < lanes; }
  /// Where the lane's first column is among a sample's slots, and how far the next one's is.
  __device__ int first_element(const FmShape& shape) const { return lane + shape.by_dim.divide(lane); }
  __device__ int step() const { return lanes + at_once; }
  /// In lane l < dim: the sum over the lanes with the same element, in order.
  __device__ float sum(float value) const {
    float total = value;
    for (int i = 1; i < at_once; ++i) total += __shfl_sync(0xffffffffu, value, lane + i * dim);
    return total;
  }
};

template <class T>
__global__ void __launch_bounds__(kFmLaneThreads)
    factorization_machine_lanes_kernel(View<const T, 2> x, View<const T, 2> vectors, View<const T, 2> weights,
                                       FmShape shape, View<T, 2> y, View<T, 2> second, View<T, 2> first) {
  const FmLanes warp(shape);
  const int slot_columns = shape.slots * shape.dim, first_element = warp.first_element(shape);
  const int64_t b = cuda::thread_index() / 32;
  if (b >= y.size(0)) return;
  const T *of_slots = x.row(b * shape.slots), *others = vectors.row(b);
  T* const to = y.row(b);
  float weight = 0;
  for (int j = warp.lane; j < shape.slots; j += 32)
    weight += static_cast<float>(of_slots[j * shape.slot_width() + shape.dim]);
  for (int j = warp.lane; j < weights.size(1); j += 32) weight += static_cast<float>(weights.row(b)[j]);
  float sum = 0, squares = 0;
  for (int begin = warp.works() ? warp.lane : shape.columns, at = first_element; begin < shape.columns;
       begin += kFmLoads * warp.lanes, at += kFmLoads * warp.step()) {
    T elements[kFmLoads];
#pragma unroll
    for (int i = 0; i < kFmLoads; ++i) {
      const int column = begin + i * warp.lanes;
      const T* from = column < slot_columns ? of_slots + at + i * warp.step() : others + column - slot_columns;
      if (column < shape.columns) elements[i] = *from;
    }
#pragma unroll
    for (int i = 0; i < kFmLoads; ++i) {
      const int column = begin + i * warp.lanes;
      if (column >= shape.columns) break;
      to[column] = elements[i];
      const auto e = static_cast<float>(elements[i]);
      sum += e;
      squares += e * e;
    }
  }
  const float all = warp.sum(sum), all_squares = warp.sum(squares);
  // Without a fused multiply-add a single vector gives exactly 0.
  float pairs = warp.lane < warp.dim ? __fsub_rn(__fmul_rn(all, all), all_squares) / 2 : 0;
  pairs = cuda::warp_sum(pairs);
  weight = cuda::warp_sum(weight);
  if (warp.lane == 0) {
    second.row(b)[0] = static_cast<T>(pairs);
    first.row(b)[0] = static_cast<T>(weight);
  }
}

/// A warp has the gradients of its sample's slots in shared memory, so that whole lines are written.
template <class T>
__global__ void __launch_bounds__(kFmLaneThreads, 4)
    factorization_machine_backward_lanes_kernel(View<const T, 2> y, View<const T, 2> d_y, View<const T, 2> d_second,
                                                View<const T, 2> d_first, FmShape shape, FmGradientViews<T> gradients) {
  extern __shared__ uint4 fm_gradients[];
  const FmLanes warp(shape);
  const int slot_columns = shape.slots * shape.dim, columns = shape.columns, of_slots = shape.of_slots();
  const int first_element = warp.first_element(shape);
  T* const slots = reinterpret_cast<T*>(fm_gradients) + static_cast<int>(threadIdx.x) / 32 * of_slots;
  const int64_t b = cuda::thread_index() / 32;
  if (b >= y.size(0)) return;
  const T *of_y = y.row(b), *of_d_y = d_y.row(b);
  const int begin = warp.works() ? warp.lane : columns, behind = begin + kFmKeptElements * warp.lanes;
  T kept_y[kFmKeptElements], kept_d_y[kFmKeptElements];
#pragma unroll
  for (int i = 0; i < kFmKeptElements; ++i) {
    const int column = begin + i * warp.lanes;
    kept_y[i] = kept_d_y[i] = static_cast<T>(0.0f);
    if (column < columns) {
      kept_y[i] = of_y[column];
      kept_d_y[i] = of_d_y[column];
    }
  }
  const auto of_pairs = static_cast<float>(d_second.row(b)[0]);
  const T of_weight = d_first.row(b)[0];
  float sum = 0;
#pragma unroll
  for (const T& e : kept_y) sum += static_cast<float>(e);
  for (int column = behind; column < columns; column += warp.lanes) sum += static_cast<float>(of_y[column]);
  sum = __shfl_sync(0xffffffffu, warp.sum(sum), warp.lane - shape.by_dim.divide(warp.lane) * warp.dim);
  T* const others = gradients.vectors.data ? gradients.vectors.row(b) : nullptr;
  const auto give = [&](int column, int at, T e, T d) {
    const T gradient = static_cast<T>(static_cast<float>(d) + of_pairs * (sum - static_cast<float>(e)));
    if (column < slot_columns)
      slots[at] = gradient;
    else if (others)
      others[column - slot_columns] = gradient;
  };
#pragma unroll
  for (int i = 0; i < kFmKeptElements; ++i) {
    const int column = begin + i * warp.lanes;
    if (column < columns) give(column, first_element + i * warp.step(), kept_y[i], kept_d_y[i]);
  }
  for (int column = behind, at = first_element + kFmKeptElements * warp.step(); column < columns;
       column += warp.lanes, at += warp.step())
    give(column, at, of_y[column], of_d_y[column]);
  if (gradients.x.data) {
    for (int j = warp.lane; j < shape.slots; j += 32) slots[j * shape.slot_width() + shape.dim] = of_weight;
    __syncwarp();
    T* const to = gradients.x.row(b * shape.slots);
#pragma unroll 4
    for (int i = warp.lane; i < of_slots; i += 32) to[i] = slots[i];
  }
  if (gradients.weights.data)
    for (int j = warp.lane; j < gradients.weights.size(1); j += 32) gradients.weights.row(b)[j] = of_weight;
}

}  // namespace
}  // namespace hctr::ops
