#include "ops/dense/multi_cross.h"

#include <algorithm>
#include <vector>

#include "ops/common/element_loops.h"
#include "ops/dense/multi_cross_layout.h"

namespace hctr::ops {
namespace {

void expect_cross(const char* what, Context& ctx, const Tensor& x, const CrossWeights& weights, const Tensor& y) {
  expect_on(what, ctx.device(), x);
  expect_alike(what, {x, y});
  HCTR_EXPECT(x.rank() == 2, what, " of ", to_string(x.shape()));
  expect_shape(what, y, x.shape());
  HCTR_EXPECT(!weights.w.empty() && weights.w.size() == weights.b.size() && weights.w.size() <= kMostCrossLayers, what,
              " of ", weights.w.size(), " layers");
  for (const auto* each : {&weights.w, &weights.b})
    for (const Tensor& weight : *each) expect_shape(what, weight, {1, x.dim(1)});
}

/// The dot product of x and y: sixteen independent partial sums, which are then added in order.
template <class A, class X, class Y>
A dot(const X* x, const Y* y, size_t n) {
  constexpr size_t kLanes = 16;
  A sums[kLanes] = {};
  size_t k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (size_t i = 0; i < kLanes; ++i) sums[i] += static_cast<A>(x[k + i]) * static_cast<A>(y[k + i]);
  for (; k < n; ++k) sums[k % kLanes] += static_cast<A>(x[k]) * static_cast<A>(y[k]);
  A sum = 0;
  for (const A lane : sums) sum += lane;
  return sum;
}

/// The intermediate values of one row.
template <class A>
struct CrossRow {
  std::vector<A> y, scalars;  ///< y: y_l, [layers + 1, dim]; scalars: h_l = <y_l, w_l>
};

template <class T>
void cross_row(const T* x, const CrossWeights& weights, int64_t dim, CrossRow<Acc<T>>& row) {
  const size_t layers = weights.w.size(), d = static_cast<size_t>(dim);
  row.y.resize((layers + 1) * d);
  row.scalars.resize(layers);
  for (size_t k = 0; k < d; ++k) row.y[k] = static_cast<Acc<T>>(x[k]);
  for (size_t l = 0; l < layers; ++l) {
    const T* w = weights.w[l].data<const T>();
    const T* bias = weights.b[l].data<const T>();
    const Acc<T>* y = &row.y[l * d];
    const auto h = dot<Acc<T>>(y, w, d);
    row.scalars[l] = h;
    Acc<T>* next = &row.y[(l + 1) * d];
    HCTR_INDEPENDENT_ITERATIONS
    for (size_t k = 0; k < d; ++k) next[k] = static_cast<Acc<T>>(x[k]) * h + y[k] + static_cast<Acc<T>>(bias[k]);
  }
}

constexpr int64_t kCrossRows = 16;  // rows per task

}  // namespace

TensorSpec multi_cross_scratch(int64_t batch, int64_t dim, int64_t layers) {
  return flat_scratch(CrossLayout(batch, dim, layers).numbers);
}

void multi_cross(Context& ctx, Tensor x, CrossWeights weights, Tensor scratch, Tensor y) {
  expect_cross("multi_cross", ctx, x, weights, y);
  for (const auto* each : {&weights.w, &weights.b})
    for (const Tensor& weight : *each) expect_alike("multi_cross", {x, weight});
  HCTR_EXPECT(scratch.shape() == multi_cross_scratch(x.dim(0), x.dim(1), static_cast<int64_t>(weights.w.size())).shape,
              "multi_cross: unexpected shape of the scratch memory: ", to_string(scratch.shape()));
  HCTR_ON_DEVICE(ctx, multi_cross(ctx, x, weights, scratch, y));
}

void cpu::multi_cross(Context& ctx, Tensor x, CrossWeights weights, Tensor, Tensor y) {
  const int64_t dim = x.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>();
    const auto Y = y.view<T, 2>();
    ctx.threads().parallel_for(x.dim(0), kCrossRows, [&](int64_t begin, int64_t end) {
      CrossRow<Acc<T>> row;
      for (int64_t b = begin; b < end; ++b) {
        cross_row(X.row(b), weights, dim, row);
        for (int64_t k = 0; k < dim; ++k)
          Y(b, k) = static_cast<T>(row.y[weights.w.size() * static_cast<size_t>(dim) + static_cast<size_t>(k)]);
      }
    });
  });
}

