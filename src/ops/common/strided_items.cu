// Kernels that copy, gather and sum strided items. A thread processes V adjacent columns of one item. The indices come
// from the config and are passed as kernel arguments, a few hundred per launch. A recorded CUDA graph therefore
// contains the indices as constants.
#include "ops/common/strided_items.h"

#include <algorithm>
#include <numeric>

#include "ops/common/element_loops.cuh"

namespace hctr::ops {
namespace {

constexpr int kIndicesPerLaunch = 480;  // keeps kernel arguments below the limit of 4 KiB

template <class T>
struct Cells {
  T* data;
  int64_t outer, items, width, outer_stride, item_stride;
  explicit Cells(const StridedItems& b)
      : data(reinterpret_cast<T*>(b.data)),
        outer(b.outer),
        items(b.items),
        width(b.width),
        outer_stride(b.outer_stride),
        item_stride(b.item_stride) {}
  __device__ T* at(int64_t o, int64_t i, int64_t c) const { return data + o * outer_stride + i * item_stride + c; }
};

/// Whether every item is aligned to V elements.
bool packs(const StridedItems& b, int V) {
  const auto bytes = static_cast<int64_t>(size_of(b.dtype)) * V;
  return reinterpret_cast<uintptr_t>(b.data) % static_cast<uintptr_t>(bytes) == 0 &&
         (b.outer <= 1 || b.outer_stride % V == 0) && (b.items <= 1 || b.item_stride % V == 0);
}

struct Cell {
  int64_t outer, item, column;
};

/// Position of chunk n of `width` columns, counted along the columns, then the items, then the outer index.
__device__ inline Cell cell(int64_t n, int64_t outer, int64_t items, int64_t per_item, int width) {
  const cuda::Chunk row = cuda::chunk_at(n, outer * items, per_item, width);
  const cuda::Chunk item = cuda::chunk_at(row.row, outer, items, 1);
  return {item.row, item.column, row.column};
}

template <int V, class T>
__device__ inline void move(const T* from, int64_t left, T* to) {
  if (left >= V) {
    *reinterpret_cast<cuda::Pack<T, V>*>(to) = *reinterpret_cast<const cuda::Pack<T, V>*>(from);
  } else {
    for (int64_t j = 0; j < left; ++j) to[j] = from[j];
  }
}

template <int V, class T>
__global__ void copy_items_kernel(Cells<const T> x, Cells<T> y) {
  const int64_t per_item = cuda::chunks_per_row(y.width, V);
  for (int64_t n = cuda::thread_index(); n < y.outer * y.items * per_item; n += cuda::thread_count()) {
    const Cell at = cell(n, y.outer, y.items, per_item, V);
    move<V>(x.at(at.outer, at.item, at.column), y.width - at.column, y.at(at.outer, at.item, at.column));
  }
}

struct Indices {
  int at[kIndicesPerLaunch];
};

template <int V, class T>
__global__ void gather_kernel(Cells<const T> x, const __grid_constant__ Indices indices, Cells<T> y) {
  const int64_t per_item = cuda::chunks_per_row(y.width, V);
  for (int64_t n = cuda::thread_index(); n < y.outer * y.items * per_item; n += cuda::thread_count()) {
    const Cell at = cell(n, y.outer, y.items, per_item, V);
    move<V>(x.at(at.outer, indices.at[at.item], at.column), y.width - at.column, y.at(at.outer, at.item, at.column));
  }
}

/// The sums of one launch. Item item[k] of dx is a sum of items of dy: those with the indices sources[i], for i in
/// [begin[k], begin[k + 1]).
struct Sums {
  int count;
  int item[kIndicesPerLaunch / 2], begin[kIndicesPerLaunch / 2 + 1], sources[kIndicesPerLaunch];
  int used;  ///< number of sources in use
};
static_assert(sizeof(Sums) + 2 * sizeof(Cells<float>) <= 4096);

template <int V, class T>
__global__ void gather_backward_kernel(Cells<const T> dy, const __grid_constant__ Sums sums, bool onto, Cells<T> dx) {
  const int64_t per_item = cuda::chunks_per_row(dx.width, V);
  for (int64_t n = cuda::thread_index(); n < dx.outer * sums.count * per_item; n += cuda::thread_count()) {
    const Cell at = cell(n, dx.outer, sums.count, per_item, V);
    const int64_t left = dx.width - at.column;
    T* to = dx.at(at.outer, sums.item[at.item], at.column);
    float sum[V] = {};
    if (onto) cuda::read<V>(static_cast<const T*>(to), left, sum);
    for (int p = sums.begin[at.item]; p < sums.begin[at.item + 1]; ++p) {
      float term[V] = {};
      cuda::read<V>(dy.at(at.outer, sums.sources[p], at.column), left, term);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] += term[j];
    }
    cuda::write<V>(to, left, sum);
  }
}

template <int V, class T>
__global__ void zero_items_kernel(Cells<T> y) {
  const int64_t per_item = cuda::chunks_per_row(y.width, V);
  const float zeros[V] = {};
  for (int64_t n = cuda::thread_index(); n < y.outer * y.items * per_item; n += cuda::thread_count()) {
    const Cell at = cell(n, y.outer, y.items, per_item, V);
    cuda::write<V>(y.at(at.outer, at.item, at.column), y.width - at.column, zeros);
  }
}

/// Calls body.operator()<T, V>() with V = 16 bytes of elements if both tensors are aligned, else V = 1.
template <class Body>
void dispatch(const StridedItems& x, const StridedItems& y, const Body& body) {
  dispatch_float(y.dtype, [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    if (packs(x, V) && packs(y, V)) return body.template operator()<T, V>();
    body.template operator()<T, 1>();
  });
}

cuda::Grid grid(const StridedItems& b, int V) {
  return cuda::grid_for(b.outer * b.items * cuda::chunks_per_row(b.width, V));
}

}  // namespace

