#include "ops/gemm/ordered_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "ops/gemm/fused_lanes.h"
#include "ops/gemm/packed_weights.h"

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
    for (const int64_t columns : {1, 15, 16, 33, 70, 300, 520})
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

TEST(OrderedProduct, OfPackedColumnsHasTheSameBits) {
  ThreadPool one(1), three(3);
  for (const int64_t rows : {1, 2, 4, 7, 13, 101})
    for (const int64_t columns : {32, 33, 70, 256, 460})
      for (const int64_t depth : {1, 400, 1300}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << depth);
        const auto a = numbers(rows * depth, 1), b = numbers(depth * columns, 2), bias = numbers(columns, 3);
        std::vector<float> panels(static_cast<size_t>(packed_elements(depth, columns)), NAN);
        pack_columns({b.data(), columns, 1}, depth, columns, panels.data());
        for (const bool relu : {false, true}) {
          std::vector<float> expected(static_cast<size_t>(rows * columns));
          ordered_product(one, {a.data(), depth, 1}, {b.data(), columns, 1}, {bias.data(), 0, relu}, expected.data(),
                          columns, rows, columns, depth);
          for (ThreadPool* threads : {&one, &three}) {
            std::vector<float> c(static_cast<size_t>(rows * columns), NAN);
            packed_product(*threads, {a.data(), depth, 1}, {panels.data(), depth, packed_width()},
                           {bias.data(), 0, relu}, c.data(), columns, rows, columns, depth);
            ASSERT_EQ(c, expected);
          }
        }
      }
}

TEST(PackedWeights, FindsExactlyTheMatricesThatWereAdded) {
  const auto values = numbers(64 * 40, 6);
  const auto matrix = [&](int64_t depth, int64_t columns, DType dtype = DType::f32) {
    return Tensor(const_cast<float*>(values.data()), TensorSpec(dtype, {depth, columns}), {});
  };
  PackedWeights packed;
  packed.add(matrix(64, 1));
  packed.add(matrix(10, 40, DType::f16));
  EXPECT_EQ(packed.bytes(), 0u);
  packed.add(matrix(64, 40));
  packed.add(matrix(64, 40));
  EXPECT_EQ(packed.bytes(), static_cast<size_t>(packed_elements(64, 40)) * sizeof(float));
  ASSERT_TRUE(packed.find(matrix(64, 40)));
  EXPECT_EQ(packed.find(matrix(64, 40))->depth, 64);
  EXPECT_EQ(packed.find(matrix(64, 40))->data[packed_width()], values[40]);
  EXPECT_FALSE(packed.find(matrix(32, 40)));
  EXPECT_FALSE(packed.find(matrix(40, 64)));
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
