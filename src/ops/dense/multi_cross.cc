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

constexpr int64_t kCrossRows = 16;     // rows per task
constexpr int64_t kCrossColumns = 16;  // columns per task

/// The backward pass: first rows(), which computes dx, then columns(), which computes the wgrads.
template <class T>
class CrossBackward {
 public:
  CrossBackward(const Tensor& x, const CrossWeights& weights, const Tensor& dy)
      : x_(x.view<const T, 2>()),
        dy_(dy.view<const T, 2>()),
        weights_(weights),
        layers_(weights.w.size()),
        h_(static_cast<size_t>(x.dim(0)) * layers_),
        c_(h_.size()) {}

  void rows(int64_t begin, int64_t end, const std::optional<Tensor>& dx) {
    const int64_t dim = x_.size(1);
    CrossRow<A> row;
    std::vector<A> g(static_cast<size_t>(dim)), total(g.size());
    for (int64_t b = begin; b < end; ++b) {
      cross_row(x_.row(b), weights_, dim, row);
      for (size_t k = 0; k < g.size(); ++k) g[k] = static_cast<A>(dy_.row(b)[k]), total[k] = 0;
      for (size_t l = layers_; l-- > 0;) {
        const T* w = weights_.w[l].template data<const T>();
        const A scalar = row.scalars[l], slope = dot<A>(g.data(), x_.row(b), g.size());
        h_[at(b, l)] = scalar;
        c_[at(b, l)] = slope;
        A *sums = total.data(), *gradients = g.data();
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t k = 0; k < dim; ++k) {
          sums[k] += scalar * gradients[k];
          gradients[k] += slope * static_cast<A>(w[k]);
        }
      }
      for (size_t k = 0; dx && k < g.size(); ++k) dx->view<T, 2>().row(b)[k] = static_cast<T>(total[k] + g[k]);
    }
  }

  /// If the scalars are known, column j of all y_l and dy_l can be computed from column j of x, dy, weights and biases.
  /// A task therefore computes kCrossColumns columns together.
  void columns(int64_t begin, int64_t end, const CrossWeights& d_weights) const {
    const int64_t n = end - begin;
    std::vector<double> dw(layers_ * kCrossColumns), db(dw.size());
    std::vector<A> w(dw.size()), bias(dw.size());  // weights and biases of these columns
    for (size_t l = 0; l < layers_; ++l)
      for (int64_t j = 0; j < n; ++j) {
        w[l * kCrossColumns + static_cast<size_t>(j)] =
            static_cast<A>(weights_.w[l].template data<const T>()[begin + j]);
        bias[l * kCrossColumns + static_cast<size_t>(j)] =
            static_cast<A>(weights_.b[l].template data<const T>()[begin + j]);
      }
    for (int64_t b = 0; b < x_.size(0); ++b) {
      A x0[kCrossColumns] = {}, y[kCrossColumns], g[kCrossColumns] = {};
      for (int64_t j = 0; j < n; ++j)
        x0[j] = static_cast<A>(x_(b, begin + j)), g[j] = static_cast<A>(dy_(b, begin + j));
      std::copy_n(x0, kCrossColumns, y);
      for (size_t l = 0; l < layers_; ++l) {
        const A scalar = h_[at(b, l)], slope = c_[at(b, l)];
        const A* add = &bias[l * kCrossColumns];
        double* sums = &dw[l * kCrossColumns];
        for (int64_t j = 0; j < kCrossColumns; ++j) sums[j] += static_cast<double>(slope * y[j]);
        for (int64_t j = 0; j < kCrossColumns; ++j) y[j] += x0[j] * scalar + add[j];
      }
      for (size_t l = layers_; l-- > 0;) {
        const A slope = c_[at(b, l)];
        const A* of_layer = &w[l * kCrossColumns];
        double* sums = &db[l * kCrossColumns];
        for (int64_t j = 0; j < kCrossColumns; ++j) sums[j] += static_cast<double>(g[j]);
        for (int64_t j = 0; j < kCrossColumns; ++j) g[j] += slope * of_layer[j];
      }
    }
    for (size_t l = 0; l < layers_; ++l)
      for (int64_t j = 0; j < n; ++j) {
        const size_t at_column = l * kCrossColumns + static_cast<size_t>(j);
        d_weights.w[l].template data<A>()[begin + j] = static_cast<A>(dw[at_column]);
        d_weights.b[l].template data<A>()[begin + j] = static_cast<A>(db[at_column]);
      }
  }

 private:
  using A = Acc<T>;
  size_t at(int64_t b, size_t l) const { return static_cast<size_t>(b) * layers_ + l; }

  View<const T, 2> x_, dy_;
  const CrossWeights& weights_;
  size_t layers_;
  std::vector<A> h_, c_;  // [batch, layers]; h: <y_l, w_l>, c: <dy_{l+1}, x>
};

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
  dispatch_real(x.dtype(), [&]<class T>() {
    CrossBackward<T> backward(x, weights, dy);
    ctx.threads().parallel_for(x.dim(0), kCrossRows,
                               [&](int64_t begin, int64_t end) { backward.rows(begin, end, dx); });
    ctx.threads().parallel_for(x.dim(1), kCrossColumns,
                               [&](int64_t begin, int64_t end) { backward.columns(begin, end, d_weights); });
  });
}

}  // namespace hctr::ops
