#include "ops/gemm/fp8_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::Fp8Format;
using ops::Fp8Matrix;
using ops::Fp8Scale;
using ops::Fp8Scaling;

TEST(Fp8Scale, IsTheLargestPowerOfTwoThatFits) {
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
    const float largest = format == Fp8Format::e4m3 ? Fp8E4M3::kLargest : Fp8E5M2::kLargest;
    for (uint64_t i = 0; i < 10000; ++i) {
      const auto most = std::bit_cast<float>(static_cast<uint32_t>(0x30000000u + mix64(i) % 0x20000000u));
      const float factor = Fp8Scale::factor_for(format, most);
      int exponent = 0;
      ASSERT_EQ(std::frexp(factor, &exponent), 0.5f);
      ASSERT_LE(factor * most, largest) << most;
      ASSERT_GT(2 * factor * most, largest) << most;
    }
    EXPECT_EQ(Fp8Scale::factor_for(format, largest), 1);
    EXPECT_EQ(Fp8Scale::factor_for(format, 1e-45f), 0x1p60f);
    EXPECT_EQ(Fp8Scale::factor_for(format, 1e38f), 0x1p-60f);
  }
}

TEST(Fp8Scale, RemembersSixteenStepsAndOnlyThoseWithANumber) {
  Fp8Scale scale{.inverse = 0.125f, .factor = 8};
  scale.finish(0);
  EXPECT_EQ(scale.factor, 8) << "a tensor of zeros says nothing";
  scale.finish(448);
  EXPECT_EQ(scale.factor, 1);
  for (int i = 0; i < 15; ++i) scale.finish(1);
  EXPECT_EQ(scale.factor, 1);
  for (const float bad : {INFINITY, NAN}) scale.finish(bad);
  EXPECT_EQ(scale.factor, 1) << "a step without a number does not count";
  scale.finish(1);
  EXPECT_EQ(scale.factor, 256);
  EXPECT_EQ(scale.inverse, 1 / 256.0f);
}

/// Device memory for operands, results and scales.
struct Fp8Rig {
  explicit Fp8Rig(Device device) : ctx(runtime_of(device), runtime_of(device).compute_stream()) {}

  std::byte* put(const void* from, size_t bytes) {
    memory.emplace_back(ctx.device(), bytes);
    copy_bytes(ctx.stream(), memory.back().data(), from, bytes);
    ctx.stream().synchronize();
    return memory.back().data();
  }
  template <class T>
  std::vector<T> fetch(const void* from, int64_t count) {
    std::vector<T> all(static_cast<size_t>(count));
    copy_bytes(ctx.stream(), all.data(), from, all.size() * sizeof(T));
    ctx.stream().synchronize();
    return all;
  }
  /// A matrix with these values and `extra` padding columns of NaN.
  template <class T>
  Tensor matrix(const std::vector<float>& numbers, int64_t rows, int64_t columns, int64_t extra = 0) {
    std::vector<T> all(static_cast<size_t>(rows * (columns + extra)), T(NAN));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        all[static_cast<size_t>(i * (columns + extra) + j)] = T(numbers[static_cast<size_t>(i * columns + j)]);
    return Tensor(put(all.data(), all.size() * sizeof(T)), TensorSpec(kDTypeOf<T>, {rows, columns}, columns + extra),
                  ctx.device());
  }
  Fp8Scaling scaling(Fp8Format format, float factor) {
    const Fp8Scale scale{.inverse = 1 / factor, .factor = factor, .format = format};
    const float amax = 0;
    return {reinterpret_cast<const Fp8Scale*>(put(&scale, sizeof scale)),
            reinterpret_cast<float*>(put(&amax, sizeof amax)), format};
  }
  /// Memory for FP8 codes, filled with the byte 0x55.
  std::byte* codes(int64_t rows, int64_t columns) {
    const std::vector<std::byte> ones(static_cast<size_t>(Fp8Matrix::bytes(rows, columns)), std::byte{0x55});
    return put(ones.data(), ones.size());
  }

  Context ctx;
  std::deque<Buffer> memory;
};

/// Whether the device supports FP8 GEMMs. GPUs with a compute capability below 8.9 do not.
bool has_fp8(Device device) {
  Context ctx(runtime_of(device), runtime_of(device).compute_stream());
  try {
    ops::expect_fp8(ctx);
    return true;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("use \"bf16\" on this GPU"), std::string::npos) << error.what();
    return false;
  }
}

