// Sums over the threads of a block or a warp, always in the same order.
#pragma once

#include <cuda_runtime.h>

namespace hctr::ops::cuda {

/// The sum of every thread's value, for thread 0 alone. A tree over kThreads, a power of two.
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

/// The sum over the 32 threads of a warp, for all of them. Every one must call.
template <class A>
__device__ inline A warp_sum(A value) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) value += __shfl_xor_sync(0xffffffffu, value, half);
  return value;
}

}  // namespace hctr::ops::cuda
