#include "ops/interaction.h"

#include "device/profiler.h"

namespace hctr::ops {
namespace {

int64_t pairs_of(int64_t vectors) { return vectors * (vectors - 1) / 2; }

void expect_vectors(const char* what, Context& ctx, const Tensor& dense, const Tensor& slots, const Tensor& y) {
  expect_on(what, ctx.device(), dense);
  expect_alike(what, {dense, slots, y});
  HCTR_EXPECT(dense.rank() == 2 && slots.rank() == 3 && slots.dim(0) == dense.dim(0) && slots.dim(2) == dense.dim(1),
              what, " of ", to_string(dense.shape()), " and ", to_string(slots.shape()));
  expect_shape(what, y, {dense.dim(0), dense.dim(1) + pairs_of(slots.dim(1) + 1) + 1});
}

/// Of one product of each pair of vectors.
double flops_of_pairs(const Tensor& dense, const Tensor& slots) {
  return 2.0 * static_cast<double>(dense.elements()) * static_cast<double>(pairs_of(slots.dim(1) + 1));
}

template <class T>
const T* vector_of(const View<const T, 2>& dense, const View<const T, 3>& slots, int64_t b, int64_t i) {
  return i == 0 ? dense.row(b) : slots.row(b) + (i - 1) * slots.size(2);
}

constexpr int64_t kInteractionRows = 4;  // per task

}  // namespace

void interaction(Context& ctx, Tensor dense, Tensor slots, Tensor y) {
  expect_vectors("interaction", ctx, dense, slots, y);
  count_flops(ctx, flops_of_pairs(dense, slots));
  HCTR_ON_DEVICE(ctx, interaction(ctx, dense, slots, y));
}

void cpu::interaction(Context& ctx, Tensor dense, Tensor slots, Tensor y) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
  dispatch_real(dense.dtype(), [&]<class T>() {
    const auto D = dense.view<const T, 2>();
    const auto S = slots.view<const T, 3>();
    const auto Y = y.view<T, 2>();
    ctx.threads().parallel_for(dense.dim(0), kInteractionRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t k = 0; k < dim; ++k) Y(b, k) = D(b, k);
        for (int64_t c = 1; c < vectors; ++c)
          for (int64_t r = 0; r < c; ++r) {
            const T *first = vector_of(D, S, b, r), *second = vector_of(D, S, b, c);
            Acc<T> dot = 0;
            for (int64_t k = 0; k < dim; ++k) dot += static_cast<Acc<T>>(first[k]) * static_cast<Acc<T>>(second[k]);
            Y(b, dim + pairs_of(c) + r) = static_cast<T>(dot);
          }
        Y(b, dim + pairs_of(vectors)) = static_cast<T>(Acc<T>(0));
      }
    });
  });
}

void interaction_backward(Context& ctx, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                          std::optional<Tensor> d_slots) {
  expect_vectors("interaction_backward", ctx, dense, slots, dy);
  if (d_dense) expect_shape("interaction_backward d_dense", *d_dense, dense.shape());
  if (d_slots) expect_shape("interaction_backward d_slots", *d_slots, slots.shape());
  if (!d_dense && !d_slots) return;
  count_flops(ctx, 2 * flops_of_pairs(dense, slots));
  HCTR_ON_DEVICE(ctx, interaction_backward(ctx, dense, slots, dy, d_dense, d_slots));
}

void cpu::interaction_backward(Context& ctx, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                               std::optional<Tensor> d_slots) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
  dispatch_real(dense.dtype(), [&]<class T>() {
    const auto D = dense.view<const T, 2>();
    const auto S = slots.view<const T, 3>();
    const auto DY = dy.view<const T, 2>();
    ctx.threads().parallel_for(dense.dim(0), kInteractionRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t i = 0; i < vectors; ++i) {
          if (i == 0 ? !d_dense : !d_slots) continue;
          T* out = i == 0 ? d_dense->view<T, 2>().row(b) : d_slots->view<T, 3>().row(b) + (i - 1) * dim;
          for (int64_t k = 0; k < dim; ++k) {
            Acc<T> sum = i == 0 ? static_cast<Acc<T>>(DY(b, k)) : 0;
            for (int64_t j = 0; j < vectors; ++j) {
              if (j == i) continue;
              const int64_t pair = i < j ? pairs_of(j) + i : pairs_of(i) + j;
              sum += static_cast<Acc<T>>(DY(b, dim + pair)) * static_cast<Acc<T>>(vector_of(D, S, b, j)[k]);
            }
            out[k] = static_cast<T>(sum);
          }
        }
    });
  });
}

}  // namespace hctr::ops
