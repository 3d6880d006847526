#include "ops/vector_blocks.h"

namespace hctr::ops {
namespace {

void check(const char* what, Context& ctx, const KeyBatch& batch, const VectorBlocks& blocks, const Tensor& parts, int64_t factor, const Tensor& y) {
  expect_on(what, ctx.device(), y);
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) == blocks.columns, what, ": shape ", to_string(y.shape()), " for ", batch.samples,
              " samples of ", blocks.columns, " columns");
  HCTR_EXPECT(parts.elements() == factor * y.elements(), what, ": parts of ", parts.elements(), " elements for ", to_string(y.shape()));
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  check("join_vectors", ctx, batch, blocks, parts, blocks.owners_of_each, y);
  HCTR_ON_DEVICE(ctx, join_vectors(ctx, batch, blocks, combiner, parts, y));
}

void split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts) {
  check("split_gradients", ctx, batch, blocks, parts, 1, dy);
  HCTR_ON_DEVICE(ctx, split_gradients(ctx, batch, blocks, combiner, dy, parts));
}

namespace cpu {
namespace {

/// body of both their element types.
template <class Body>
void dispatch_pair(const Tensor& parts, const Tensor& y, const Body& body) {
  dispatch_float(parts.dtype(), [&]<class P>() { dispatch_float(y.dtype(), [&]<class T>() { body.template operator()<P, T>(); }); });
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  const int64_t dim = y.dim(2);
  dispatch_pair(parts, y, [&]<class P, class T>() {
    const auto* from = parts.data<const P>();
    const View<T, 3> out = y.view<T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < blocks.columns; ++c) {
          const float weight = batch.weight(combiner, c * batch.samples + b);
          T* vector = out.row(b) + c * dim;
          for (int64_t e = 0; e < dim; ++e) {
            float sum = 0;
            for (int64_t owner = 0; owner < blocks.owners_of_each; ++owner)
              sum += static_cast<float>(from[blocks.element(static_cast<int32_t>(blocks.first[c] + owner * blocks.columns), b, batch.samples, dim) + e]);
            vector[e] = T(sum * weight);
          }
        }
    });
  });
}

void split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts) {
  const int64_t dim = dy.dim(2);
  dispatch_pair(parts, dy, [&]<class P, class T>() {
    auto* to = parts.data<P>();
    const View<const T, 3> in = dy.view<const T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < blocks.columns; ++c) {
          const float weight = batch.weight(combiner, c * batch.samples + b);
          const T* vector = in.row(b) + c * dim;
          P* part = to + blocks.element(blocks.first[c], b, batch.samples, dim);
          for (int64_t e = 0; e < dim; ++e) part[e] = P(weight * static_cast<float>(vector[e]));
        }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
