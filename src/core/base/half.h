// The two-byte floating-point types, usable with and without the CUDA toolkit. For storage only, because arithmetic is
// in float. Like platform.h, this file has #ifs for the device compiler, because GPUs have instructions for the
// conversions.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/base/platform.h"

namespace hctr {

/// IEEE binary16. Conversion from float rounds to nearest even; overflow gives infinity.
struct Half {
  uint16_t bits;
  Half() = default;
  HCTR_HD explicit Half(float value);
  HCTR_HD explicit operator float() const;
};

/// The upper half of an IEEE binary32. Conversion from float rounds to nearest even.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  HCTR_HD explicit BFloat16(float value);
  HCTR_HD explicit operator float() const;
};

HCTR_HD inline BFloat16::BFloat16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
}
HCTR_HD inline BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

HCTR_HD inline Half::Half(float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  // Branch-free: computes all cases and selects one. Loops over this function vectorize.
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  // Subnormal: adding 0.5 aligns the mantissa so that the float addition rounds it as binary16 would.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t rounded = magnitude >= 0x477ff000u ? 0x7c00u : finite;  // 0x7c00: infinity
  bits = static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : rounded));
#endif
}

HCTR_HD inline Half::operator float() const {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // Shifts exponent and mantissa, then multiplies by 2^112 to correct the bias. Exact, also for subnormals.
  const float value = std::bit_cast<float>(magnitude << 13) * std::bit_cast<float>(0x77800000u);
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;  // infinity or NaN
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | special | sign);
#endif
}

/// Rounds two floats to T (Half or BFloat16) and packs them; `low` is in the lower 16 bits.
template <class T>
HCTR_HD inline uint32_t round_two(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t both;
  if constexpr (std::is_same_v<T, BFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return static_cast<uint32_t>(T(low).bits) | static_cast<uint32_t>(T(high).bits) << 16;
#endif
}

}  // namespace hctr
