#include <cstring>
#include <type_traits>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_vector.cuh"
#include "ops/embedding/owner_vectors.h"

namespace hctr::ops {
namespace {

template <size_t Bytes>
using Word = std::conditional_t<Bytes == 2, uint16_t,
                                std::conditional_t<Bytes == 4, uint32_t, std::conditional_t<Bytes == 8, uint2, uint4>>>;

/// Like store_fragment(), but with explicit wide stores, because the compiler splits a conditional store in a loop into
/// one store per element, which is four times slower.
inline __device__ void store_word(void* to, uint16_t word) { *static_cast<uint16_t*>(to) = word; }
inline __device__ void store_word(void* to, uint32_t word) { *static_cast<uint32_t*>(to) = word; }
inline __device__ void store_word(void* to, uint2 word) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y)
               : "memory");
}
inline __device__ void store_word(void* to, uint4 word) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y),
               "r"(word.z), "r"(word.w)
               : "memory");
}

/// Joins vectors with one group of lanes per vector, in the memory order of the batch.
template <class P, class T, int Width>
__global__ void join_vectors_kernel(KeyBatch batch, OwnerVectors owners, Combiner combiner, View<T, 3> y, int64_t dim,
                                    int lanes, bool add_to) {
  const Group group(lanes);
  const auto columns = static_cast<uint32_t>(owners.columns), pieces = static_cast<uint32_t>(owners.pieces);
  const int64_t vectors = batch.samples * owners.columns;
  for (int64_t v = group.index; v < vectors; v += group.count) {
    const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
    const float weight = batch.weight(combiner, c / pieces * batch.samples + b);
    const int32_t first = owners.first[c], end = owners.first[c + 1];
    T* vector = y.row(b) + c * dim;
    bool any = !add_to;
    for (int32_t p = first; p < end && !any; ++p) any = owners.is_there(owners.remote_columns[p], b);
    if (!any) continue;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Fragment<Width> sum{};
      for (int32_t p = first; p < end; ++p)
        if (const RemoteColumn column = owners.remote_columns[p]; owners.is_there(column, b))
          add(load_fragment<Width>(column.at<const P>(b, dim) + e), sum);
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
      if (add_to) add(load_fragment<Width>(vector + e), sum);
      store_fragment<Width>(vector + e, sum);
    }
  }
}

/// Clears vectors without an owner, with one thread per vector. Few vectors need clearing.
template <class T>
__global__ void clear_unowned_kernel(OwnerVectors owners, View<T, 3> y) {
  const auto columns = static_cast<uint32_t>(y.size(1));
  const int64_t vectors = y.size(0) * columns, dim = y.size(2);
  for (int64_t v = hctr::cuda::thread_index(); v < vectors; v += hctr::cuda::thread_count()) {
    const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
    if (owners.any_owner(c, b)) continue;
    T* vector = y.row(b) + c * dim;
    for (int64_t e = 0; e < dim; ++e) vector[e] = T(0.0f);
  }
}

template <class P, class T, int Width>
__global__ void __launch_bounds__(kThreadsToFar)
    split_gradients_kernel(KeyBatch batch, OwnerVectors owners, Combiner combiner, View<const T, 3> dy, int64_t dim,
                           int lanes, OverflowSearch search) {
  constexpr int kAtOnce = 4;
  const Group group(lanes);
  const auto columns = static_cast<uint32_t>(owners.columns), pieces = static_cast<uint32_t>(owners.pieces);
  const int64_t vectors = batch.samples * owners.columns;
  const bool writable = owners.memory.writable();
  bool all_fit = true;
  for (int64_t v0 = group.index; v0 < vectors; v0 += kAtOnce * group.count) {
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Pack<T, Width> loaded[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t v = v0 + k * group.count;
        if (v >= vectors) break;
        const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
        loaded[k] = *reinterpret_cast<const Pack<T, Width>*>(dy.row(b) + c * dim + e);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t v = v0 + k * group.count;
        if (v >= vectors) break;
        const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
        const float weight = batch.weight(combiner, c / pieces * batch.samples + b);
        Pack<P, Width> pack;
#pragma unroll
        for (int i = 0; i < Width; ++i) {
          const auto gradient = static_cast<float>(loaded[k].v[i]);
          all_fit = all_fit && fabsf(gradient) <= search.largest;  // the comparison is false for NaN
          pack.v[i] = P(gradient * weight);
        }
        Word<sizeof pack> word;
        memcpy(&word, &pack, sizeof word);
        const int32_t first = owners.first[c], end = writable ? owners.first[c + 1] : first;
        for (int32_t p = first; p < end; ++p)
          if (const RemoteColumn column = owners.remote_columns[p]; owners.is_there(column, b))
            store_word(column.at<P>(b, dim) + e, word);
      }
    }
  }
  if (search.found && !all_fit) *search.found = 1;  // a benign race, because every thread writes the same value
}