uint8_t code_of(Fp8Format format, float x) { return format == Fp8Format::e4m3 ? Fp8E4M3(x).bits : Fp8E5M2(x).bits; }
float number_of(Fp8Format format, uint8_t code) {
  Fp8E4M3 a;
  Fp8E5M2 b;
  a.bits = b.bits = code;
  return format == Fp8Format::e4m3 ? static_cast<float>(a) : static_cast<float>(b);
}

/// Random values within a few orders of magnitude of 1.
std::vector<float> random_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = mix64(seed + static_cast<uint64_t>(i));
    numbers.push_back(std::ldexp(symmetric_float(static_cast<uint32_t>(bits), 1), static_cast<int>(bits >> 60) - 8));
  }
  return numbers;
}

template <class T>
void expect_cast(Device device, Fp8Format format, int64_t rows, int64_t columns, int64_t extra) {
  SCOPED_TRACE(cat(to_string(device), " ", name_of(kDTypeOf<T>), " ", rows, " x ", columns, " + ", extra));
  Fp8Rig rig(device);
  const std::vector<float> numbers = random_numbers(rows * columns, 3);
  const Tensor x = rig.matrix<T>(numbers, rows, columns, extra);
  const Fp8Scaling scaling = rig.scaling(format, 32);
  std::byte *const plain = rig.codes(rows, columns), *const transposed = rig.codes(columns, rows);
  ops::fp8_cast(rig.ctx, x, false, scaling, plain, transposed);
  const int64_t bytes = Fp8Matrix::bytes(rows, columns), high = ops::fp8_padded(rows), wide = ops::fp8_padded(columns);
  const auto by_row = rig.fetch<uint8_t>(plain, bytes), by_column = rig.fetch<uint8_t>(transposed, bytes);
  float most = 0;
  for (int64_t i = 0; i < high; ++i)
    for (int64_t j = 0; j < wide; ++j) {
      const bool inside = i < rows && j < columns;
      const auto number = inside ? static_cast<float>(T(numbers[static_cast<size_t>(i * columns + j)])) : 0.0f;
      ASSERT_EQ(by_row[static_cast<size_t>(i * wide + j)], inside ? code_of(format, 32 * number) : 0) << i << "," << j;
      ASSERT_EQ(by_column[static_cast<size_t>(j * high + i)], by_row[static_cast<size_t>(i * wide + j)]);
      most = std::max(most, std::abs(number));
    }
  EXPECT_EQ(rig.fetch<float>(scaling.amax, 1)[0], most);
  // Writes only one of the two layouts, and casts a smaller tensor after a larger one.
  std::byte* const alone = rig.codes(columns, rows);
  ops::fp8_cast(rig.ctx, x.row_range(0, 1), false, scaling, rig.codes(1, columns), nullptr);
  ops::fp8_cast(rig.ctx, x, false, scaling, nullptr, alone);
  EXPECT_EQ(rig.fetch<uint8_t>(alone, bytes), by_column);
  EXPECT_EQ(rig.fetch<float>(scaling.amax, 1)[0], most);
}

TEST(Fp8Cast, RoundsScalesTransposesAndPadsWithZeros) {
  for (const Device device : devices())
    for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
      expect_cast<BFloat16>(device, format, 256, 272, 0);
      expect_cast<BFloat16>(device, format, 131, 429, 3);
      expect_cast<BFloat16>(device, format, 7, 5, 0);
      expect_cast<float>(device, format, 130, 144, 4);
      expect_cast<Half>(device, format, 33, 129, 1);
    }
}

/// Tests f32 values whose upper half is any 16-bit pattern and whose lower half is near a boundary. The device
/// conversion must equal core/base/fp8.h.
TEST(Fp8Cast, IsTheSameOnEveryDevice) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper < 65536; ++upper)
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0xffffu})
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
  constexpr int64_t kColumns = 1024;
  const auto rows = static_cast<int64_t>(numbers.size()) / kColumns;
  for (const Device device : devices())
    for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
      Fp8Rig rig(device);
      std::byte* const codes = rig.codes(rows, kColumns);
      ops::fp8_cast(rig.ctx, rig.matrix<float>(numbers, rows, kColumns), false, rig.scaling(format, 1), codes, nullptr);
      const auto got = rig.fetch<uint8_t>(codes, rows * kColumns);
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_EQ(got[i], code_of(format, numbers[i])) << numbers[i] << " on " << to_string(device);
    }
}

