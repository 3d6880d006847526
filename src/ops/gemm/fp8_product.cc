#include "ops/gemm/fp8_product.h"

#include <algorithm>
#include <vector>

#include "core/device/profiler.h"
#include "ops/common/activation_rules.h"
#include "ops/common/checks.h"
#include "ops/common/copy.h"
#include "ops/common/element_loops.h"
#include "ops/common/fill.h"
#include "ops/common/reduce_axis.h"
#include "ops/common/valid_rows.h"
#include "ops/gemm/bias_gradient_parts.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

void expect_fp8(Context& ctx) { HCTR_ON_DEVICE(ctx, expect_fp8(ctx)); }

void fp8_cast(Context& ctx, Tensor x, bool samples, const Fp8Scaling& scaling, std::byte* rows, std::byte* transposed) {
  expect_on("fp8_cast", ctx.device(), x);
  HCTR_EXPECT(x.rank() == 2 && (rows || transposed), "fp8_cast needs a matrix and an output, found shape ",
              to_string(x.shape()));
  HCTR_ON_DEVICE(ctx, fp8_cast(ctx, x, samples, scaling, rows, transposed));
}

TensorSpec fp8_gradient_scratch(const TensorSpec& d_y) {
  return TensorSpec(DType::f32, {(d_y.rows() + kFp8Tile - 1) / kFp8Tile * d_y.row_elements()});
}

void fp8_cast_gradient(Context& ctx, Tensor d_y, const Fp8GradientEnd& end, const Fp8Scaling& scaling, std::byte* rows,
                       std::byte* transposed) {
  expect_on("fp8_cast_gradient", ctx.device(), d_y);
  HCTR_EXPECT(d_y.rank() == 2 && rows && transposed,
              "fp8_cast_gradient needs a matrix and both outputs, found "
              "shape ",
              to_string(d_y.shape()));
  if (end.y) {
    expect_shape("fp8_cast_gradient y", *end.y, d_y.shape());
    expect_alike("fp8_cast_gradient", {d_y, *end.y});
  }
  if (end.d_bias) {
    expect_dense_tensor("fp8_cast_gradient d_bias", ctx.device(), *end.d_bias, {d_y.dim(1)}, DType::f32);
    HCTR_EXPECT(end.scratch && end.scratch->elements() >= fp8_gradient_scratch(d_y.spec()).shape.elements(),
                "fp8_cast_gradient() needs more scratch memory");
  }
  HCTR_ON_DEVICE(ctx, fp8_cast_gradient(ctx, d_y, end, scaling, rows, transposed));
}

bool takes_fp8_product(const Tensor& c) { return fp8_padded(c.dim(1)) - c.dim(1) <= c.spec().zero_columns; }

void fp8_product(Context& ctx, const Fp8Matrix& a, const Fp8Matrix& b, std::optional<Tensor> bias, bool relu,
                 Tensor c) {
  expect_on("fp8_product", ctx.device(), c);
  expect_shape("fp8_product", c, {a.rows, b.rows});
  HCTR_EXPECT(a.columns == b.columns, "fp8_product: ", a.columns, " columns times ", b.columns);
  HCTR_EXPECT(takes_fp8_product(c), "fp8_product: ", c.dim(1), " columns");
  HCTR_EXPECT(a.format == Fp8Format::e4m3 || b.format == Fp8Format::e4m3,
              "fp8_product: both matrices have the "
              "format e5m2, expected e4m3 for one of "
              "them");
  HCTR_EXPECT(c.dtype() == DType::bf16 || (c.dtype() == DType::f32 && !bias), "fp8_product as ", name_of(c.dtype()));
  if (bias) {
    expect_shape("fp8_product bias", *bias, {b.rows});
    HCTR_EXPECT(bias->dense() && bias->dtype() == c.dtype(), "fp8_product with a bias of ", name_of(bias->dtype()));
    HCTR_EXPECT(fp8_padded(b.rows) == b.rows, "fp8_product with a bias of ", b.rows, " columns");
  }
  if (a.columns == 0) return fill(ctx, 0, c);  // every sum is empty
  count_flops(ctx, 2.0 * static_cast<double>(c.elements()) * static_cast<double>(a.columns), true);
  HCTR_ON_DEVICE(ctx, fp8_product(ctx, a, b, bias, relu, c));
}

namespace {

constexpr int64_t kRowsOfTask = 16;

template <class T>
void round_rows(Context& ctx, Tensor x, int64_t counted, const Fp8Scaling& scaling, std::byte* to) {
  const int64_t columns = x.dim(1), stride = fp8_padded(columns), rows = fp8_padded(x.dim(0));
  const float factor = scaling.scale->factor;
  std::vector<float> most(static_cast<size_t>(rows / kRowsOfTask), 0.0f);
  dispatch_float(x.dtype(), [&]<class In>() {
    ctx.threads().parallel_for(rows / kRowsOfTask, 1, [&](int64_t first, int64_t last) {
      for (int64_t row = first * kRowsOfTask; row < last * kRowsOfTask; ++row) {
        auto* const out = reinterpret_cast<T*>(to + row * stride);
        std::fill_n(out, stride, T(0.0f));
        if (row >= x.dim(0)) continue;
        const In* const in = x.view<const In, 2>().row(row);
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t j = 0; j < columns; ++j) out[j] = T(factor * static_cast<float>(in[j]));
        if (row >= counted) continue;
        uint32_t bits = 0;  // bit patterns are ordered like magnitudes; NaN is the largest
        for (int64_t j = 0; j < columns; ++j)
          bits = std::max(bits, std::bit_cast<uint32_t>(static_cast<float>(in[j])) & 0x7fffffffu);
        float& of_task = most[static_cast<size_t>(row / kRowsOfTask)];
        of_task = std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(of_task), bits));
      }
    });
  });
  for (const float of_task : most)
    *scaling.amax =
        std::bit_cast<float>(std::max(std::bit_cast<uint32_t>(*scaling.amax), std::bit_cast<uint32_t>(of_task)));
}