/// Calls body.operator()<Width>(lanes) with the widest access that messages and y allow, up to 16 bytes of the wider
/// type.
template <class P, class T, class Body>
void dispatch_widest(const OwnerVectors& owners, const Tensor& y, int64_t dim, Body&& body) {
  const auto fits = [&](int64_t width) {
    return owners.memory.alignment % (static_cast<size_t>(width) * sizeof(P)) == 0 &&
           splits_by(width, y.bytes(), sizeof(T), y.row_stride(), dim);
  };
  if constexpr (sizeof(P) == 2 && sizeof(T) == 2) {
    if (fits(8)) return body.template operator()<8>(lanes_for(dim, 8));
  }
  dispatch_width(fits(4), [&]<int Width>() { body.template operator()<Width>(lanes_for(dim, Width)); });
}

/// Calls body with the element types, width, grid and lanes for join_vectors() or split_gradients().
template <class Body>
void dispatch(const KeyBatch& batch, const OwnerVectors& owners, const Tensor& y, Body&& body) {
  const int64_t dim = y.dim(2) / owners.pieces, vectors = batch.samples * owners.columns;
  dispatch_float(owners.memory.dtype, [&]<class P>() {
    dispatch_float(y.dtype(), [&]<class T>() {
      dispatch_widest<P, T>(owners, y, dim, [&]<int Width>(int lanes) {
        body.template operator()<P, T, Width>(
            grid_of(owners.memory, vectors * lanes, dim * static_cast<int64_t>(sizeof(P)), Width), dim, lanes);
      });
    });
  });
}

void join(Context& ctx, const char* name, bool add, const KeyBatch& batch, const OwnerVectors& owners,
          Combiner combiner, const Tensor& y) {
  dispatch(batch, owners, y, [&]<class P, class T, int Width>(hctr::cuda::Grid grid, int64_t dim, int lanes) {
    hctr::cuda::launch(ctx, name, grid, join_vectors_kernel<P, T, Width>, batch, owners, combiner, y.view<T, 3>(), dim,
                       lanes, add);
  });
}

}  // namespace

void cuda::join_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  join(ctx, "join_vectors", false, batch, owners, combiner, y);
}

void cuda::add_joined_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  join(ctx, "add_joined_vectors", true, batch, owners, combiner, y);
}

void cuda::clear_unowned(Context& ctx, OwnerVectors owners, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    hctr::cuda::launch(ctx, "clear_unowned", hctr::cuda::grid_for(y.dim(0) * y.dim(1)), clear_unowned_kernel<T>, owners,
                       y.view<T, 3>());
  });
}

void cuda::split_gradients(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor dy,
                           OverflowSearch search) {
  dispatch(batch, owners, dy, [&]<class P, class T, int Width>(hctr::cuda::Grid grid, int64_t dim, int lanes) {
    hctr::cuda::launch(ctx, "split_gradients", grid, split_gradients_kernel<P, T, Width>, batch, owners, combiner,
                       dy.view<const T, 3>(), dim, lanes, search);
  });
}

}  // namespace hctr::ops
