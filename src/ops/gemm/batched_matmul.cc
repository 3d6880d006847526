#include "ops/gemm/batched_matmul.h"

#include <algorithm>

#include "core/device/profiler.h"

namespace hctr::ops {
namespace {

/// op() of one matrix of a batch: element (r, c) of op() is at data[r * row + c * column].
template <class T>
struct MatrixAt {
  T* data;
  int64_t row, column;
};

template <class T>
struct MatrixBatch {
  T* data;
  int64_t inner, outer_stride, inner_stride, row, column;
  MatrixAt<T> operator[](int64_t i) const {
    return {data + i / inner * outer_stride + i % inner * inner_stride, row, column};
  }
};

template <class T>
MatrixBatch<T> matrix_batch(const Matrices& m, Transpose how) {
  const bool no = how == Transpose::no;
  return {m.tensor.data<T>(),   m.inner, m.tensor.row_stride(), m.inner_stride, no ? m.row_stride : 1,
          no ? 1 : m.row_stride};
}

}  // namespace

Matrices Matrices::of(Tensor t) {
  HCTR_EXPECT(t.rank() == 3 || t.rank() == 4, "batched matrices need 3 or 4 dimensions, found shape ",
              to_string(t.shape()));
  const int64_t rows = t.dim(t.rank() - 2), columns = t.dim(t.rank() - 1);
  return {t, t.rank() == 4 ? t.dim(1) : 1, rows * columns, rows, columns, columns};
}

Matrices Matrices::of_heads(Tensor t, int64_t heads) {
  HCTR_EXPECT(t.rank() == 3 && t.dim(2) % heads == 0, heads,
              " heads need a tensor [batch, rows, heads * width], "
              "found shape ",
              to_string(t.shape()));
  return {t, heads, t.dim(2) / heads, t.dim(1), t.dim(2) / heads, t.dim(2)};
}

void batched_matmul(Context& ctx, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale, Matrices c) {
  for (const Matrices* m : {&a, &b, &c}) {
    expect_on("batched_matmul", ctx.device(), m->tensor);
    HCTR_EXPECT(m->tensor.rows() == c.tensor.rows() && m->inner == c.inner, "batched_matmul of ", m->tensor.rows(),
                " x ", m->inner, " matrices into ", c.tensor.rows(), " x ", c.inner);
  }
  expect_alike("batched_matmul", {a.tensor, b.tensor, c.tensor});
  const auto shape_of = [](const Matrices& m, Transpose how) {
    return how == Transpose::no ? Shape{m.rows, m.columns} : Shape{m.columns, m.rows};
  };
  const Shape left = shape_of(a, of_a), right = shape_of(b, of_b);
  HCTR_EXPECT(left[1] == right[0] && c.rows == left[0] && c.columns == right[1], "batched_matmul of ", to_string(left),
              " and ", to_string(right), " into ", to_string(Shape{c.rows, c.columns}));
  count_flops(ctx,
              2.0 * static_cast<double>(c.tensor.rows() * c.inner * left[0]) * static_cast<double>(left[1] * right[1]));
  HCTR_ON_DEVICE(ctx, batched_matmul(ctx, a, of_a, b, of_b, scale, c));
}

void cpu::batched_matmul(Context& ctx, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale,
                         Matrices c) {
  const int64_t depth = of_a == Transpose::no ? a.columns : a.rows;
  dispatch_real(c.tensor.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const MatrixBatch<const T> left = matrix_batch<const T>(a, of_a), right = matrix_batch<const T>(b, of_b);
    const MatrixBatch<T> result = matrix_batch<T>(c, Transpose::no);
    ctx.threads().parallel_for(c.tensor.rows() * c.inner * c.rows, 16, [&](int64_t begin, int64_t end) {
      constexpr int64_t kWidth = 64;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t i = task % c.rows;
        const MatrixAt<const T> l = left[task / c.rows], r = right[task / c.rows];
        const MatrixAt<T> to = result[task / c.rows];
        for (int64_t first = 0; first < c.columns; first += kWidth) {
          const int64_t width = std::min(kWidth, c.columns - first);
          A sums[kWidth] = {};
          for (int64_t k = 0; k < depth; ++k) {
            const A factor = static_cast<A>(l.data[i * l.row + k * l.column]);
            for (int64_t j = 0; j < width; ++j)
              sums[j] += factor * static_cast<A>(r.data[k * r.row + (first + j) * r.column]);
          }
          for (int64_t j = 0; j < width; ++j)
            to.data[i * to.row + first + j] = static_cast<T>(static_cast<A>(scale) * sums[j]);
        }
      }
    });
  });
}

}  // namespace hctr::ops
