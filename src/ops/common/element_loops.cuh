// Element-wise kernels. A thread processes V adjacent elements of a row per iteration: 16 bytes if every row is aligned
// to 16 bytes, else one element. A dense tensor is treated as one long row, which avoids the division by the row
// length.
#pragma once

#include "core/device/launch.cuh"
#include "ops/common/element_loops.h"

namespace hctr::ops::cuda {

using hctr::cuda::early;
using hctr::cuda::Grid;
using hctr::cuda::grid_for;
using hctr::cuda::is_scoring;
using hctr::cuda::launch;
using hctr::cuda::start_early;
using hctr::cuda::start_early_in_scoring;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

/// Whether every row can be loaded and stored in aligned packs of V elements.
template <int V, class T>
bool takes_packs(View<T, 2> view) {
  constexpr int64_t kBytes = sizeof(T) * V;
  return reinterpret_cast<uintptr_t>(view.data) % kBytes == 0 &&
         (view.size(0) <= 1 || view.row_stride * static_cast<int64_t>(sizeof(T)) % kBytes == 0);
}

/// Position of up to V adjacent elements of a row.
struct Chunk {
  int64_t row, column;
};

inline __host__ __device__ int64_t chunks_per_row(int64_t columns, int width) { return (columns + width - 1) / width; }

/// Returns the position of chunk i. Chunks have `width` elements and are counted row by row.
__device__ inline Chunk chunk_at(int64_t i, int64_t rows, int64_t per_row, int width) {
  if (rows == 1) return {0, i * width};
  if (((i | per_row) >> 32) == 0) {  // 32-bit division is several times faster than 64-bit
    const uint32_t row = static_cast<uint32_t>(i) / static_cast<uint32_t>(per_row);
    return {row, static_cast<int64_t>(static_cast<uint32_t>(i) - row * static_cast<uint32_t>(per_row)) * width};
  }
  return {i / per_row, i % per_row * width};
}

/// Reads min(V, left) elements. The remaining elements of `to` are unchanged.
template <int V, class T>
__device__ inline void read(const T* from, int64_t left, float (&to)[V]) {
  if (left >= V) {
    const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(from);
#pragma unroll
    for (int j = 0; j < V; ++j) to[j] = static_cast<float>(pack.at[j]);
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (j < left) to[j] = static_cast<float>(from[j]);
  }
}

template <int V, class T>
__device__ inline void write(T* to, int64_t left, const float (&from)[V]) {
  if (left >= V) {
    Pack<T, V> pack;
#pragma unroll
    for (int j = 0; j < V; ++j) pack.at[j] = static_cast<T>(from[j]);
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (j < left) to[j] = static_cast<T>(from[j]);
  }
}

/// load_pack() returns V elements. load_part_of_pack() returns min(V, left) elements, then zeros. For several loads to
/// run concurrently, test `left` >= V once for all of them.
template <int V, class T>
__device__ inline Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, class T>
__device__ inline Pack<T, V> load_part_of_pack(const T* from, int64_t left) {
  Pack<T, V> pack;
#pragma unroll
  for (int j = 0; j < V; ++j) pack.at[j] = j < left ? from[j] : static_cast<T>(0.0f);
  return pack;
}

template <class T, int N>
struct Inputs {
  View<const T, 2> at[N];
};

/// y = f(x_0) or f(x_0, x_1). If f has prepare(), each thread calls prepare() once; prepare() may read device memory.
template <int V, class F, class In, class Out, int N>
__global__ void map_kernel(F f, Inputs<In, N> x, View<Out, 2> y) {
  start_early();
  if constexpr (requires { f.prepare(); }) f.prepare();
  const int64_t rows = y.size(0), columns = y.size(1), per_row = chunks_per_row(columns, V);
  for (int64_t i = thread_index(); i < rows * per_row; i += thread_count()) {
    const Chunk s = chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float in[N][V] = {}, out[V];
#pragma unroll
    for (int n = 0; n < N; ++n) read<V>(x.at[n].row(s.row) + s.column, left, in[n]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if constexpr (N == 1) out[j] = f(in[0][j]);
      if constexpr (N == 2) out[j] = f(in[0][j], in[1][j]);
    }
    write<V>(y.row(s.row) + s.column, left, out);
  }
}

template <class F, class In, class Out, int N>
void map(Context& ctx, const char* name, const F& f, const Inputs<In, N>& x, View<Out, 2> y) {
  constexpr int V = static_cast<int>(16 / std::max(sizeof(In), sizeof(Out)));
  bool packs = takes_packs<V>(y);
  for (const auto& view : x.at) packs = packs && takes_packs<V>(view);
  if (packs)
    launch(ctx, name, early(grid_for(y.size(0) * chunks_per_row(y.size(1), V))), map_kernel<V, F, In, Out, N>, f, x, y);
  else
    launch(ctx, name, early(grid_for(y.size(0) * y.size(1))), map_kernel<1, F, In, Out, N>, f, x, y);
}

}  // namespace hctr::ops::cuda
