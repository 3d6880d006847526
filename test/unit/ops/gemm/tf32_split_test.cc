#include "ops/gemm/tf32_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::Transpose;

TEST(Tf32Split, RoundsToElevenBitsWithTiesAwayFromZero) {
  EXPECT_EQ(ops::rounded_to_tf32(1.0f), 1.0f);
  EXPECT_EQ(ops::rounded_to_tf32(0x1.001p0f), 1.0f);
  EXPECT_EQ(ops::rounded_to_tf32(0x1.002p0f), 0x1.004p0f);
  EXPECT_EQ(ops::rounded_to_tf32(-0x1.002p0f), -0x1.004p0f);
  EXPECT_EQ(ops::rounded_to_tf32(0x1.001ffep0f), 0x1p0f);
  EXPECT_EQ(ops::rounded_to_tf32(0x1.fff8p3f), 0x1p4f);
  EXPECT_EQ(ops::rounded_to_tf32(0.0f), 0.0f);
  EXPECT_EQ(ops::rounded_to_tf32(-INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(ops::rounded_to_tf32(std::bit_cast<float>(0x7fffffffu))));
  EXPECT_TRUE(std::isnan(ops::rounded_to_tf32(std::bit_cast<float>(0xffffffffu))));
  EXPECT_TRUE(std::isinf(ops::rounded_to_tf32(std::numeric_limits<float>::max())));
}

TEST(Tf32Split, PartsAndTheirThreeProductsAreNearFp32) {
  double largest = 0, largest_of_product = 0;
  float before = 1;
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t bits = mix64(i);
    const float x =
        std::ldexp(static_cast<float>((bits & 0xffffff) | 0x800000), static_cast<int>(bits >> 40 & 31) - 40) *
        (bits >> 60 & 1 ? 1.0f : -1.0f);
    const auto [big, small] = ops::tf32_parts(x);
    for (const float part : {big, small}) ASSERT_EQ(std::bit_cast<uint32_t>(part) & 0x1fffu, 0u) << x;
    largest = std::max(largest, std::abs((double{x} - big - small) / x));
    const auto [big_b, small_b] = ops::tf32_parts(before);
    const double product = double{big} * small_b + double{small} * big_b + double{big} * big_b;
    largest_of_product = std::max(largest_of_product, std::abs(product / (double{x} * before) - 1));
    before = x;
  }
  EXPECT_LE(largest, 0x1p-23);
  EXPECT_LE(largest_of_product, 0x1p-21);
  EXPECT_GT(largest_of_product, 0x1p-24) << "the test has no numbers with many digits";
}

TEST(Tf32Split, IsForProductsThatGainByIt) {
  EXPECT_TRUE(ops::split_product_gains(1024, 1024, 1024));
  EXPECT_TRUE(ops::split_product_gains(1000, 1000, 65536)) << "the gradient of weights";
  EXPECT_FALSE(ops::split_product_gains(16384, 128, 1024)) << "narrow";
  EXPECT_FALSE(ops::split_product_gains(16384, 1024, 16)) << "short sums";
  EXPECT_FALSE(ops::split_product_gains(256, 256, 256)) << "small";
}

/// A matrix of random values in [-1, 1), stored in f64.
struct Numbers {
  int64_t rows, columns;
  std::vector<double> values;
  Numbers(int64_t rows_, int64_t columns_, uint64_t seed) : rows(rows_), columns(columns_) {
    for (int64_t i = 0; i < rows * columns; ++i)
      values.push_back(
          static_cast<double>(static_cast<float>(mix64(seed + static_cast<uint64_t>(i)) >> 40)) / (1 << 23) - 1);
  }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

/// Tensors on one device.
struct DeviceTensors {
  Context ctx;
  std::deque<Buffer> memory{};

