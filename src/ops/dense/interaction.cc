#include "ops/dense/interaction.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/base/platform.h"
#include "core/device/profiler.h"
#include "ops/gemm/bias_gradient_parts.h"
#include "ops/gemm/gradient_through_relu.h"
#include "ops/gemm/small_product.h"

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

/// FLOPs of the dot products of all pairs of vectors.
double flops_of_pairs(const Tensor& dense, const Tensor& slots) {
  return 2.0 * static_cast<double>(dense.elements()) * static_cast<double>(pairs_of(slots.dim(1) + 1));
}

template <class T>
const T* vector_of(const View<const T, 2>& dense, const View<const T, 3>& slots, int64_t b, int64_t i) {
  return i == 0 ? dense.row(b) : slots.row(b) + (i - 1) * slots.size(2);
}

constexpr int64_t kInteractionRows = 16;  // samples per task

}  // namespace

void interaction(Context& ctx, Tensor dense, Tensor slots, Tensor y) {
  expect_vectors("interaction", ctx, dense, slots, y);
  count_flops(ctx, flops_of_pairs(dense, slots));
  HCTR_ON_DEVICE(ctx, interaction(ctx, dense, slots, y));
}

namespace {

/// The formula of interaction(), computed directly.
template <class T>
void pairs_reference(Context& ctx, const Tensor& dense, const Tensor& slots, const Tensor& y) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
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
}

/// The matrices of one sample in f32, as small_product() needs them, with rows and columns padded with zeros.
class SamplePairs {
 public:
  SamplePairs(int64_t vectors, int64_t dim)
      : vectors_(vectors),
        dim_(dim),
        rows_(cpu::padded_to(vectors, cpu::kProductRows)),
        columns_(cpu::padded_to(vectors, cpu::kProductColumns)),
        width_(cpu::padded_to(dim, cpu::kProductColumns)),
        x_(static_cast<size_t>(rows_ * width_)),
        turned_(static_cast<size_t>(dim * columns_)),
        pairs_(static_cast<size_t>(rows_ * columns_)),
        d_x_(static_cast<size_t>(rows_ * width_)) {}

  /// Loads the vectors of sample b.
  template <class T>
  void load(const View<const T, 2>& dense, const View<const T, 3>& slots, int64_t b) {
    for (int64_t i = 0; i < vectors_; ++i) {
      const T* from = vector_of(dense, slots, b, i);
      float* to = &x_[static_cast<size_t>(i * width_)];
      HCTR_INDEPENDENT_ITERATIONS
      for (int64_t k = 0; k < dim_; ++k) to[k] = static_cast<float>(from[k]);
    }
  }
  /// Writes the dot products of each vector i with the vectors j < i, ordered by i, then j.
  template <class T>
  void multiply(T* y) {
    cpu::transpose({x_.data(), width_}, rows_, dim_, {turned_.data(), columns_});
    for (int64_t i = 0; i < rows_; i += cpu::kProductRows) {
      const int64_t before = std::min(columns_, cpu::padded_to(i + cpu::kProductRows, cpu::kProductColumns));
      cpu::small_product({&x_[static_cast<size_t>(i * width_)], width_}, {turned_.data(), columns_},
                         {&pairs_[static_cast<size_t>(i * columns_)], columns_}, cpu::kProductRows, before, dim_);
    }
    for (int64_t i = 1; i < vectors_; ++i)
      for (int64_t j = 0; j < i; ++j) *y++ = static_cast<T>(pairs_[static_cast<size_t>(i * columns_ + j)]);
  }
  /// Computes the gradients of all vectors from dy, the gradients of multiply()'s results.
  template <class T>
  void multiply_backward(const T* dy) {
    for (int64_t i = 1; i < vectors_; ++i)
      for (int64_t j = 0; j < i; ++j)
        pairs_[static_cast<size_t>(i * columns_ + j)] = pairs_[static_cast<size_t>(j * columns_ + i)] =
            static_cast<float>(*dy++);
    for (int64_t i = 0; i < vectors_; ++i) pairs_[static_cast<size_t>(i * columns_ + i)] = 0;
    cpu::small_product({pairs_.data(), columns_}, {x_.data(), width_}, {d_x_.data(), width_}, rows_, width_, vectors_);
  }
  const float* gradient(int64_t vector) const { return &d_x_[static_cast<size_t>(vector * width_)]; }

 private:
  int64_t vectors_, dim_, rows_, columns_, width_;
  std::vector<float> x_, turned_, pairs_, d_x_;
};

