#include "ops/gemm/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/device/copy_bytes.h"
#include "ops/common/reduce_axis.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

/// Reference: op(a) op(b) by definition.
std::vector<double> product(const std::vector<double>& a, bool of_a, const std::vector<double>& b, bool of_b, size_t m,
                            size_t n, size_t k) {
  std::vector<double> c(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t x = 0; x < k; ++x) c[i * n + j] += a[of_a ? x * m + i : i * k + x] * b[of_b ? j * k + x : x * n + j];
  return c;
}

OP_TEST(Matmul) {
  rounding(Rounding::sum);
  const auto sizes = [this](const char* name, int64_t m, int64_t n, int64_t k) {
    row(name, {{"a", {m, k}}, {"a_t", {k, m}}, {"b", {k, n}}, {"b_t", {n, k}}});
  };
  sizes("typical", 64, 48, 33);
  sizes("several tiles", 150, 300, 40);
  sizes("one column", 65, 1, 129);
  sizes("one row", 1, 70, 12);
  sizes("one column of many rows", 1000, 1, 70);
  sizes("one wide column", 1453, 1, 300);
  sizes("one element", 1, 1, 1);
  sizes("outer product", 9, 14, 1);
  sizes("large outer product", 130, 257, 1);
  sizes("no rows", 0, 5, 3);
  sizes("sum of nothing", 4, 5, 0);
  sizes("long sums", 8, 8, 2000);
  forward([](Rig& t) {
    const int64_t m = t["a"].dim(0), n = t["b"].dim(1);
    ops::matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::no, t.out("c", {m, n}));
    ops::matmul(t.ctx, t["a_t"], Transpose::yes, t["b"], Transpose::no, t.out("c_tn", {m, n}));
    ops::matmul(t.ctx, t["a"], Transpose::no, t["b_t"], Transpose::yes, t.out("c_nt", {m, n}));
    ops::matmul(t.ctx, t["a_t"], Transpose::yes, t["b_t"], Transpose::yes, t.out("c_tt", {m, n}, Type::wide));
  });
  expected([](const auto& t) {
    const size_t m = t.size("a", 0), n = t.size("b", 1), k = t.size("a", 1);
    t.expect("c", product(t["a"], false, t["b"], false, m, n, k));
    t.expect("c_tn", product(t["a_t"], true, t["b"], false, m, n, k));
    t.expect("c_nt", product(t["a"], false, t["b_t"], true, m, n, k));
    t.expect("c_tt", product(t["a_t"], true, t["b_t"], true, m, n, k));
  });
}

/// The dgrad GEMM of a layer. On Hopper, small batches whose rows are a multiple of 16 bytes use this project's kernel,
/// with tiles of 64 x 64 and steps of 128 bytes.
OP_TEST(MatmulTransposed) {
  rounding(Rounding::sum);
  also_in_tf32();
  const auto sizes = [this](const char* name, int64_t m, int64_t n, int64_t k) {
    row(name, {{"a", {m, k}}, {"b", {n, k}}});
  };
  sizes("one tile", 64, 64, 32);
  sizes("parts of tiles", 70, 136, 200);
  sizes("odd depth", 65, 72, 77);
  sizes("odd columns", 70, 77, 40);
  sizes("one row", 1, 64, 24);
  sizes("many steps", 130, 68, 520);  // tensor cores truncate sums, so a longer k would need a larger tolerance
  forward([](Rig& t) {
    ops::matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::yes, t.out("c", {t["a"].dim(0), t["b"].dim(0)}));
  });
  expected([](const auto& t) {
    t.expect("c", product(t["a"], false, t["b"], true, t.size("a", 0), t.size("b", 0), t.size("a", 1)));
  });
}

