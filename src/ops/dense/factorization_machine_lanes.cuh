// Factorization machine kernels for vectors of at most 32 elements, of any dtype and alignment. A warp processes one
// sample, a few vectors at a time. A lane processes one element of one of these vectors. The loads of one lane run
// concurrently; the loads of a warp cover whole cache lines.
#pragma once

#include "ops/dense/factorization_machine_shape.cuh"

namespace hctr::ops {
namespace {

constexpr int kFmLoads = 8;          // elements that a lane loads in one group
constexpr int kFmKeptElements = 14;  // elements of y and d_y that a lane keeps in registers

bool takes_lanes(const FmShape& shape) { return shape.dim <= 32; }

template <class T>
__global__ void __launch_bounds__(kFmWarpThreads)
    factorization_machine_lanes_kernel(View<const T, 2> x, View<const T, 2> vectors, View<const T, 2> weights,
                                       FmShape shape, View<T, 2> y, View<T, 2> second, View<T, 2> first) {
  cuda::start_early();
  const FmWarp<1> warp(shape);
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
  warp.write_sums(b, warp.lane < shape.dim ? sum_of_pairs(all, all_squares) : 0, weight, second, first);
}

/// A warp stages the gradients of its sample's slots in shared memory, and then writes whole cache lines.
template <class T>
__global__ void __launch_bounds__(kFmWarpThreads, 4)
    factorization_machine_backward_lanes_kernel(View<const T, 2> y, View<const T, 2> d_y, View<const T, 2> d_second,
                                                View<const T, 2> d_first, FmShape shape, FmGradientViews<T> gradients) {
  extern __shared__ uint4 fm_gradients[];
  const FmWarp<1> warp(shape);
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
  sum = warp.sum_for_all(sum, shape);
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
