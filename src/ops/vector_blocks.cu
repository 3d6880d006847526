#include <cstring>
#include <type_traits>

#include "device/launch.cuh"
#include "ops/embedding_vector.cuh"
#include "ops/vector_blocks.h"

namespace hctr::ops {
namespace {

template <size_t Bytes>
using Word = std::conditional_t<Bytes == 2, uint16_t, std::conditional_t<Bytes == 4, uint32_t, std::conditional_t<Bytes == 8, uint2, uint4>>>;

/// As store_part, in so many words where they are wide: of a store in a loop and behind a condition the compiler makes one for each element, four times as slow.
inline __device__ void store_word(void* to, uint16_t word) { *static_cast<uint16_t*>(to) = word; }
inline __device__ void store_word(void* to, uint32_t word) { *static_cast<uint32_t*>(to) = word; }
inline __device__ void store_word(void* to, uint2 word) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y) : "memory");
}
inline __device__ void store_word(void* to, uint4 word) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
}

/// One group of lanes for each vector of the batch, in the order of the batch's memory.
template <class P, class T, int Width>
__global__ void join_vectors_kernel(KeyBatch batch, VectorBlocks blocks, Combiner combiner, const P* parts, View<T, 3> y, int64_t dim, int lanes, bool add_to) {
  const Group group(lanes);
  const auto columns = static_cast<uint32_t>(blocks.columns), pieces = static_cast<uint32_t>(blocks.pieces);
  const int64_t vectors = batch.samples * blocks.columns;
  for (int64_t v = group.index; v < vectors; v += group.count) {
    const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
    const float weight = batch.weight(combiner, c / pieces * batch.samples + b);
    const int32_t first = blocks.first[c], end = blocks.first[c + 1];
    T* vector = y.row(b) + c * dim;
    bool any = !add_to;
    for (int32_t p = first; p < end && !any; ++p) any = blocks.is_there(blocks.place[p].vector(b));
    if (!any) continue;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Part<Width> sum{};
      for (int32_t p = first; p < end; ++p)
        if (const int64_t from = blocks.place[p].vector(b); blocks.is_there(from)) add(load_part<Width>(blocks.at(parts, from, dim) + e), sum);
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
      if (add_to) add(load_part<Width>(vector + e), sum);
      store_part<Width>(vector + e, sum);
    }
  }
}

template <class P, class T, int Width>
__global__ void split_gradients_kernel(KeyBatch batch, VectorBlocks blocks, Combiner combiner, View<const T, 3> dy, P* parts, int64_t dim, int lanes, OverflowSearch search) {
  const Group group(lanes);
  const auto columns = static_cast<uint32_t>(blocks.columns), pieces = static_cast<uint32_t>(blocks.pieces);
  const int64_t vectors = batch.samples * blocks.columns;
  bool all_fit = true;
  for (int64_t v = group.index; v < vectors; v += group.count) {
    const auto b = static_cast<uint32_t>(v) / columns, c = static_cast<uint32_t>(v) - b * columns;
    const float weight = batch.weight(combiner, c / pieces * batch.samples + b);
    const int32_t first = blocks.first[c], end = blocks.first[c + 1];
    const T* vector = dy.row(b) + c * dim;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Part<Width> gradient = load_part<Width>(vector + e);
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        all_fit = all_fit && fabsf(gradient.v[i]) <= search.largest;  // of NaN nothing is true
        gradient.v[i] *= weight;
      }
      Pack<P, Width> pack;
#pragma unroll
      for (int i = 0; i < Width; ++i) pack.v[i] = P(gradient.v[i]);
      Word<sizeof pack> word;
      memcpy(&word, &pack, sizeof word);
      for (int32_t p = first; p < end; ++p)
        if (const int64_t to = blocks.place[p].vector(b); blocks.is_there(to)) store_word(blocks.at(parts, to, dim) + e, word);
    }
  }
  if (search.found && !all_fit) *search.found = 1;  // whoever writes writes the same
}

/// Calls body.operator()<Width>(lanes) with the most elements that the memory of both sides lets move at once: 16 bytes of the wider type.
template <class P, class T, class Body>
void dispatch_widest(const Tensor& parts, const VectorBlocks& blocks, const Tensor& y, int64_t dim, Body&& body) {
  const auto fits = [&](int64_t width) {
    return splits_by(width, parts.bytes(), sizeof(P), dim, dim) && splits_by(width, blocks.own, sizeof(P), dim, dim) && splits_by(width, y.bytes(), sizeof(T), y.row_stride(), dim);
  };
  if constexpr (sizeof(P) == 2 && sizeof(T) == 2) {
    if (fits(8)) return body.template operator()<8>(lanes_for(dim, 8));
  }
  dispatch_width(fits(4), [&]<int Width>() { body.template operator()<Width>(lanes_for(dim, Width)); });
}

void join(Context& ctx, const char* name, bool add, const KeyBatch& batch, const VectorBlocks& blocks, Combiner combiner, const Tensor& parts, const Tensor& y) {
  const int64_t dim = y.dim(2) / blocks.pieces, vectors = batch.samples * blocks.columns;
  dispatch_float(parts.dtype(), [&]<class P>() {
    dispatch_float(y.dtype(), [&]<class T>() {
      dispatch_widest<P, T>(parts, blocks, y, dim, [&]<int Width>(int lanes) {
        hctr::cuda::launch(ctx, name, hctr::cuda::grid_for(vectors * lanes), join_vectors_kernel<P, T, Width>, batch, blocks, combiner,
                           parts.data<const P>(), y.view<T, 3>(), dim, lanes, add);
      });
    });
  });
}

}  // namespace

void cuda::join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  join(ctx, "join_vectors", false, batch, blocks, combiner, parts, y);
}

void cuda::add_joined_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  join(ctx, "add_joined_vectors", true, batch, blocks, combiner, parts, y);
}

void cuda::split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts, OverflowSearch search) {
  const int64_t dim = dy.dim(2) / blocks.pieces, vectors = batch.samples * blocks.columns;
  dispatch_float(parts.dtype(), [&]<class P>() {
    dispatch_float(dy.dtype(), [&]<class T>() {
      dispatch_widest<P, T>(parts, blocks, dy, dim, [&]<int Width>(int lanes) {
        hctr::cuda::launch(ctx, "split_gradients", hctr::cuda::grid_for(vectors * lanes), split_gradients_kernel<P, T, Width>, batch, blocks, combiner,
                           dy.view<const T, 3>(), parts.data<P>(), dim, lanes, search);
      });
    });
  });
}

}  // namespace hctr::ops
