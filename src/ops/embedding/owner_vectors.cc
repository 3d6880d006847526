#include "ops/embedding/owner_vectors.h"

#include <algorithm>
#include <vector>

namespace hctr::ops {
namespace {

void check(const char* what, Context& ctx, int64_t samples, const OwnerVectors& owners, const Tensor& y) {
  expect_on(what, ctx.device(), y);
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == samples && y.dim(1) * owners.pieces == owners.columns &&
                  y.dim(2) % owners.pieces == 0,
              what, ": shape ", to_string(y.shape()), " for ", samples, " samples of ", owners.columns, " columns in ",
              owners.pieces, " pieces");
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  check("join_vectors", ctx, batch.samples, owners, y);
  HCTR_ON_DEVICE(ctx, join_vectors(ctx, batch, owners, combiner, y));
}

void add_joined_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  check("add_joined_vectors", ctx, batch.samples, owners, y);
  HCTR_ON_DEVICE(ctx, add_joined_vectors(ctx, batch, owners, combiner, y));
}

void clear_unowned(Context& ctx, OwnerVectors owners, Tensor y) {
  check("clear_unowned", ctx, y.dim(0), owners, y);
  HCTR_ON_DEVICE(ctx, clear_unowned(ctx, owners, y));
}

void split_gradients(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor dy,
                     OverflowSearch search) {
  check("split_gradients", ctx, batch.samples, owners, dy);
  HCTR_ON_DEVICE(ctx, split_gradients(ctx, batch, owners, combiner, dy, search));
}

namespace cpu {
namespace {

/// Calls body.operator()<P, T>() with the element types of the messages and of y.
template <class Body>
void dispatch_owned_and_output(const OwnerVectors& owners, const Tensor& y, const Body& body) {
  dispatch_float(owners.memory.dtype,
                 [&]<class P>() { dispatch_float(y.dtype(), [&]<class T>() { body.template operator()<P, T>(); }); });
}

void join(Context& ctx, bool add, const KeyBatch& batch, const OwnerVectors& owners, Combiner combiner,
          const Tensor& y) {
  const int64_t dim = y.dim(2) / owners.pieces;
  dispatch_owned_and_output(owners, y, [&]<class P, class T>() {
    const View<T, 3> out = y.view<T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      std::vector<float> sum(static_cast<size_t>(dim));
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < owners.columns; ++c) {
          std::fill(sum.begin(), sum.end(), 0.0f);
          bool any = false;
          for (int32_t p = owners.first[c]; p < owners.first[c + 1]; ++p) {
            if (!owners.is_there(owners.remote_columns[p], b)) continue;
            const P* vector = owners.remote_columns[p].at<const P>(b, dim);
            any = true;
            for (int64_t e = 0; e < dim; ++e) sum[static_cast<size_t>(e)] += static_cast<float>(vector[e]);
          }
          const float weight = batch.weight(combiner, c / owners.pieces * batch.samples + b);
          if (add && !any) continue;
          T* vector = out.row(b) + c * dim;
          std::transform(sum.begin(), sum.end(), vector, vector, [&](float element, T there) {
            return T((add ? static_cast<float>(there) : 0) + element * weight);
          });
        }
    });
  });
}

}  // namespace

void join_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  join(ctx, false, batch, owners, combiner, y);
}

void add_joined_vectors(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor y) {
  join(ctx, true, batch, owners, combiner, y);
}

void clear_unowned(Context& ctx, OwnerVectors owners, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    const View<T, 3> out = y.view<T, 3>();
    ctx.threads().parallel_for(out.size(0), 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < out.size(1); ++c)
          if (!owners.any_owner(c, b)) std::fill_n(out.row(b) + c * out.size(2), out.size(2), T(0.0f));
    });
  });
}

void split_gradients(Context& ctx, KeyBatch batch, OwnerVectors owners, Combiner combiner, Tensor dy,
                     OverflowSearch search) {
  if (search.found) cpu::find_overflow(ctx, dy, search);
  const int64_t dim = dy.dim(2) / owners.pieces;
  if (!owners.memory.writable()) return;
  dispatch_owned_and_output(owners, dy, [&]<class P, class T>() {
    const View<const T, 3> in = dy.view<const T, 3>();
    ctx.threads().parallel_for(batch.samples, 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t c = 0; c < owners.columns; ++c) {
          const float weight = batch.weight(combiner, c / owners.pieces * batch.samples + b);
          const T* vector = in.row(b) + c * dim;
          for (int32_t p = owners.first[c]; p < owners.first[c + 1]; ++p) {
            if (!owners.is_there(owners.remote_columns[p], b)) continue;
            P* part = owners.remote_columns[p].at<P>(b, dim);
            for (int64_t e = 0; e < dim; ++e) part[e] = P(weight * static_cast<float>(vector[e]));
          }
        }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
