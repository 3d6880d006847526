// Access to a table's vectors by small groups of lanes: one vector per group, Width elements per lane and access.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/base/half.h"
#include "core/device/launch.cuh"
#include "ops/embedding/rank_memory.h"

namespace hctr::ops {

/// `Width` consecutive elements of a vector.
template <int Width>
struct Fragment {
  float v[Width];
};

template <int Width>
__device__ void add(const Fragment<Width>& part, Fragment<Width>& sum) {
#pragma unroll
  for (int i = 0; i < Width; ++i) sum.v[i] += part.v[i];
}

/// Width elements of T, aligned for one load or store.
template <class T, int Width>
struct alignas(sizeof(T) * Width) Pack {
  T v[Width];
};

template <int Width, class T>
__device__ Fragment<Width> load_fragment(const T* from) {
  const auto pack = *reinterpret_cast<const Pack<T, Width>*>(from);
  Fragment<Width> part;
#pragma unroll
  for (int i = 0; i < Width; ++i) part.v[i] = static_cast<float>(pack.v[i]);
  return part;
}

template <int Width, class T>
__device__ void store_fragment(T* to, const Fragment<Width>& part) {
  Pack<T, Width> pack;
#pragma unroll
  for (int i = 0; i < Width; ++i) pack.v[i] = T(part.v[i]);
  *reinterpret_cast<Pack<T, Width>*>(to) = pack;
}

/// Lanes per vector: a power of two, at most a warp. A lane processes every lanes-th fragment.
inline int lanes_for(int64_t dim, int width) {
  return static_cast<int>(std::min<uint64_t>(32, std::bit_ceil(static_cast<uint64_t>((dim + width - 1) / width))));
}

/// The group of `lanes` lanes that contains this thread: its index, the number of groups in the launch or BlockRange,
/// and the thread's lane.
struct Group {
  int64_t index, count;
  int lane, lanes;
  unsigned mask;  // the group's lanes within the warp

  __device__ explicit Group(int lanes_) : Group(hctr::cuda::BlockRange{blockIdx.x, gridDim.x}, lanes_) {}
  __device__ Group(const hctr::cuda::BlockRange& range, int lanes_)
      : index(range.thread_index() / lanes_),
        count(range.thread_count() / lanes_),
        lane(static_cast<int>(threadIdx.x) % lanes_),
        lanes(lanes_),
        mask((lanes_ == 32 ? 0xffffffffu : (1u << lanes_) - 1) << (threadIdx.x % 32 / lanes_ * lanes_)) {}
};

constexpr int kThreadsToFar = 768;  // maximum block size of kernels that access other devices

/// The grid of kernels that access memory of other devices. The links limit the speed of such a kernel, so more blocks
/// would only occupy multiprocessors that other kernels need. For long vectors, somewhat less than half of the
/// multiprocessors, with one full-size block each, saturate the links. Concurrent GEMMs run on the other
/// multiprocessors; a GEMM with one block per multiprocessor then needs two waves. Short vectors, and vectors accessed
/// element by element, need all multiprocessors.
inline hctr::cuda::Grid grid_of(const RankMemory& memory, int64_t threads, int64_t vector_bytes, int width) {
  constexpr int64_t kLong = 128, kBlocksToFar = 264;  // measured: half or double the number of blocks is slower
  if (!memory.remote) return hctr::cuda::grid_for(threads);
  if (vector_bytes < kLong || width == 1) return hctr::cuda::grid_for(threads, 256, kBlocksToFar);
  return hctr::cuda::grid_for(threads, kThreadsToFar, std::max(1, hctr::cuda::multiprocessors() / 2 - 2));
}

/// Calls body.operator()<Width>() with Width 4 if `by_four`, else 1.
template <class Body>
void dispatch_width(bool by_four, Body&& body) {
  if (by_four)
    body.template operator()<4>();
  else
    body.template operator()<1>();
}

/// Whether vectors of `dim` elements of `size` bytes can be accessed `width` elements at a time. The vectors start at
/// `data` plus multiples of `stride` and `dim` elements.
inline bool splits_by(int64_t width, const void* data, int64_t size, int64_t stride, int64_t dim) {
  return dim % width == 0 && stride % width == 0 &&
         reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width * size) == 0;
}

}  // namespace hctr::ops