template <class T>
void pairs_by_sample(Context& ctx, const Tensor& dense, const Tensor& slots, const Tensor& y) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
  const auto D = dense.view<const T, 2>();
  const auto S = slots.view<const T, 3>();
  const auto Y = y.view<T, 2>();
  ctx.threads().parallel_for(dense.dim(0), kInteractionRows, [&](int64_t begin, int64_t end) {
    SamplePairs pairs(vectors, dim);
    for (int64_t b = begin; b < end; ++b) {
      std::copy_n(D.row(b), dim, Y.row(b));
      pairs.load(D, S, b);
      pairs.multiply(Y.row(b) + dim);
      Y(b, dim + pairs_of(vectors)) = static_cast<T>(0.0f);
    }
  });
}

}  // namespace

void cpu::interaction(Context& ctx, Tensor dense, Tensor slots, Tensor y) {
  dispatch_real(dense.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double>)
      pairs_reference<T>(ctx, dense, slots, y);
    else
      pairs_by_sample<T>(ctx, dense, slots, y);
  });
}

void interaction_backward(Context& ctx, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                          std::optional<Tensor> d_slots, OverflowSearch search, std::optional<ReluEnd> below) {
  expect_vectors("interaction_backward", ctx, dense, slots, dy);
  if (d_dense) expect_shape("interaction_backward d_dense", *d_dense, dense.shape());
  if (d_slots) expect_shape("interaction_backward d_slots", *d_slots, slots.shape());
  if (below) {
    HCTR_EXPECT(d_dense, "interaction_backward: a fused ReLU needs d_dense");
    expect_bias_gradient("interaction_backward below", ctx, *d_dense, below->d_bias, below->scratch);
    HCTR_EXPECT(below->scratch.elements() >= gradient_through_relu_scratch(d_dense->spec()).shape.elements(),
                "interaction_backward with a fused ReLU needs more scratch memory");
  }
  if (!d_dense && !d_slots) return;
  count_flops(ctx, 2 * flops_of_pairs(dense, slots));
  HCTR_ON_DEVICE(ctx, interaction_backward(ctx, dense, slots, dy, d_dense, d_slots, search, below));
}

namespace {

template <class T>
void pairs_backward_reference(Context& ctx, const Tensor& dense, const Tensor& slots, const Tensor& dy,
                              const std::optional<Tensor>& d_dense, const std::optional<Tensor>& d_slots) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
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
}

template <class T>
void pairs_backward_by_sample(Context& ctx, const Tensor& dense, const Tensor& slots, const Tensor& dy,
                              const std::optional<Tensor>& d_dense, const std::optional<Tensor>& d_slots) {
  const int64_t dim = dense.dim(1), vectors = slots.dim(1) + 1;
  const auto D = dense.view<const T, 2>();
  const auto S = slots.view<const T, 3>();
  const auto DY = dy.view<const T, 2>();
  ctx.threads().parallel_for(dense.dim(0), kInteractionRows, [&](int64_t begin, int64_t end) {
    SamplePairs pairs(vectors, dim);
    for (int64_t b = begin; b < end; ++b) {
      pairs.load(D, S, b);
      pairs.multiply_backward(DY.row(b) + dim);
      if (d_dense) {
        T* out = d_dense->view<T, 2>().row(b);
        const float* sums = pairs.gradient(0);
        for (int64_t k = 0; k < dim; ++k) out[k] = static_cast<T>(static_cast<float>(DY(b, k)) + sums[k]);
      }
      for (int64_t i = 1; d_slots && i < vectors; ++i) {
        T* out = d_slots->view<T, 3>().row(b) + (i - 1) * dim;
        const float* sums = pairs.gradient(i);
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t k = 0; k < dim; ++k) out[k] = static_cast<T>(sums[k]);
      }
    }
  });
}

}  // namespace

void cpu::interaction_backward(Context& ctx, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                               std::optional<Tensor> d_slots, OverflowSearch search, std::optional<ReluEnd> below) {
  dispatch_real(dense.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double>)
      pairs_backward_reference<T>(ctx, dense, slots, dy, d_dense, d_slots);
    else
      pairs_backward_by_sample<T>(ctx, dense, slots, dy, d_dense, d_slots);
  });
  if (below) ops::relu_bias_gradient(ctx, below->factor, dense, *d_dense, *d_dense, below->d_bias, below->scratch);
  if (d_slots) ops::find_overflow(ctx, *d_slots, search);
}

}  // namespace hctr::ops
