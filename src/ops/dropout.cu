// Philox gives four random numbers per draw. A thread processes V adjacent elements with V / 4 draws, and one more when
// the index of the row's first element is not a multiple of four.
#include "ops/dropout.h"

#include "ops/dropout_rule.h"
#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

/// Values first, ..., first + V - 1 of the sequence (key, hi), where `first` is a multiple of four.
template <int V>
__device__ inline void draw_aligned(uint64_t key, uint64_t hi, uint64_t first, uint32_t (&bits)[V]) {
#pragma unroll
  for (int b = 0; b < V / 4; ++b) {
    const Random4 now = philox(key, hi, (first >> 2) + static_cast<uint64_t>(b));
#pragma unroll
    for (int j = 0; j < 4; ++j) bits[b * 4 + j] = now.v[j];
  }
}

/// The same for any `first`.
template <int V>
__device__ inline void draw(uint64_t key, uint64_t hi, uint64_t first, uint32_t (&bits)[V]) {
  if ((first & 3) == 0) return draw_aligned<V>(key, hi, first, bits);
  const uint64_t block = first >> 2;
  const int skip = static_cast<int>(first & 3);
  Random4 now = philox(key, hi, block);
#pragma unroll
  for (int b = 0; b < V / 4; ++b) {
    const Random4 next = philox(key, hi, block + static_cast<uint64_t>(b) + 1);
#pragma unroll
    for (int j = 0; j < 4; ++j) {  // value skip + j of (now, next); selections, because registers have no addresses
      uint32_t value = now.v[j];
      if (skip == 1) value = j + 1 < 4 ? now.v[(j + 1) & 3] : next.v[(j + 1) & 3];
      if (skip == 2) value = j + 2 < 4 ? now.v[(j + 2) & 3] : next.v[(j + 2) & 3];
      if (skip == 3) value = j + 3 < 4 ? now.v[(j + 3) & 3] : next.v[(j + 3) & 3];
      bits[b * 4 + j] = value;
    }
    now = next;
  }
}

/// kPacks: V elements are one memory access; else V accesses. Random numbers are drawn four at a time in both cases.
template <bool kPacks, int V, class T>
__global__ void dropout_kernel(DropoutRule rule, const StepState* state, int64_t width, View<const T, 2> x,
                               View<T, 2> y) {
  const StepState s = *state;
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - at.column;
    const T* from = x.row(at.row) + at.column;
    T* to = y.row(at.row) + at.column;
    float in[V] = {}, out[V];
    if constexpr (kPacks) {
      cuda::read<V>(from, left, in);
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (j < left) in[j] = static_cast<float>(from[j]);
    }
    uint32_t bits[V];
    draw<V>(rule.key, static_cast<uint64_t>(s.step), dropout_index(s, rows * columns, at.row, width, at.column), bits);
#pragma unroll
    for (int j = 0; j < V; ++j) out[j] = rule.apply(bits[j], in[j]);
    if constexpr (kPacks) {
      cuda::write<V>(to, left, out);
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (j < left) to[j] = static_cast<T>(out[j]);
    }
  }
}

}  // namespace

void cuda::dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  const DropoutRule rule(rate, ctx.seed(), stream);
  const Extent extent = extent_of({x, y});
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = rows_of<const T>(x, extent);
    const View<T, 2> to = rows_of<T>(y, extent);
    const bool packs = takes_packs<V>(from) && takes_packs<V>(to);
    launch(ctx, "dropout", grid_for(extent.rows * chunks_per_row(extent.columns, V)),
           packs ? dropout_kernel<true, V, T> : dropout_kernel<false, V, T>, rule, ctx.state(), x.row_elements(), from,
           to);
  });
}

}  // namespace hctr::ops
