#include "ops/linear.h"

#include "ops/reduce_axis.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Transpose;

/// op(a) op(b) by definition.
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
  sizes("one element", 1, 1, 1);
  sizes("outer product", 9, 14, 1);
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
  backward([](Rig& t) {  // as the fully connected layer does it
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
