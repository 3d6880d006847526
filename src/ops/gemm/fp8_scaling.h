// Delayed scaling of FP8 GEMM operands: the factor of a step comes from the largest magnitudes of earlier steps. A cast
// therefore reads its tensor only once. Source: P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022, section
// 3.
#pragma once

#include <bit>

#include "core/base/fp8.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Activations and weights are e4m3, gradients e5m2.
enum class Fp8Format : int32_t { e4m3, e5m2 };

/// The exponent of the format's largest value; the value is 1.75 * 2^exponent in both formats.
HCTR_HD constexpr int largest_exponent(Fp8Format format) {
  return format == Fp8Format::e4m3 ? Fp8E4M3::kLargestExponent : Fp8E5M2::kLargestExponent;
}

/// The scale factor of one tensor, and the magnitudes that determine the factor. On the device; checkpoints contain
/// this struct unchanged.
struct alignas(16) Fp8Scale {
  static constexpr int kSteps = 16;

  float inverse = 1;  ///< 1 / factor; cuBLASLt requires 16-byte alignment
  float factor = 1;   ///< a power of two, which adds no rounding error; code = rounded(factor * value)
  Fp8Format format = Fp8Format::e4m3;
  int32_t padding = 0;
  float largest[kSteps] = {};  ///< largest magnitude of each of the last kSteps steps, newest last; 0: no step yet

  /// The largest power of two in [2^-60, 2^60] with which a value of magnitude `most` still fits the format. `most`
  /// must be positive and finite.
  HCTR_HD static float factor_for(Fp8Format format, float most) {
    const auto bits = std::bit_cast<uint32_t>(most);
    int exponent = largest_exponent(format) + 127 - static_cast<int>(bits >> 23) - ((bits & 0x7fffffu) > 0x600000u);
    exponent = exponent < -60 ? -60 : exponent > 60 ? 60 : exponent;
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }

  /// Records the largest magnitude of a step and updates the factor. Ignores infinite and NaN magnitudes.
  HCTR_HD void finish(float amax) {
    if (!(amax <= 3.402823466e38f)) return;
    float most = amax;
    for (int i = 0; i + 1 < kSteps; ++i) {
      largest[i] = largest[i + 1];
      most = largest[i] > most ? largest[i] : most;
    }
    largest[kSteps - 1] = amax;
    if (most == 0) return;
    factor = factor_for(format, most);
    inverse = 1 / factor;
  }
};

/// The scale and the amax of one tensor's cast to FP8, on the tensor's device.
struct Fp8Scaling {
  const Fp8Scale* scale;
  float* amax;  ///< raised to the tensor's largest magnitude in this step; NaN counts as the largest
  Fp8Format format;
};

/// The FP8 operands of the three GEMMs of y = x W.
struct Fp8ProductScaling {
  Fp8Scaling x, w, d_y;
};

/// Ends a step: records amax[i] in scales[i] unless the step is skipped, and resets amax[i] to 0. Shapes: amax [n],
/// f32, dense; n scales.
HCTR_OP(void finish_fp8_scales(Context&, Tensor amax, Fp8Scale* scales))

}  // namespace hctr::ops
