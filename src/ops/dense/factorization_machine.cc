#include "ops/dense/factorization_machine.h"

namespace hctr::ops {
namespace {

constexpr int64_t kFmSamples = 16;  // samples per task

void expect_machine(const char* what, Context& ctx, int64_t dim, const Tensor& y, const Tensor& second,
                    const Tensor& first) {
  expect_on(what, ctx.device(), y);
  expect_alike(what, {y, second, first});
  HCTR_EXPECT(y.rank() == 2 && dim > 0 && dim <= kMostFmDim && y.dim(1) <= kMostFmColumns && y.dim(1) % dim == 0, what,
              " with vectors of ", dim, " in ", to_string(y.shape()));
  expect_shape(what, second, {y.rows(), 1});
  expect_shape(what, first, {y.rows(), 1});
}

}  // namespace

void factorization_machine(Context& ctx, Tensor x, Tensor vectors, Tensor weights, Tensor y, Tensor second,
                           Tensor first) {
  const char* what = "factorization_machine";
  HCTR_EXPECT(x.rank() == 2 && vectors.rank() == 2 && weights.rank() == 2 && x.dim(1) > 1, what, " of ",
              to_string(x.shape()), ", ", to_string(vectors.shape()), " and ", to_string(weights.shape()));
  const int64_t dim = x.dim(1) - 1;
  expect_machine(what, ctx, dim, y, second, first);
  expect_alike(what, {x, vectors, weights, y});
  const int64_t slots = (y.dim(1) - vectors.dim(1)) / dim;
  HCTR_EXPECT(slots > 0 && vectors.dim(1) > 0 && vectors.dim(1) % dim == 0 && weights.dim(1) > 0, what, " of ",
              to_string(vectors.shape()), " and ", to_string(weights.shape()), " to ", to_string(y.shape()));
  expect_shape(what, x, {y.rows() * slots, dim + 1});
  expect_shape(what, vectors, {y.rows(), vectors.dim(1)});
  expect_shape(what, weights, {y.rows(), weights.dim(1)});
  HCTR_ON_DEVICE(ctx, factorization_machine(ctx, x, vectors, weights, y, second, first));
}

void cpu::factorization_machine(Context& ctx, Tensor x, Tensor vectors, Tensor weights, Tensor y, Tensor second,
                                Tensor first) {
  const int64_t dim = x.dim(1) - 1, slots = (y.dim(1) - vectors.dim(1)) / dim, count = y.dim(1) / dim;
  dispatch_real(y.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>(), E = vectors.view<const T, 2>(), W = weights.view<const T, 2>();
    const auto Y = y.view<T, 2>(), S = second.view<T, 2>(), F = first.view<T, 2>();
    ctx.threads().parallel_for(y.rows(), kFmSamples, [&](int64_t begin, int64_t end) {
      Acc<T> sum[kMostFmDim], squares[kMostFmDim];
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t k = 0; k < dim; ++k) sum[k] = squares[k] = 0;
        T* to = Y.row(b);
        for (int64_t j = 0; j < count; ++j, to += dim) {
          const T* from = j < slots ? X.row(b * slots + j) : E.row(b) + (j - slots) * dim;
          for (int64_t k = 0; k < dim; ++k) {
            const auto e = static_cast<Acc<T>>(from[k]);
            to[k] = from[k];
            sum[k] += e;
            squares[k] += e * e;
          }
        }
        Acc<T> pairs = 0, weight = 0;
        for (int64_t k = 0; k < dim; ++k) pairs += (sum[k] * sum[k] - squares[k]) / 2;
        for (int64_t j = 0; j < slots; ++j) weight += static_cast<Acc<T>>(X(b * slots + j, dim));
        for (int64_t j = 0; j < W.size(1); ++j) weight += static_cast<Acc<T>>(W(b, j));
        S(b, 0) = static_cast<T>(pairs);
        F(b, 0) = static_cast<T>(weight);
      }
    });
  });
}

void factorization_machine_backward(Context& ctx, int64_t slots, int64_t dim, Tensor y, Tensor d_y, Tensor d_second,
                                    Tensor d_first, const FmGradients& gradients) {
  const char* what = "factorization_machine_backward";
  expect_machine(what, ctx, dim, y, d_second, d_first);
  HCTR_EXPECT(slots > 0 && slots * dim < y.dim(1), what, " of ", slots, " slots in ", to_string(y.shape()));
  expect_alike(what, {y, d_y});
  expect_shape(what, d_y, y.shape());
  if (gradients.x) {
    expect_alike(what, {*gradients.x, y});
    expect_shape(what, *gradients.x, {y.rows() * slots, dim + 1});
  }
  if (gradients.vectors) {
    expect_alike(what, {*gradients.vectors, y});
    expect_shape(what, *gradients.vectors, {y.rows(), y.dim(1) - slots * dim});
  }
  if (gradients.weights) {
    expect_alike(what, {*gradients.weights, y});
    expect_shape(what, *gradients.weights, {y.rows(), gradients.weights->dim(1)});
  }
  HCTR_ON_DEVICE(ctx, factorization_machine_backward(ctx, slots, dim, y, d_y, d_second, d_first, gradients));
}

void cpu::factorization_machine_backward(Context& ctx, int64_t slots, int64_t dim, Tensor y, Tensor d_y,
                                         Tensor d_second, Tensor d_first, const FmGradients& gradients) {
  const int64_t count = y.dim(1) / dim;
  dispatch_real(y.dtype(), [&]<class T>() {
    const auto Y = y.view<const T, 2>(), DY = d_y.view<const T, 2>();
    const auto DS = d_second.view<const T, 2>(), DF = d_first.view<const T, 2>();
    ctx.threads().parallel_for(y.rows(), kFmSamples, [&](int64_t begin, int64_t end) {
      Acc<T> sum[kMostFmDim];
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t k = 0; k < dim; ++k) sum[k] = 0;
        for (int64_t j = 0; j < count; ++j)
          for (int64_t k = 0; k < dim; ++k) sum[k] += static_cast<Acc<T>>(Y(b, j * dim + k));
        const auto of_pairs = static_cast<Acc<T>>(DS(b, 0));
        const auto gradient = [&](int64_t j, T* to) {
          for (int64_t k = 0; k < dim; ++k)
            to[k] = static_cast<T>(static_cast<Acc<T>>(DY(b, j * dim + k)) +
                                   of_pairs * (sum[k] - static_cast<Acc<T>>(Y(b, j * dim + k))));
        };
        if (gradients.x) {
          const auto DX = gradients.x->view<T, 2>();
          for (int64_t j = 0; j < slots; ++j) {
            gradient(j, DX.row(b * slots + j));
            DX(b * slots + j, dim) = DF(b, 0);
          }
        }
        if (gradients.vectors)
          for (int64_t j = slots; j < count; ++j)
            gradient(j, gradients.vectors->view<T, 2>().row(b) + (j - slots) * dim);
        if (gradients.weights)
          for (int64_t j = 0; j < gradients.weights->dim(1); ++j) gradients.weights->view<T, 2>()(b, j) = DF(b, 0);
      }
    });
  });
}

}  // namespace hctr::ops
