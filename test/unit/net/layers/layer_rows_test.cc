// Runs layers, each with all of its operators, in the operator harness.
#include "unit/net/layers/layer_rows.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hctr::test {
namespace {

OP_TEST(BatchNormLayerRows) {
  const auto sizes = [this](const char* name, int64_t rows, int64_t n) {
    row(name, {{"x", {rows, n}},
               {"gamma", {n}},
               {"beta", {n}},
               {"mean", {n}, -0.1, 0.1, Type::wide},
               {"var", {n}, 0.1, 1, Type::wide},
               {"weight", {1}, 1, 1, Type::wide}});
  };
  sizes("typical", 64, 19);
  sizes("one column", 33, 1);
  layer_under_test(*this, R"({"type": "BatchNorm", "bn_param": {"factor": 0.5, "eps": 1e-3}})", {"x"});
}

OP_TEST(LayerNormLayerRows) {
  const auto sizes = [this](const char* name, Shape shape) {
    const int64_t n = shape[shape.rank() - 1];
    row(name, {{"x", shape}, {"gamma", {n}}, {"beta", {n}}});
  };
  sizes("matrix", {40, 65});
  sizes("three dimensions", {5, 7, 24});
  sizes("four dimensions", {3, 2, 5, 8});
  sizes("one row", {1, 300});
  layer_under_test(*this, R"({"type": "LayerNorm", "ln_param": {"eps": 1e-3}})", {"x"});
  expected([](const auto& t) {
    std::vector<double> y = t["x"], gamma = t["gamma"], beta = t["beta"];
    const size_t n = gamma.size();
    for (size_t r = 0; r < y.size(); r += n) {
      double mean = 0, variance = 0;
      for (size_t j = 0; j < n; ++j) mean += y[r + j] / static_cast<double>(n);
      for (size_t j = 0; j < n; ++j) variance += (y[r + j] - mean) * (y[r + j] - mean) / static_cast<double>(n);
      for (size_t j = 0; j < n; ++j)
        y[r + j] = gamma[j] * (y[r + j] - mean) / std::sqrt(variance + static_cast<double>(1e-3f)) + beta[j];
    }
    t.expect("y", y);
  });
}

OP_TEST(PReLUDiceLayerRows) {
  row("typical", {{"x", {64, 19}}});
  row("one column", {{"x", {200, 1}}});
  row("far from zero", {{"x", {30, 4}, 10, 12}});
  layer_under_test(*this, R"({"type": "PReLU_Dice", "prelu_dice_param": {"alpha": 0.2, "epsilon": 1e-3}})", {"x"});
  expected([](const auto& t) {
    const std::vector<double> x = t["x"];
    const size_t n = t.size("x", 1), rows = t.size("x", 0);
    std::vector<double> y(x.size());
    for (size_t j = 0; j < n; ++j) {
      double mean = 0, variance = 0;
      for (size_t b = 0; b < rows; ++b) mean += x[b * n + j] / static_cast<double>(rows);
      for (size_t b = 0; b < rows; ++b)
        variance += (x[b * n + j] - mean) * (x[b * n + j] - mean) / static_cast<double>(rows);
      for (size_t b = 0; b < rows; ++b) {
        const double p = 1 / (1 + std::exp(-(x[b * n + j] - mean) / std::sqrt(variance + static_cast<double>(1e-3f))));
        y[b * n + j] = (p + (1 - p) * static_cast<double>(0.2f)) * x[b * n + j];
      }
    }
    t.expect("y", y);
  });
}

OP_TEST(MatrixMultiplyLayerRows) {
  row("matrices", {{"a", {17, 9}}, {"b", {9, 12}}});
  row("a batch", {{"a", {5, 7, 9}}, {"b", {5, 9, 4}}});
  row("a batch of batches", {{"a", {2, 3, 7, 9}}, {"b", {2, 3, 9, 4}}});
  row("several tiles", {{"a", {2, 70, 33}}, {"b", {2, 33, 130}}});
  row("one element", {{"a", {3, 1, 1}}, {"b", {3, 1, 1}}});
  layer_under_test(*this, R"({"type": "MatrixMultiply"})", {"a", "b"});
  expected([](const auto& t) {
    const std::vector<double> a = t["a"], b = t["b"];
    const int rank = t.rank("a");
    const size_t m = t.size("a", rank - 2), k = t.size("a", rank - 1), n = t.size("b", rank - 1),
                 batch = a.size() / (m * k);
    std::vector<double> y(batch * m * n);
    for (size_t s = 0; s < batch; ++s)
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
          for (size_t l = 0; l < k; ++l) y[(s * m + i) * n + j] += a[(s * m + i) * k + l] * b[(s * k + l) * n + j];
    t.expect("y", y);
  });
}

/// Attention by its formula, per sample and head. The mask is [batch, 1, from or 1, to], or empty.
std::vector<double> attention(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
                              const std::vector<double>& mask, size_t batch, size_t from, size_t to, size_t heads,
                              size_t d, size_t dv) {
  std::vector<double> y(batch * from * heads * dv);
  const auto scale = static_cast<double>(static_cast<float>(1 / std::sqrt(static_cast<double>(d))));
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < from; ++i) {
        std::vector<double> share(to);
        double sum = 0;
        for (size_t j = 0; j < to; ++j) {
          double score = 0;
          for (size_t c = 0; c < d; ++c)
            score += q[((b * from + i) * heads + h) * d + c] * k[((b * to + j) * heads + h) * d + c];
          const size_t row = mask.size() == batch * to ? b : b * from + i;
          const bool kept = mask.empty() || mask[row * to + j] >= 0.5;
          sum += share[j] = kept ? std::exp(score * scale) : 0;
        }
        for (size_t j = 0; j < to; ++j)
          for (size_t c = 0; c < dv; ++c)
            y[((b * from + i) * heads + h) * dv + c] +=
                (sum > 0 ? share[j] / sum : 1 / static_cast<double>(to)) * v[((b * to + j) * heads + h) * dv + c];
      }
  return y;
}