TEST(Fp8Cast, TheLargestMagnitudeIsOfSamplesAlone) {
  for (const Device device : devices()) {
    Fp8Rig rig(device);
    std::vector<float> numbers(64 * 32, 0.5f);
    numbers[5] = -3;
    numbers[40 * 32] = 1e6;
    const StepState host{.valid_samples = 40, .samples = 64};
    auto* const state = reinterpret_cast<const StepState*>(rig.put(&host, sizeof host));
    Context ctx(runtime_of(device), runtime_of(device).compute_stream(), state);
    const Fp8Scaling of_samples = rig.scaling(Fp8Format::e4m3, 1), of_all = rig.scaling(Fp8Format::e4m3, 1);
    const Tensor x = rig.matrix<BFloat16>(numbers, 64, 32);
    ops::fp8_cast(ctx, x, true, of_samples, rig.codes(64, 32), nullptr);
    ops::fp8_cast(ctx, x, false, of_all, rig.codes(64, 32), nullptr);
    EXPECT_EQ(rig.fetch<float>(of_samples.amax, 1)[0], 3) << to_string(device);
    EXPECT_EQ(rig.fetch<float>(of_all.amax, 1)[0], static_cast<float>(BFloat16(1e6f))) << to_string(device);
  }
}

TEST(Fp8Cast, ANumberThatIsNoneStaysVisible) {
  for (const Device device : devices())
    for (const float bad : has_fp8(device) ? std::vector<float>{INFINITY, -INFINITY, NAN} : std::vector<float>()) {
      Fp8Rig rig(device);
      std::vector<float> numbers(16 * 16, 1.0f);
      numbers[100] = bad;
      const Fp8Scaling scaling = rig.scaling(Fp8Format::e5m2, 1), weights = rig.scaling(Fp8Format::e4m3, 1);
      const Tensor x = rig.matrix<BFloat16>(numbers, 16, 16), w = rig.matrix<BFloat16>(random_numbers(256, 1), 16, 16);
      std::byte *const of_x = rig.codes(16, 16), *const of_w = rig.codes(16, 16);
      ops::fp8_cast(rig.ctx, x, false, scaling, of_x, nullptr);
      ops::fp8_cast(rig.ctx, w, false, weights, of_w, nullptr);
      EXPECT_FALSE(rig.fetch<float>(scaling.amax, 1)[0] <= std::numeric_limits<float>::max());
      const Tensor c = rig.matrix<float>(numbers, 16, 16);
      ops::fp8_product(rig.ctx, ops::fp8_rows(x, scaling, of_x), ops::fp8_rows(w, weights, of_w), {}, false, c);
      const auto sums = rig.fetch<float>(c.bytes(), 256);
      for (size_t i = 0; i < 256; ++i) EXPECT_EQ(std::isnan(sums[i]), i / 16 == 6) << i << " " << to_string(device);
    }
}

TEST(Fp8CastGradient, IsThatOfTheSumBehindReluAndSumsItsColumns) {
  for (const Device device : devices())
    for (const bool relu : {false, true})
      for (const auto& [rows, columns, extra] :
           {std::tuple(300, 144, 0), std::tuple(131, 29, 3), std::tuple(5, 260, 1)}) {
        SCOPED_TRACE(cat(to_string(device), " ", rows, " x ", columns, ", relu ", relu));
        Fp8Rig rig(device);
        const int64_t m = rows, n = columns, bytes = Fp8Matrix::bytes(m, n);
        const std::vector<float> d_y = random_numbers(m * n, 5), y = random_numbers(m * n, 1 << 28);
        constexpr float kKeptFactor = 1.25f;
        const Fp8Scaling scaling = rig.scaling(Fp8Format::e5m2, 64);
        const Tensor gradient = rig.matrix<BFloat16>(d_y, m, n, extra);
        const TensorSpec scratch = ops::fp8_gradient_scratch(gradient.spec());
        const std::vector<float> nothing(static_cast<size_t>(scratch.shape.elements()), NAN);
        const Tensor d_bias(rig.put(nothing.data(), static_cast<size_t>(n) * sizeof(float)),
                            TensorSpec(DType::f32, {n}), device);
        ops::Fp8GradientEnd end{.d_bias = d_bias,
                                .scratch = Tensor(rig.put(nothing.data(), scratch.bytes()), scratch, device)};
        if (relu) end.y = rig.matrix<BFloat16>(y, m, n, extra);
        if (relu) end.factor = kKeptFactor;
        std::byte *const plain = rig.codes(m, n), *const transposed = rig.codes(n, m);
        const auto run = [&] { ops::fp8_cast_gradient(rig.ctx, gradient, end, scaling, plain, transposed); };
        run();
        const auto by_row = rig.fetch<uint8_t>(plain, bytes), by_column = rig.fetch<uint8_t>(transposed, bytes);
        const auto sums = rig.fetch<float>(d_bias.bytes(), n);
        Program(rig.ctx.stream(), true, run).run();
        EXPECT_EQ(rig.fetch<float>(d_bias.bytes(), n), sums) << "a recorded run is another";
        const int64_t high = ops::fp8_padded(m), wide = ops::fp8_padded(n);
        float most = 0;
        std::vector<double> expected(static_cast<size_t>(n)), sizes(static_cast<size_t>(n));
        for (int64_t i = 0; i < high; ++i)
          for (int64_t j = 0; j < wide; ++j) {
            float z = 0;
            if (i < m && j < n) {
              const auto at = static_cast<size_t>(i * n + j);
              z = static_cast<float>(BFloat16(d_y[at]));
              if (relu) z = static_cast<float>(BFloat16(y[at])) > 0 ? kKeptFactor * z : 0;
              expected[static_cast<size_t>(j)] += z;
              sizes[static_cast<size_t>(j)] += std::abs(z);
            }
            most = std::max(most, std::abs(z));
            const auto code = code_of(Fp8Format::e5m2, 64 * z) & (z == 0 ? 0x7f : 0xff);  // ignores the sign of zero
            ASSERT_EQ(by_row[static_cast<size_t>(i * wide + j)] & (z == 0 ? 0x7f : 0xff), code) << i << "," << j;
            ASSERT_EQ(by_column[static_cast<size_t>(j * high + i)], by_row[static_cast<size_t>(i * wide + j)]);
          }
        EXPECT_EQ(rig.fetch<float>(scaling.amax, 1)[0], most);
        for (size_t j = 0; j < static_cast<size_t>(n); ++j) EXPECT_NEAR(sums[j], expected[j], 1e-5 * sizes[j]) << j;
      }
}

