#include "ops/gemm/ordered_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "ops/gemm/fused_lanes.h"

namespace hctr::ops {
namespace {

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(mix64(seed * 1000003 + static_cast<uint64_t>(i)) % 20001) / 10000.0f - 1.0f);
  return values;
}

/// Reference: the header's formula, element by element in order.
std::vector<float> in_order(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& addend,
                            bool relu, int64_t rows, int64_t columns, int64_t depth) {
  std::vector<float> c;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum = std::fma(a[static_cast<size_t>(i * depth + k)], b[static_cast<size_t>(k * columns + j)], sum);
      sum += addend[static_cast<size_t>(j)];
      c.push_back(relu && !(sum > 0) ? 0.0f : sum);
    }
  return c;
}

TEST(OrderedProduct, HasTheBitsOfAChainInTheOrderOfTheDepth) {
  ThreadPool one(1), three(3);
  for (const int64_t rows : {1, 2, 7, 13, 96, 101})
    for (const int64_t columns : {1, 15, 16, 33, 70, 300})
      for (const int64_t depth : {1, 7, 400}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << depth);
        const auto a = numbers(rows * depth, 1), b = numbers(depth * columns, 2), bias = numbers(columns, 3);
        const auto expected = in_order(a, b, bias, true, rows, columns, depth);
        for (ThreadPool* threads : {&one, &three}) {
          std::vector<float> c(static_cast<size_t>(rows * columns), NAN);
          ordered_product(*threads, {a.data(), depth, 1}, {b.data(), columns, 1}, {bias.data(), 0, true}, c.data(),
                          columns, rows, columns, depth);
          ASSERT_EQ(c, expected);
        }
      }
}

TEST(OrderedProduct, ReadsTransposedOperandsAndRowsApart) {
  ThreadPool threads(2);
  const int64_t rows = 37, columns = 41, depth = 50;
  const auto a = numbers(rows * depth, 4), b = numbers(depth * columns, 5), none = std::vector<float>(columns, 0.0f);
  std::vector<float> a_turned(a.size()), b_turned(b.size());
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < rows; ++i)
      a_turned[static_cast<size_t>(k * rows + i)] = a[static_cast<size_t>(i * depth + k)];
    for (int64_t j = 0; j < columns; ++j)
      b_turned[static_cast<size_t>(j * depth + k)] = b[static_cast<size_t>(k * columns + j)];
  }
  std::vector<float> c(static_cast<size_t>(rows * 64), -1.0f);
  ordered_product(threads, {a_turned.data(), 1, rows}, {b_turned.data(), 1, depth}, {}, c.data(), 64, rows, columns,
                  depth);
  const auto expected = in_order(a, b, none, false, rows, columns, depth);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(c[static_cast<size_t>(i * 64 + j)],
                j < columns ? expected[static_cast<size_t>(i * columns + j)] : -1.0f);
}

}  // namespace
}  // namespace hctr::ops
