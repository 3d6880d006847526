// One element per thread and turn: neighbours in a vector are neighbours in both memories.
#include "device/launch.cuh"
#include "ops/vector_blocks.h"

namespace hctr::ops {
namespace {

using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

template <class P, class T>
__global__ void join_vectors_kernel(KeyBatch batch, VectorBlocks blocks, Combiner combiner, const P* parts, View<T, 3> y) {
  const int64_t dim = y.size(2) / blocks.pieces, columns = blocks.columns, elements = batch.samples * columns * dim;
  for (int64_t i = thread_index(); i < elements; i += thread_count()) {
    const int64_t e = i % dim, c = i / dim % columns, b = i / dim / columns;
    float sum = 0;
    for (int32_t p = blocks.first[c]; p < blocks.first[c + 1]; ++p)
      sum += static_cast<float>(parts[blocks.element(blocks.place[p], b, batch.samples, dim) + e]);
    y.row(b)[c * dim + e] = T(sum * batch.weight(combiner, c / blocks.pieces * batch.samples + b));
  }
}

template <class P, class T>
__global__ void split_gradients_kernel(KeyBatch batch, VectorBlocks blocks, Combiner combiner, View<const T, 3> dy, P* parts) {
  const int64_t dim = dy.size(2) / blocks.pieces, columns = blocks.columns, elements = batch.samples * columns * dim;
  for (int64_t i = thread_index(); i < elements; i += thread_count()) {
    const int64_t e = i % dim, c = i / dim % columns, b = i / dim / columns;
    const float gradient = batch.weight(combiner, c / blocks.pieces * batch.samples + b) * static_cast<float>(dy.row(b)[c * dim + e]);
    for (int32_t p = blocks.first[c]; p < blocks.first[c + 1]; ++p) parts[blocks.element(blocks.place[p], b, batch.samples, dim) + e] = P(gradient);
  }
}

}  // namespace

void cuda::join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  dispatch_float(parts.dtype(), [&]<class P>() {
    dispatch_float(y.dtype(), [&]<class T>() {
      hctr::cuda::launch(ctx, "join_vectors", hctr::cuda::grid_for(y.elements()), join_vectors_kernel<P, T>, batch, blocks, combiner,
                         parts.data<const P>(), y.view<T, 3>());
    });
  });
}

void cuda::split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts) {
  dispatch_float(parts.dtype(), [&]<class P>() {
    dispatch_float(dy.dtype(), [&]<class T>() {
      hctr::cuda::launch(ctx, "split_gradients", hctr::cuda::grid_for(dy.elements()), split_gradients_kernel<P, T>, batch, blocks, combiner,
                         dy.view<const T, 3>(), parts.data<P>());
    });
  });
}

}  // namespace hctr::ops