OP_TEST(MatmulPlus) {
  rounding(Rounding::sum);
  const auto sizes = [this](const char* name, int64_t m, int64_t n, int64_t k) {
    row(name, {{"a", {m, k}}, {"a_t", {k, m}}, {"b", {k, n}}, {"b_t", {n, k}}, {"addend", {m, n}}});
  };
  sizes("typical", 64, 48, 33);
  sizes("several tiles", 150, 300, 40);
  sizes("packs", 128, 256, 64);
  sizes("one column", 65, 1, 129);
  sizes("one row", 1, 70, 12);
  sizes("one element", 1, 1, 1);
  sizes("outer product", 9, 14, 1);
  sizes("no rows", 0, 5, 3);
  sizes("sum of nothing", 4, 5, 0);
  sizes("long sums", 8, 8, 2000);
  forward([](Rig& t) {
    const Shape shape = t["addend"].shape();
    ops::matmul_plus(t.ctx, t["a"], Transpose::no, t["b"], Transpose::no, t["addend"], t.out("c", shape));
    ops::matmul_plus(t.ctx, t["a_t"], Transpose::yes, t["b"], Transpose::no, t["addend"], t.out("c_tn", shape));
    ops::matmul_plus(t.ctx, t["a"], Transpose::no, t["b_t"], Transpose::yes, t["addend"], t.out("c_nt", shape));
  });
  expected([](const auto& t) {
    const size_t m = t.size("a", 0), n = t.size("b", 1), k = t.size("a", 1);
    const auto plus = [&](std::vector<double> c) {
      const std::vector<double> addend = t["addend"];
      for (size_t i = 0; i < c.size(); ++i) c[i] += addend[i];
      return c;
    };
    t.expect("c", plus(product(t["a"], false, t["b"], false, m, n, k)));
    t.expect("c_tn", plus(product(t["a_t"], true, t["b"], false, m, n, k)));
    t.expect("c_nt", plus(product(t["a"], false, t["b_t"], true, m, n, k)));
  });
}

OP_TEST(Linear) {
  rounding(Rounding::sum);
  const auto sizes = [this](const char* name, int64_t batch, int64_t in, int64_t out) {
    row(name, {{"x", {batch, in}}, {"w", {in, out}}, {"bias", {out}}});
  };
  sizes("typical", 64, 43, 32);
  sizes("several tiles", 131, 20, 260);
  sizes("one output", 70, 32, 1);
  sizes("one input", 7, 1, 9);
  sizes("one element", 1, 1, 1);
  sizes("no rows", 0, 4, 5);
  forward([](Rig& t) { ops::linear(t.ctx, t["x"], t["w"], t["bias"], t.out("y", {t["x"].dim(0), t["w"].dim(1)})); });
  backward([](Rig& t) {  // calls the operators as a fully connected layer does
    ops::matmul(t.ctx, t["x"], Transpose::yes, t.d("y"), Transpose::no, t.d("w"));
    ops::matmul(t.ctx, t.d("y"), Transpose::no, t["w"], Transpose::yes, t.d("x"));
    ops::sum_rows(t.ctx, t.d("y"), t.d("bias"));
  });
  expected([](const auto& t) {
    const size_t batch = t.size("x", 0), in = t.size("x", 1), out = t.size("w", 1);
    std::vector<double> y = product(t["x"], false, t["w"], false, batch, out, in);
    const std::vector<double> bias = t["bias"];
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % out];
    t.expect("y", y);
  });
}

OP_TEST(LinearWithRelu) {
  rounding(Rounding::sum);
  row("typical", {{"x", {64, 43}}, {"w", {43, 32}}, {"bias", {32}}});
  row("several tiles", {{"x", {131, 20}}, {"w", {20, 260}}, {"bias", {260}}});
  row("one output", {{"x", {70, 32}}, {"w", {32, 1}}, {"bias", {1}}});
  forward(
      [](Rig& t) { ops::linear(t.ctx, t["x"], t["w"], t["bias"], t.out("y", {t["x"].dim(0), t["w"].dim(1)}), true); });
  expected([](const auto& t) {
    const size_t batch = t.size("x", 0), in = t.size("x", 1), out = t.size("w", 1);
    std::vector<double> y = product(t["x"], false, t["w"], false, batch, out, in);
    const std::vector<double> bias = t["bias"];
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::max(y[i] + bias[i % out], 0.0);
    t.expect("y", y);
  });
}

/// If inputs of a layer are not finite, the output must not be finite.
TEST(LinearOp, ReluKeepsNaN) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat(to_string(device), " ", name_of(dtype)));
      Rig t({device, dtype, dtype, {{"dense"}}, 1, {{"x", {16, 64}}, {"w", {64, 32}}, {"bias", {32}}}, {}});
      t["x"];
      t.perturb("x", 3 * 64, std::numeric_limits<double>::quiet_NaN());
      ops::linear(t.ctx, t["x"], t["w"], t["bias"], t.out("y", {16, 32}), true);
      t.fetch();
      const std::vector<double> y = t.values("y");
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 32 == 3) << "element " << i;
    }
}

