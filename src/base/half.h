// The two-byte floating-point types, usable with and without the CUDA toolkit. Storage only: arithmetic is in float.
// (With platform.h the only file that asks which compiler is reading: device code has instructions for this.)
#pragma once

#include <bit>
#include <cstdint>

#include "base/platform.h"

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
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u) : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
HCTR_HD inline BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

HCTR_HD inline Half::Half(float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = static_cast<uint16_t>(sign | 0x7e00u);  // NaN
  } else if (magnitude >= 0x477ff000u) {
    bits = static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  } else if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 lines the mantissa up so that the float adder rounds it as binary16 would.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  } else {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
#endif
}

HCTR_HD inline Half::operator float() const {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * (1.0f / 16777216.0f);
  return sign ? -value : value;
#endif
}

}  // namespace hctr
