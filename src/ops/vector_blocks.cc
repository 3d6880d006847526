#include "ops/vector_blocks.h"

#include <algorithm>
#include <vector>

namespace hctr::ops {
namespace {

void check(const char* what, Context& ctx, const KeyBatch& batch, const VectorBlocks& blocks, const Tensor& parts, const Tensor& y) {
  expect_on(what, ctx.device(), y);
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) * blocks.pieces == blocks.columns && y.dim(2) % blocks.pieces == 0, what,
              ": shape ", to_string(y.shape()), " for ", batch.samples, " samples of ", blocks.columns, " columns in ", blocks.pieces, " pieces");
  HCTR_EXPECT(parts.elements() == blocks.places * batch.samples * (y.dim(2) / blocks.pieces), what, ": parts of ",
              parts.elements(), " elements for ", to_string(y.shape()));
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  check("join_vectors", ctx, batch, blocks, parts, y);
  HCTR_ON_DEVICE(ctx, join_vectors(ctx, batch, blocks, combiner, parts, y));
}

void add_joined_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  check("add_joined_vectors", ctx, batch, blocks, parts, y);
  HCTR_ON_DEVICE(ctx, add_joined_vectors(ctx, batch, blocks, combiner, parts, y));
}

void split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts, OverflowSearch search) {
  check("split_gradients", ctx, batch, blocks, parts, dy);
  HCTR_ON_DEVICE(ctx, split_gradients(ctx, batch, blocks, combiner, dy, parts, search));
}

namespace cpu {
namespace {

/// body of both their element types.
template <class Body>
void dispatch_pair(const Tensor& parts, const Tensor& y, const Body& body) {
  dispatch_float(parts.dtype(), [&]<class P>() { dispatch_float(y.dtype(), [&]<class T>() { body.template operator()<P, T>(); }); });
}

void join(Context& ctx, bool add, const KeyBatch& batch, const VectorBlocks& blocks, Combiner combiner, const Tensor& parts, const Tensor& y) {
  const int64_t dim = y.dim(2) / blocks.pieces;
  dispatch_pair(parts, y, [&]<class P, class T>() {
    const auto* from = parts.data<const P>();
    const View<T, 3> out = y.view<T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      std::vector<float> sum(static_cast<size_t>(dim));
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < blocks.columns; ++c) {
          std::fill(sum.begin(), sum.end(), 0.0f);
          bool any = false;
          for (int32_t p = blocks.first[c]; p < blocks.first[c + 1]; ++p) {
            const int64_t v = blocks.place[p].vector(b);
            const P* vector = blocks.at(from, v, dim);
            any = any || blocks.is_there(v);
            for (int64_t e = 0; e < dim && blocks.is_there(v); ++e) sum[static_cast<size_t>(e)] += static_cast<float>(vector[e]);
          }
          const float weight = batch.weight(combiner, c / blocks.pieces * batch.samples + b);
          if (add && !any) continue;
          T* vector = out.row(b) + c * dim;
          std::transform(sum.begin(), sum.end(), vector, vector, [&](float element, T there) { return T((add ? static_cast<float>(there) : 0) + element * weight); });
        }
    });
  });
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  join(ctx, false, batch, blocks, combiner, parts, y);
}

void add_joined_vectors(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor parts, Tensor y) {
  join(ctx, true, batch, blocks, combiner, parts, y);
}

void split_gradients(Context& ctx, KeyBatch batch, VectorBlocks blocks, Combiner combiner, Tensor dy, Tensor parts, OverflowSearch search) {
  if (search.found) cpu::find_overflow(ctx, dy, search);
  const int64_t dim = dy.dim(2) / blocks.pieces;
  dispatch_pair(parts, dy, [&]<class P, class T>() {
    auto* to = parts.data<P>();
    const View<const T, 3> in = dy.view<const T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < blocks.columns; ++c) {
          const float weight = batch.weight(combiner, c / blocks.pieces * batch.samples + b);
          const T* vector = in.row(b) + c * dim;
          for (int32_t p = blocks.first[c]; p < blocks.first[c + 1]; ++p) {
            const int64_t v = blocks.place[p].vector(b);
            P* part = blocks.at(to, v, dim);
            for (int64_t e = 0; e < dim && blocks.is_there(v); ++e) part[e] = P(weight * static_cast<float>(vector[e]));
          }
        }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