OP_TEST(MatrixTimesThreeDimensionsRows) {
  row("typical", {{"a", {17, 9}}, {"b", {9, 4, 5}}});
  row("packs", {{"a", {8, 4}}, {"b", {4, 3, 16}}});
  row("one element", {{"a", {1, 1}}, {"b", {1, 1, 1}}});
  layer_under_test(*this, R"({"type": "MatrixMultiply"})", {"a", "b"});
  expected([](const auto& t) {
    const std::vector<double> a = t["a"], b = t["b"];
    const size_t m = t.size("a", 0), k = t.size("a", 1), n = b.size() / k;
    std::vector<double> y(m * n);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t l = 0; l < k; ++l) y[i * n + j] += a[i * k + l] * b[l * n + j];
    t.expect("y", y);
  });
}

OP_TEST(MultiHeadAttentionLayerRows) {
  row("typical", {{"q", {4, 6, 24}}, {"k", {4, 9, 24}}, {"v", {4, 9, 24}}});
  row("values of another width", {{"q", {2, 3, 6}}, {"k", {2, 5, 6}}, {"v", {2, 5, 15}}});
  row("one of each", {{"q", {1, 1, 3}}, {"k", {1, 1, 3}}, {"v", {1, 1, 3}}});
  layer_under_test(*this, R"({"type": "MultiHeadAttention", "num_attention_heads": 3})", {"q", "k", "v"});
  rounding(Rounding::stages);
  expected([](const auto& t) {
    t.expect("y", attention(t["q"], t["k"], t["v"], {}, t.size("q", 0), t.size("q", 1), t.size("k", 1), 3,
                            t.size("q", 2) / 3, t.size("v", 2) / 3));
  });
}

OP_TEST(MaskedMultiHeadAttentionLayerRows) {
  row("typical", {{"q", {4, 6, 8}}, {"k", {4, 9, 8}}, {"v", {4, 9, 8}}, {"mask", {4, 1, 6, 9}, 0, 1}});
  row("one mask for all queries", {{"q", {4, 6, 8}}, {"k", {4, 9, 8}}, {"v", {4, 9, 8}}, {"mask", {4, 1, 1, 9}, 0, 1}});
  row("nothing kept", {{"q", {2, 3, 8}}, {"k", {2, 3, 8}}, {"v", {2, 3, 8}}, {"mask", {2, 1, 3, 3}, 0, 0}});
  layer_under_test(*this, R"({"type": "MultiHeadAttention", "num_attention_heads": 2})", {"q", "k", "v", "mask"});
  rounding(Rounding::stages);
  expected([](const auto& t) {
    t.expect("y",
             attention(t["q"], t["k"], t["v"], t["mask"], t.size("q", 0), t.size("q", 1), t.size("k", 1), 2, 4, 4));
  });
}

}  // namespace
}  // namespace hctr::test