/// Decodes a matrix to f32, without its padding.
std::vector<float> numbers_of(Context& ctx, const Fp8Matrix& m) {
  std::vector<float> numbers(static_cast<size_t>(m.rows * m.columns));
  const auto read = [&]<class T>() {
    ctx.threads().parallel_for(m.rows, kRowsOfTask, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const auto* const from = reinterpret_cast<const T*>(m.codes + row * fp8_padded(m.columns));
        float* const to = numbers.data() + row * m.columns;
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t j = 0; j < m.columns; ++j) to[j] = m.scale->inverse * static_cast<float>(from[j]);
      }
    });
  };
  m.format == Fp8Format::e4m3 ? read.template operator()<Fp8E4M3>() : read.template operator()<Fp8E5M2>();
  return numbers;
}

struct ReluGradientOf {
  float factor;
  float operator()(float y, float d_y) const { return relu_gradient(factor, y, d_y); }
};

Tensor f32_matrix(std::vector<float>& numbers, int64_t rows, int64_t columns) {
  return Tensor(numbers.data(), TensorSpec(DType::f32, {rows, columns}), Device{});
}

}  // namespace

void cpu::expect_fp8(Context&) {}

void cpu::fp8_cast(Context& ctx, Tensor x, bool samples, const Fp8Scaling& scaling, std::byte* rows,
                   std::byte* transposed) {
  const int64_t m = x.dim(0), n = x.dim(1);
  const int64_t counted = samples && ctx.state() ? valid_rows(*ctx.state(), m) : m;
  std::vector<std::byte> own;
  if (!rows) {
    own.resize(static_cast<size_t>(Fp8Matrix::bytes(m, n)));
    rows = own.data();
  }
  if (scaling.format == Fp8Format::e4m3)
    round_rows<Fp8E4M3>(ctx, x, counted, scaling, rows);
  else
    round_rows<Fp8E5M2>(ctx, x, counted, scaling, rows);
  if (!transposed) return;
  const int64_t high = fp8_padded(m), wide = fp8_padded(n);
  ctx.threads().parallel_for(wide / kRowsOfTask, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = first * kRowsOfTask; j < last * kRowsOfTask; ++j) transposed[j * high + i] = rows[i * wide + j];
  });
}

void cpu::fp8_cast_gradient(Context& ctx, Tensor d_y, const Fp8GradientEnd& end, const Fp8Scaling& scaling,
                            std::byte* rows, std::byte* transposed) {
  std::vector<float> values(static_cast<size_t>(d_y.elements()));
  const Tensor d_z = f32_matrix(values, d_y.dim(0), d_y.dim(1));
  dispatch_float(d_y.dtype(), [&]<class T>() {
    const auto z = d_z.view<float, 2>();
    const auto gradient = d_y.view<const T, 2>();
    if (end.y)
      map(ctx, ReluGradientOf{end.factor}, z, end.y->view<const T, 2>(), gradient);
    else
      map(ctx, [](float d) { return d; }, z, gradient);
  });
  cpu::fp8_cast(ctx, d_z, false, scaling, rows, transposed);
  if (end.d_bias) cpu::sum_rows(ctx, d_z, *end.d_bias);
}

/// CPU reference: decodes the operands to f32 and multiplies in f32.
void cpu::fp8_product(Context& ctx, const Fp8Matrix& a, const Fp8Matrix& b, std::optional<Tensor> bias, bool relu,
                      Tensor c) {
  std::vector<float> left = numbers_of(ctx, a), right = numbers_of(ctx, b), sums(static_cast<size_t>(a.rows * b.rows));
  const Tensor x = f32_matrix(left, a.rows, a.columns), w = f32_matrix(right, b.rows, b.columns),
               y = f32_matrix(sums, a.rows, b.rows);
  cpu::matmul(ctx, x, Transpose::no, w, Transpose::yes, y);
  if (bias) {
    const auto* const add = bias->data<const BFloat16>();
    for (int64_t i = 0; i < a.rows; ++i) {
      float* const row = sums.data() + i * b.rows;
      for (int64_t j = 0; j < b.rows; ++j) row[j] += static_cast<float>(add[j]);
    }
  }
  if (relu)
    for (float& sum : sums) sum = Relu{}.forward(sum);
  ops::copy(ctx, y, c);
}

}  // namespace hctr::ops
