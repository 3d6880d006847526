// The eight-bit floating-point types, usable with and without the CUDA toolkit. For storage only, because arithmetic is
// in float. Source: P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022, table 1. Like half.h, this file has
// an #if for the device compiler, because GPUs have instructions for the conversions.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/platform.h"

namespace hctr {

/// Encodes a float with kExponent exponent bits and kMantissa mantissa bits, rounding to nearest even. Finite values
/// above the largest code `most` saturate to `most`. Infinities and NaN become the single code 0x7f, so a GEMM with
/// such an input yields NaN.
template <int kExponent, int kMantissa>
HCTR_HD inline uint8_t fp8_bits(float value, uint32_t most) {
  constexpr int kShift = 23 - kMantissa, kBias = (1 << (kExponent - 1)) - 1;
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 24) & 0x80u, magnitude = u & 0x7fffffffu;
  // Branch-free: computes all cases and selects one. Loops over this function vectorize.
  const uint32_t normal = (magnitude + (1u << (kShift - 1)) - 1u + ((magnitude >> kShift) & 1u) -
                           (static_cast<uint32_t>(127 - kBias) << 23)) >>
                          kShift;
  // Subnormal: kOneStep is the float whose last mantissa bit equals one fp8 step. Adding kOneStep makes the float
  // addition round to whole steps.
  constexpr auto kOneStep = static_cast<uint32_t>(127 + 23 + 1 - kBias - kMantissa) << 23;
  const uint32_t small =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kOneStep)) - kOneStep;
  const uint32_t finite = magnitude < static_cast<uint32_t>(128 - kBias) << 23 ? small : normal;
  const uint32_t code = sign | (finite < most ? finite : most);
  return static_cast<uint8_t>(magnitude >= 0x7f800000u ? 0x7fu : code);
}

/// Decodes the magnitude of a code whose sign bit is cleared. The code must be finite.
template <int kExponent, int kMantissa>
HCTR_HD inline float fp8_magnitude(uint32_t code) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  // Shifts exponent and mantissa, then multiplies by the power of two that corrects the bias. Exact, also for
  // subnormals.
  return std::bit_cast<float>(code << (23 - kMantissa)) *
         std::bit_cast<float>(static_cast<uint32_t>(127 + 127 - kBias) << 23);
}

/// Four exponent bits, three mantissa bits: for weights and activations. Has no infinity. The code 0x7f is NaN.
struct Fp8E4M3 {
  static constexpr float kLargest = 448;
  static constexpr int kLargestExponent = 8;
  uint8_t bits;
  Fp8E4M3() = default;
  HCTR_HD explicit Fp8E4M3(float value);
  HCTR_HD explicit operator float() const;
};

/// Five exponent bits, two mantissa bits: for gradients. Has infinities and NaN, as binary16 does.
struct Fp8E5M2 {
  static constexpr float kLargest = 57344;
  static constexpr int kLargestExponent = 15;
  uint8_t bits;
  Fp8E5M2() = default;
  HCTR_HD explicit Fp8E5M2(float value);
  HCTR_HD explicit operator float() const;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
HCTR_HD inline Fp8E4M3::Fp8E4M3(float value) {
  uint16_t two;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(value));
  bits = static_cast<uint8_t>((std::bit_cast<uint32_t>(value) & 0x7fffffffu) >= 0x7f800000u ? 0x7fu : two & 0xffu);
}
HCTR_HD inline Fp8E5M2::Fp8E5M2(float value) {
  uint16_t two;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(value));
  bits = static_cast<uint8_t>((std::bit_cast<uint32_t>(value) & 0x7fffffffu) >= 0x7f800000u ? 0x7fu : two & 0xffu);
}
#else
HCTR_HD inline Fp8E4M3::Fp8E4M3(float value) : bits(fp8_bits<4, 3>(value, 0x7e)) {}
HCTR_HD inline Fp8E5M2::Fp8E5M2(float value) : bits(fp8_bits<5, 2>(value, 0x7b)) {}
#endif

HCTR_HD inline Fp8E4M3::operator float() const {
  const uint32_t code = bits & 0x7fu, sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = code == 0x7fu ? 0x7fc00000u : std::bit_cast<uint32_t>(fp8_magnitude<4, 3>(code));
  return std::bit_cast<float>(magnitude | sign);
}
HCTR_HD inline Fp8E5M2::operator float() const {
  const uint32_t code = bits & 0x7fu, sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t special = code > 0x7cu ? 0x7fc00000u : code == 0x7cu ? 0x7f800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(fp8_magnitude<5, 2>(code)) | special | sign);
}

}  // namespace hctr