TEST(Fp8Scales, FinishTheStepUnlessItIsSkipped) {
  for (const Device device : devices())
    for (const int skip : {0, 1}) {
      Fp8Rig rig(device);
      const StepState host{.skip = skip};
      auto* const state = reinterpret_cast<const StepState*>(rig.put(&host, sizeof host));
      Context ctx(runtime_of(device), runtime_of(device).compute_stream(), state);
      const std::vector<float> amax = {1, 0, NAN};
      std::vector<Fp8Scale> scales(3, Fp8Scale{.inverse = 0.25f, .factor = 4, .format = Fp8Format::e5m2});
      const Tensor most(rig.put(amax.data(), 3 * sizeof(float)), TensorSpec(DType::f32, {3}), device);
      auto* const on_device = reinterpret_cast<Fp8Scale*>(rig.put(scales.data(), 3 * sizeof(Fp8Scale)));
      ops::finish_fp8_scales(ctx, most, on_device);
      if (!skip)
        for (size_t i = 0; i < 3; ++i) scales[i].finish(amax[i]);
      const auto got = rig.fetch<Fp8Scale>(on_device, 3);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(got[i].factor, scales[i].factor) << to_string(device) << skip;
        EXPECT_EQ(got[i].inverse, scales[i].inverse);
        EXPECT_TRUE(std::equal(std::begin(got[i].largest), std::end(got[i].largest), scales[i].largest));
      }
      EXPECT_EQ(rig.fetch<float>(most.bytes(), 3), std::vector<float>(3)) << to_string(device);
    }
}

struct ProductSizes {
  int64_t m, n, k, zeros;  // `zeros`: number of padding columns and of padding rows of the result
};

