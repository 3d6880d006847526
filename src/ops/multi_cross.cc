#include "ops/multi_cross.h"

#include "ops/element_loops.h"
#include "ops/multi_cross_layout.h"

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

/// The intermediate values of one row.
template <class A>
struct CrossRow {
  std::vector<A> y, scalars;  ///< y_l, layer after layer, [layers + 1, dim]; h_l = <y_l, w_l>
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
    Acc<T> h = 0;
    for (size_t k = 0; k < d; ++k) h += y[k] * static_cast<Acc<T>>(w[k]);
    row.scalars[l] = h;
    for (size_t k = 0; k < d; ++k)
      row.y[(l + 1) * d + k] = static_cast<Acc<T>>(x[k]) * h + y[k] + static_cast<Acc<T>>(bias[k]);
  }
}

constexpr int64_t kCrossRows = 16;  // per task

}  // namespace

TensorSpec multi_cross_scratch(int64_t batch, int64_t dim, int64_t layers) {
  return flat_scratch(CrossLayout(batch, dim, layers).numbers);
}

void multi_cross(Context& ctx, Tensor x, CrossWeights weights, Tensor scratch, Tensor y) {
  expect_cross("multi_cross", ctx, x, weights, y);
  for (const auto* each : {&weights.w, &weights.b})
    for (const Tensor& weight : *each) expect_alike("multi_cross", {x, weight});
  HCTR_EXPECT(scratch.shape() == multi_cross_scratch(x.dim(0), x.dim(1), static_cast<int64_t>(weights.w.size())).shape,
              "multi_cross with scratch ", to_string(scratch.shape()));
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
        c(h.size());  // <y_l, w_l> and <dy_{l+1}, x>, by row and layer

    ctx.threads().parallel_for(batch, kCrossRows, [&](int64_t begin, int64_t end) {
      CrossRow<A> row;
      std::vector<A> g(static_cast<size_t>(dim)), total(g.size());
      for (int64_t b = begin; b < end; ++b) {
        cross_row(X.row(b), weights, dim, row);
        for (size_t k = 0; k < g.size(); ++k) g[k] = static_cast<A>(DY.row(b)[k]), total[k] = 0;
        for (size_t l = layers; l-- > 0;) {
          const T* w = weights.w[l].data<const T>();
          A dot = 0;
          for (size_t k = 0; k < g.size(); ++k) dot += g[k] * static_cast<A>(X.row(b)[k]);
          h[at(b, l)] = row.scalars[l];
          c[at(b, l)] = dot;
          for (size_t k = 0; k < g.size(); ++k) {
            total[k] += row.scalars[l] * g[k];
            g[k] += dot * static_cast<A>(w[k]);
          }
        }
        for (size_t k = 0; dx && k < g.size(); ++k) dx->view<T, 2>().row(b)[k] = static_cast<T>(total[k] + g[k]);
      }
    });

    // Column by column: once the scalars are known, y_l and dy_l of a column depend on no other column.
    constexpr int64_t kColumns = 16;
    ctx.threads().parallel_for(dim, kColumns, [&](int64_t begin, int64_t end) {
      std::vector<double> dw(layers), db(layers);
      for (int64_t k = begin; k < end; ++k) {
        dw.assign(layers, 0);
        db.assign(layers, 0);
        for (int64_t b = 0; b < batch; ++b) {
          const A x0 = static_cast<A>(X(b, k));
          A y = x0, g = static_cast<A>(DY(b, k));
          for (size_t l = 0; l < layers; ++l) {
            dw[l] += static_cast<double>(c[at(b, l)] * y);
            y += x0 * h[at(b, l)] + static_cast<A>(weights.b[l].data<const T>()[k]);
          }
          for (size_t l = layers; l-- > 0;) {
            db[l] += static_cast<double>(g);
            g += c[at(b, l)] * static_cast<A>(weights.w[l].data<const T>()[k]);
          }
        }
        for (size_t l = 0; l < layers; ++l) {
          d_weights.w[l].data<A>()[k] = static_cast<A>(dw[l]);
          d_weights.b[l].data<A>()[k] = static_cast<A>(db[l]);
        }
      }
    });
  });
}

}  // namespace hctr::ops