void cuda::copy_items(Context& ctx, StridedItems x, StridedItems y) {
  dispatch(x, y, [&]<class T, int V>() {
    launch(ctx, "copy_items", grid(y, V), copy_items_kernel<V, T>, Cells<const T>(x), Cells<T>(y));
  });
}

void cuda::gather(Context& ctx, StridedItems x, const std::vector<int64_t>& indices, StridedItems y) {
  for (int64_t first = 0; first < y.items; first += kIndicesPerLaunch) {
    const StridedItems part = y.item_range(first, std::min<int64_t>(first + kIndicesPerLaunch, y.items));
    Indices some{};
    for (int64_t i = 0; i < part.items; ++i) some.at[i] = static_cast<int>(indices[static_cast<size_t>(first + i)]);
    dispatch(x, part, [&]<class T, int V>() {
      launch(ctx, "gather", grid(part, V), gather_kernel<V, T>, Cells<const T>(x), some, Cells<T>(part));
    });
  }
}

void cuda::gather_backward(Context& ctx, StridedItems dy, const std::vector<int64_t>& indices, StridedItems dx) {
  std::vector<int64_t> order(indices.size());  // positions in `indices`, sorted by index, then by position
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return indices[static_cast<size_t>(a)] < indices[static_cast<size_t>(b)];
  });
  int64_t distinct = 0;
  for (size_t n = 0; n < order.size(); ++n)
    if (n == 0 || indices[static_cast<size_t>(order[n])] != indices[static_cast<size_t>(order[n - 1])]) ++distinct;
  if (distinct < dx.items)
    dispatch(dx, dx, [&]<class T, int V>() {
      launch(ctx, "gather_backward", grid(dx, V), zero_items_kernel<V, T>, Cells<T>(dx));
    });

  // A launch sums whole runs of equal indices. A run that exceeds the capacity of a launch is split over several
  // launches; all but the first add to dx.
  size_t n = 0;
  bool onto = false;
  while (n < order.size()) {
    Sums sums{};
    while (n < order.size() && sums.count < kIndicesPerLaunch / 2 && sums.used < kIndicesPerLaunch) {
      const int64_t index = indices[static_cast<size_t>(order[n])];
      size_t end = n;
      while (end < order.size() && indices[static_cast<size_t>(order[end])] == index) ++end;
      const size_t capacity = static_cast<size_t>(kIndicesPerLaunch - sums.used);
      if (end - n > capacity && sums.count > 0) break;  // leaves the whole run to the next launch
      sums.item[sums.count] = static_cast<int>(index);
      const size_t last = std::min(end, n + capacity);
      for (; n < last; ++n) sums.sources[sums.used++] = static_cast<int>(order[n]);
      sums.begin[++sums.count] = sums.used;
      if (onto) break;  // this launch adds to dx, but later runs must overwrite their items
    }
    StridedItems touched = dx;
    touched.items = sums.count;
    dispatch(dy, dx, [&]<class T, int V>() {
      launch(ctx, "gather_backward", grid(touched, V), gather_backward_kernel<V, T>, Cells<const T>(dy), sums, onto,
             Cells<T>(dx));
    });
    onto = n > 0 && n < order.size() &&
           indices[static_cast<size_t>(order[n])] == indices[static_cast<size_t>(order[n - 1])];
  }
}

}  // namespace hctr::ops