/// Compares GEMMs of tensors rounded to FP8 with f64 sums of the rounded values. f32 sums have an error of 2^-24 per
/// term. In hardware, partial sums of up to 128 products have fewer digits than f32; the partial sums are then added in
/// f32.
void expect_product(Device device, Fp8Format left, Fp8Format right, const ProductSizes& size, DType result, bool bias,
                    bool relu) {
  SCOPED_TRACE(cat(to_string(device), " ", size.m, " x ", size.n, " x ", size.k, " bias ", bias, " relu ", relu));
  Fp8Rig rig(device);
  const auto [m, n, k, zeros] = size;
  const std::vector<float> a = random_numbers(m * k, 1), b = random_numbers(n * k, 1 << 30),
                           add = random_numbers(n, 1 << 29);
  const Fp8Scaling of_a = rig.scaling(left, 16), of_b = rig.scaling(right, 0.5f);
  const Tensor x = rig.matrix<BFloat16>(a, m, k), w = rig.matrix<BFloat16>(b, n, k);
  std::byte *const codes_a = rig.codes(m, k), *const codes_b = rig.codes(n, k);
  ops::fp8_cast(rig.ctx, x, false, of_a, codes_a, nullptr);
  ops::fp8_cast(rig.ctx, w, false, of_b, codes_b, nullptr);
  const std::vector<float> nothing(static_cast<size_t>((m + zeros) * (n + zeros)), 0.0f);
  const Tensor memory = result == DType::f32 ? rig.matrix<float>(nothing, m + zeros, n + zeros)
                                             : rig.matrix<BFloat16>(nothing, m + zeros, n + zeros);
  TensorSpec spec(result, {m, n}, n + zeros);
  spec.zero_columns = spec.zero_rows = zeros;
  const Tensor c(memory.bytes(), spec, device);
  const auto of_bias = bias ? std::optional(rig.matrix<BFloat16>(add, 1, n).reshaped({n})) : std::nullopt;
  const auto run = [&] {
    ops::fp8_product(rig.ctx, ops::fp8_rows(x, of_a, codes_a), ops::fp8_rows(w, of_b, codes_b), of_bias, relu, c);
  };
  const auto values = [&] {
    if (result == DType::f32) return rig.fetch<float>(c.bytes(), memory.elements());
    std::vector<float> wide;
    for (const BFloat16 value : rig.fetch<BFloat16>(c.bytes(), memory.elements()))
      wide.push_back(static_cast<float>(value));
    return wide;
  };
  run();
  const std::vector<float> once = values();
  Program recorded(rig.ctx.stream(), true, run);
  recorded.run();
  EXPECT_EQ(values(), once) << "a recorded product is another";
  const auto numbers = [](const std::vector<float>& from, Fp8Format format, float factor) {
    std::vector<double> rounded;
    for (const float number : from)
      rounded.push_back(number_of(format, code_of(format, factor * static_cast<float>(BFloat16(number)))) / factor);
    return rounded;
  };
  const std::vector<double> rounded_a = numbers(a, left, 16), rounded_b = numbers(b, right, 0.5f);
  for (int64_t i = 0; i < m + zeros; ++i)
    for (int64_t j = 0; j < n + zeros; ++j) {
      const double got = once[static_cast<size_t>(i * (n + zeros) + j)];
      if (i >= m || j >= n) {
        ASSERT_EQ(got, 0) << i << "," << j;
        continue;
      }
      double sum = bias ? static_cast<float>(BFloat16(add[static_cast<size_t>(j)])) : 0, sizes = std::abs(sum);
      for (int64_t d = 0; d < k; ++d) {
        const double term = rounded_a[static_cast<size_t>(i * k + d)] * rounded_b[static_cast<size_t>(j * k + d)];
        sum += term;
        sizes += std::abs(term);
      }
      if (relu) sum = std::max(sum, 0.0);
      // Hopper tensor cores keep about 13 bits relative to the largest term when adding FP8 terms, and truncate the
      // rest. Over about a hundred terms, several of the lowest bits are lost in one direction.
      const double of_sum = device.is_cuda() ? 0x1p-10 : 0x1p-24 * static_cast<double>(k + 1),
                   of_result = result == DType::f32 ? 0 : 0x1p-8;
      ASSERT_NEAR(got, sum, of_sum * sizes + 1.01 * of_result * std::abs(sum)) << i << "," << j;
    }
}

TEST(Fp8Product, IsThatOfTheRoundedNumbers) {
  constexpr auto kE4M3 = Fp8Format::e4m3, kE5M2 = Fp8Format::e5m2;
  for (const Device device : devices()) {
    if (!has_fp8(device)) continue;
    for (const bool relu : {false, true}) {
      expect_product(device, kE4M3, kE4M3, {128, 64, 256, 0}, DType::bf16, true, relu);
      expect_product(device, kE4M3, kE4M3, {50, 32, 429, 0}, DType::bf16, true, relu);
    }
    expect_product(device, kE4M3, kE4M3, {64, 48, 100, 0}, DType::bf16, false, false);
    expect_product(device, kE5M2, kE4M3, {100, 93, 64, 3}, DType::bf16, false, false);
    expect_product(device, kE4M3, kE5M2, {45, 64, 130, 0}, DType::f32, false, false);
    expect_product(device, kE4M3, kE5M2, {45, 61, 144, 3}, DType::f32, false, false);
    expect_product(device, kE4M3, kE5M2, {1, 16, 1, 0}, DType::f32, false, false);
  }
}

}  // namespace
}  // namespace hctr::test