/// A matrix with 429 columns and zero padding gives the same product as the matrix without padding. The padding stays
/// zero.
TEST(LinearOp, ZerosBehindRowsAndColumnsChangeNothing) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat(to_string(device), " ", name_of(dtype)));
      constexpr int64_t kBatch = 40, kIn = 429, kPadded = 432, kOut = 64;
      Rig t({device,
             dtype,
             dtype,
             {{"dense"}},
             1,
             {{"x", {kBatch, kPadded}}, {"w", {kPadded, kOut}}, {"bias", {kOut}}, {"d_y", {kBatch, kOut}}},
             {}});
      const Tensor x = t["x"], w = t["w"], bias = t["bias"], d_y = t["d_y"];
      const auto with_zeros = [&](const Tensor& whole, int64_t rows, int64_t columns) {
        TensorSpec spec(whole.dtype(), {rows, columns}, whole.row_stride());
        spec.zero_rows = whole.dim(0) - rows;
        spec.zero_columns = whole.dim(1) - columns;
        for (int64_t i = 0; i < whole.dim(0); ++i)
          if (i >= rows)
            zero_bytes(t.ctx.stream(), whole.row_range(i, i + 1).bytes(), whole.row_range(i, i + 1).spec().bytes());
          else if (columns < whole.dim(1))
            zero_bytes(t.ctx.stream(), whole.row_range(i, i + 1).columns(columns, whole.dim(1)).bytes(),
                       static_cast<size_t>(spec.zero_columns) * size_of(whole.dtype()));
        return Tensor(whole.bytes(), spec, whole.device());
      };
      const Tensor x_zeros = with_zeros(x, kBatch, kIn), w_zeros = with_zeros(w, kIn, kOut);
      const Tensor y = t.out("y", {kBatch, kOut}), y_plain = t.out("y_plain", {kBatch, kOut});
      ops::linear(t.ctx, x_zeros, w_zeros, bias, y);
      ops::linear(t.ctx, x.columns(0, kIn), w.row_range(0, kIn), bias, y_plain);
      const Tensor d_x_all = t.out("d_x", {kBatch, kPadded}), d_w_all = t.out("d_w", {kPadded, kOut}, Type::wide);
      const Tensor d_x = with_zeros(d_x_all, kBatch, kIn), d_w = with_zeros(d_w_all, kIn, kOut);
      ops::matmul(t.ctx, d_y, Transpose::no, w_zeros, Transpose::yes, d_x);
      ops::matmul(t.ctx, x_zeros, Transpose::yes, d_y, Transpose::no, d_w);
      const Tensor d_x_plain = t.out("d_x_plain", {kBatch, kIn}),
                   d_w_plain = t.out("d_w_plain", {kIn, kOut}, Type::wide);
      ops::matmul(t.ctx, d_y, Transpose::no, w.row_range(0, kIn), Transpose::yes, d_x_plain);
      ops::matmul(t.ctx, x.columns(0, kIn), Transpose::yes, d_y, Transpose::no, d_w_plain);
      t.fetch();
      // Different algorithms may sum in different orders.
      const auto near = [&](const std::vector<double>& found, const std::vector<double>& plain, int64_t rows,
                            int64_t columns, int64_t stride, double tolerance) {
        for (size_t i = 0; i < found.size(); ++i) {
          const int64_t row = static_cast<int64_t>(i) / stride, column = static_cast<int64_t>(i) % stride;
          if (row >= rows || column >= columns)
            ASSERT_EQ(found[i], 0) << "zero at " << row << ", " << column;
          else
            ASSERT_NEAR(found[i], plain[static_cast<size_t>(row * columns + column)], tolerance)
                << row << ", " << column;
        }
      };
      const double step = dtype == DType::bf16 ? 0.1 : dtype == DType::f16 ? 0.02 : 1e-4;
      near(t.values("y"), t.values("y_plain"), kBatch, kOut, kOut, 2 * step);
      near(t.values("d_x"), t.values("d_x_plain"), kBatch, kIn, kPadded, step);
      near(t.values("d_w"), t.values("d_w_plain"), kIn, kOut, kOut, 1e-4);
    }
}

TEST(LinearOp, NamesShapesThatDoNotFit) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"a", {4, 6}}, {"b", {5, 3}}}, {}});
  const auto message = [&](auto body) {
    const std::string text = message_of(Kind::bug, body);
    return text.substr(0, text.find(';'));
  };
  EXPECT_EQ(message([&] { ops::matmul(t.ctx, t["a"], Transpose::no, t["b"], Transpose::no, t.out("c", {4, 3})); }),
            "matmul: 6 columns times 5 rows");
  EXPECT_EQ(message([&] { ops::matmul(t.ctx, t["a"], Transpose::yes, t["a"], Transpose::no, t.out("c", {4, 3})); }),
            "matmul: shape [4,3], expected [6,6]");
}

}  // namespace
}  // namespace hctr::test
