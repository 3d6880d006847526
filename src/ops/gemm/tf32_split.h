// An f32 value as the sum of two TF32 values, with which tensor cores compute GEMMs of f32 matrices (TF32x3): a b =
// big_a small_b + small_a big_b + big_a big_b, where big = tf32(x) and small = tf32(x - big). big + small differs from
// x by at most 2^-23 |x|. The term small_a small_b, at most 2^-22 |a b|, is omitted. The error of a product is
// therefore at most 2^-21 |a b|. Tensor cores accumulate in f32. Source: H. Ootomo and R. Yokota, "Recovering single
// precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", IJHPCA 2022, section 3.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/platform.h"

namespace hctr::ops {

/// Rounds to 11 significant bits, ties away from zero, like the instruction cvt.rna.tf32.f32. Infinity and NaN are
/// unchanged; values within a factor 1 - 2^-12 of the largest f32 become infinity.
HCTR_HD inline float rounded_to_tf32(float x) {
  constexpr uint32_t kHalf = 0x1000, kKept = 0xffffe000;
  if (x != x) return x;  // a NaN: the addition below would carry into the sign bit
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + kHalf) & kKept);
}

struct Tf32Parts {
  float big, small;
};
/// Splits x into two TF32 values. For an infinite x, `small` is NaN, and so is every sum that includes it.
HCTR_HD inline Tf32Parts tf32_parts(float x) {
  const float big = rounded_to_tf32(x);
  return {big, rounded_to_tf32(x - big)};
}

/// Whether the GEMM of [m, k] and [k, n] is faster with split operands. If m or n is only a few hundred, writing and
/// reading the parts costs more than tensor cores save. The rates were measured on an H100; the ratios of the rates are
/// similar on other data center GPUs. The result depends on the shape only, so that all ranks and runs compute equally.
inline bool split_product_gains(int64_t m, int64_t n, int64_t k) {
  constexpr double kFp32 = 48e12, kTf32 = 350e12, kMemory = 2.4e12, kLaunches = 4e-6;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n), depth = static_cast<double>(k);
  const double operations = 2 * rows * columns * depth;
  const double bytes = 12 * depth * (rows + columns) + 8 * rows * columns;
  return 3 * operations / kTf32 + bytes / kMemory + kLaunches < operations / kFp32;
}

}  // namespace hctr::ops
