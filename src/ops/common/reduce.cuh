// Sums over the threads of a block or a warp, in a fixed order.
#pragma once

#include <cuda_runtime.h>

namespace hctr::ops::cuda {

/// Returns the sum of all threads' values; only thread 0's result is valid. A tree reduction over kThreads, a power of
/// two.
template <int kThreads, class A>
__device__ inline A block_sum(A value) {
  __shared__ A values[kThreads];
  values[threadIdx.x] = value;
  __syncthreads();
#pragma unroll
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < static_cast<unsigned>(half)) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  return values[0];
}

/// warp_sum() and warp_max(): the sum or maximum of all lanes' values, returned in every lane. Call from all lanes of
/// the warp.
template <class A>
__device__ inline A warp_sum(A value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}
__device__ inline float warp_max(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

}  // namespace hctr::ops::cuda