void multi_cross_backward(Context& ctx, Tensor x, CrossWeights weights, Tensor dy, Tensor scratch,
                          std::optional<Tensor> dx, CrossWeights d_weights) {
  expect_cross("multi_cross_backward", ctx, x, weights, dy);
  expect_cross("multi_cross_backward", ctx, x, d_weights, dy);
  HCTR_EXPECT(d_weights.w.size() == weights.w.size(), "gradients of ", d_weights.w.size(), " layers of ",
              weights.w.size());
  if (dx) {
    expect_shape("multi_cross_backward dx", *dx, x.shape());
    expect_alike("multi_cross_backward dx", {x, *dx});
  }
  HCTR_ON_DEVICE(ctx, multi_cross_backward(ctx, x, weights, dy, scratch, dx, d_weights));
}

void cpu::multi_cross_backward(Context& ctx, Tensor x, CrossWeights weights, Tensor dy, Tensor,
                               std::optional<Tensor> dx, CrossWeights d_weights) {
  const int64_t batch = x.dim(0), dim = x.dim(1);
  const size_t layers = weights.w.size();
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const auto X = x.view<const T, 2>(), DY = dy.view<const T, 2>();
    const auto at = [&](int64_t b, size_t l) { return static_cast<size_t>(b) * layers + l; };
    std::vector<A> h(static_cast<size_t>(batch) * layers),
        c(h.size());  // h: <y_l, w_l>, c: <dy_{l+1}, x>; by row and layer

    ctx.threads().parallel_for(batch, kCrossRows, [&](int64_t begin, int64_t end) {
      CrossRow<A> row;
      std::vector<A> g(static_cast<size_t>(dim)), total(g.size());
      for (int64_t b = begin; b < end; ++b) {
        cross_row(X.row(b), weights, dim, row);
        for (size_t k = 0; k < g.size(); ++k) g[k] = static_cast<A>(DY.row(b)[k]), total[k] = 0;
        for (size_t l = layers; l-- > 0;) {
          const T* w = weights.w[l].data<const T>();
          const A scalar = row.scalars[l], slope = dot<A>(g.data(), X.row(b), g.size());
          h[at(b, l)] = scalar;
          c[at(b, l)] = slope;
          A *sums = total.data(), *gradients = g.data();
          HCTR_INDEPENDENT_ITERATIONS
          for (int64_t k = 0; k < dim; ++k) {
            sums[k] += scalar * gradients[k];
            gradients[k] += slope * static_cast<A>(w[k]);
          }
        }
        for (size_t k = 0; dx && k < g.size(); ++k) dx->view<T, 2>().row(b)[k] = static_cast<T>(total[k] + g[k]);
      }
    });

    // If the scalars are known, column j of all y_l and dy_l can be computed from column j of x, dy, weights and
    // biases. A task therefore computes kColumns columns together.
    constexpr int64_t kColumns = 16;
    ctx.threads().parallel_for(dim, kColumns, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      std::vector<double> dw(layers * kColumns), db(dw.size());
      std::vector<A> w(dw.size()), bias(dw.size());  // weights and biases of these columns
      for (size_t l = 0; l < layers; ++l)
        for (int64_t j = 0; j < n; ++j) {
          w[l * kColumns + static_cast<size_t>(j)] = static_cast<A>(weights.w[l].data<const T>()[begin + j]);
          bias[l * kColumns + static_cast<size_t>(j)] = static_cast<A>(weights.b[l].data<const T>()[begin + j]);
        }
      for (int64_t b = 0; b < batch; ++b) {
        A x0[kColumns] = {}, y[kColumns], g[kColumns] = {};
        for (int64_t j = 0; j < n; ++j)
          x0[j] = static_cast<A>(X(b, begin + j)), g[j] = static_cast<A>(DY(b, begin + j));
        std::copy_n(x0, kColumns, y);
        for (size_t l = 0; l < layers; ++l) {
          const A scalar = h[at(b, l)], slope = c[at(b, l)];
          const A* add = &bias[l * kColumns];
          double* sums = &dw[l * kColumns];
          for (int64_t j = 0; j < kColumns; ++j) sums[j] += static_cast<double>(slope * y[j]);
          for (int64_t j = 0; j < kColumns; ++j) y[j] += x0[j] * scalar + add[j];
        }
        for (size_t l = layers; l-- > 0;) {
          const A slope = c[at(b, l)];
          const A* of_layer = &w[l * kColumns];
          double* sums = &db[l * kColumns];
          for (int64_t j = 0; j < kColumns; ++j) sums[j] += static_cast<double>(g[j]);
          for (int64_t j = 0; j < kColumns; ++j) g[j] += slope * of_layer[j];
        }
      }
      for (size_t l = 0; l < layers; ++l)
        for (int64_t j = 0; j < n; ++j) {
          const size_t at_column = l * kColumns + static_cast<size_t>(j);
          d_weights.w[l].data<A>()[begin + j] = static_cast<A>(dw[at_column]);
          d_weights.b[l].data<A>()[begin + j] = static_cast<A>(db[at_column]);
        }
    });
  });
}

}  // namespace hctr::ops