  /// Copies `t` or its transpose to the device. `extra`: number of elements added to the row stride. `zeros`: number of
  /// padding rows and of padding columns.
  template <class T>
  Tensor upload(const Numbers& t, bool transposed, int64_t extra, int64_t zeros = 0) {
    const int64_t rows = transposed ? t.columns : t.rows, columns = transposed ? t.rows : t.columns;
    const int64_t stride = columns + std::max(extra, zeros);
    std::vector<T> all(static_cast<size_t>((rows + zeros) * stride), zeros > 0 ? T(0) : T(NAN));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        all[static_cast<size_t>(i * stride + j)] = static_cast<T>(transposed ? t.at(j, i) : t.at(i, j));
    TensorSpec spec(kDTypeOf<T>, {rows, columns}, stride);
    spec.zero_rows = spec.zero_columns = zeros;
    return put(all, spec);
  }
  template <class T>
  Tensor put(const std::vector<T>& all, const TensorSpec& spec) {
    memory.emplace_back(ctx.device(), all.size() * sizeof(T));
    copy_bytes(ctx.stream(), memory.back().data(), all.data(), all.size() * sizeof(T));
    ctx.stream().synchronize();
    return Tensor(memory.back().data(), spec, ctx.device());
  }
  template <class T>
  std::vector<T> fetch(const Tensor& t, int64_t zeros = 0) {
    std::vector<T> all(static_cast<size_t>((t.dim(0) + zeros) * t.row_stride()));
    copy_bytes(ctx.stream(), all.data(), t.bytes(), all.size() * sizeof(T));
    ctx.stream().synchronize();
    return all;
  }
};

/// The f64 result of a GEMM, and for each element the sum of the magnitudes of its terms.
struct Reference {
  std::vector<double> sums, sizes;
  Reference(const Numbers& a, const Numbers& b) {
    Context ctx(runtime_of(kCpu), runtime_of(kCpu).compute_stream());
    Numbers size_a = a, size_b = b;
    for (Numbers* t : {&size_a, &size_b})
      for (double& x : t->values) x = std::abs(x);
    const auto product = [&](const Numbers& left, const Numbers& right) {
      DeviceTensors t{ctx};
      const Tensor c = t.put(std::vector<double>(static_cast<size_t>(a.rows * b.columns)),
                             TensorSpec(DType::f64, {a.rows, b.columns}));
      ops::matmul(ctx, t.upload<double>(left, false, 0), Transpose::no, t.upload<double>(right, false, 0),
                  Transpose::no, c);
      return t.fetch<double>(c);
    };
    sums = product(a, b);
    sizes = product(size_a, size_b);
  }
};

/// The largest error of c, relative to the sum of the terms' magnitudes. With plain TF32 the error would exceed 2^-16.
double error_of(const std::vector<float>& c, int64_t stride, const Reference& expected, int64_t columns) {
  double largest = 0;
  for (size_t i = 0; i < expected.sums.size(); ++i) {
    const auto at = static_cast<int64_t>(i) / columns * stride + static_cast<int64_t>(i) % columns;
    const double error = std::abs(c[static_cast<size_t>(at)] - expected.sums[i]) / expected.sizes[i];
    if (!(error <= largest)) largest = error;  // if `error` is NaN, `largest` becomes NaN
  }
  return largest;
}

constexpr double kTolerance = 0x1p-19;

struct Sizes {
  int64_t m, n, k, extra;
};

TEST(Tf32Split, ProductsOfEveryLayoutAreNearFp64) {
  for (const auto [m, n, k, extra] :
       {Sizes{1024, 768, 1024, 0}, Sizes{1031, 770, 1027, 3}, Sizes{640, 1200, 2050, 4}}) {
    ASSERT_TRUE(ops::split_product_gains(m, n, k));
    const Numbers a(m, k, 1), b(k, n, 1u << 30);
    const Reference expected(a, b);
    Reference plus_one = expected;
    for (double& sum : plus_one.sums) sum += 1;
    for (double& size : plus_one.sizes) size += 1;
    for (const Device device : devices()) {
      Runtime runtime(device, {.threads = 2, .seed = 7, .tf32x3 = true});
      DeviceTensors t{Context(runtime, runtime.compute_stream())};
      for (const Transpose of_a : {Transpose::no, Transpose::yes})
        for (const Transpose of_b : {Transpose::no, Transpose::yes}) {
          SCOPED_TRACE(cat(to_string(device), " ", m, " x ", n, " x ", k, ", transposed: ", of_a == Transpose::yes, " ",
                           of_b == Transpose::yes));
          const Tensor left = t.upload<float>(a, of_a == Transpose::yes, extra),
                       right = t.upload<float>(b, of_b == Transpose::yes, extra);
          const int64_t stride = n + extra;
          const Tensor c =
              t.put(std::vector<float>(static_cast<size_t>(m * stride), NAN), TensorSpec(DType::f32, {m, n}, stride));
          ops::matmul(t.ctx, left, of_a, right, of_b, c);
          EXPECT_LE(error_of(t.fetch<float>(c), stride, expected, n), kTolerance);
          const Tensor ones = t.put(std::vector<float>(static_cast<size_t>(m * n), 1), TensorSpec(DType::f32, {m, n}));
          ops::matmul_plus(t.ctx, left, of_a, right, of_b, ones, c);
          EXPECT_LE(error_of(t.fetch<float>(c), stride, plus_one, n), kTolerance);
          t.memory.clear();
        }
    }
  }
}

TEST(Tf32Split, BiasReluAndZerosBehindWorkAndARecordedProductIsEqual) {
  constexpr int64_t kRows = 900, kIn = 1029, kOut = 1000, kZeros = 3;
  ASSERT_TRUE(ops::split_product_gains(kRows, kOut, kIn));
  const Numbers x(kRows, kIn, 5), w(kIn, kOut, 1u << 29), bias(1, kOut, 77);
  Reference expected(x, w);
  for (size_t i = 0; i < expected.sums.size(); ++i)
    expected.sums[i] = std::max(0.0, expected.sums[i] + bias.values[i % kOut]);
  for (const Device device : devices())
    for (const int64_t zeros : {int64_t{0}, kZeros}) {
      SCOPED_TRACE(cat(to_string(device), ", zeros ", zeros));
      Runtime runtime(device, {.threads = 2, .seed = 7, .tf32x3 = true});
      DeviceTensors t{Context(runtime, runtime.compute_stream())};
      const Tensor in = t.upload<float>(x, false, 0, zeros), weights = t.upload<float>(w, false, 0, zeros);
      const Tensor of_bias = t.upload<float>(bias, false, 0).reshaped({kOut});
      const auto result = [&] {
        return t.put(std::vector<float>(static_cast<size_t>(kRows * kOut), NAN), TensorSpec(DType::f32, {kRows, kOut}));
      };
      const Tensor y = result(), again = result();
      Program recorded(runtime.compute_stream(), true, [&] { ops::linear(t.ctx, in, weights, of_bias, y, true); });
      recorded.run();
      ops::linear(t.ctx, in, weights, of_bias, again, true);
      const auto values = t.fetch<float>(y);
      EXPECT_LE(error_of(values, kOut, expected, kOut), kTolerance);
      EXPECT_EQ(values, t.fetch<float>(again));
    }
}

}  // namespace
}  // namespace hctr::test
