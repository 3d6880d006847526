// Delayed scaling of FP8 operands of GEMMs: the factor of a step comes from the largest magnitudes of the steps before,
// so that a tensor is read once. Source: P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022, section 3.
#pragma once

#include <bit>

#include "core/base/fp8.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Activations and weights are e4m3, gradients e5m2.
enum class Fp8Format : int32_t { e4m3, e5m2 };

/// The exponent of the largest number of a format, which is 1.75 times a power of two in both.
HCTR_HD constexpr int largest_exponent(Fp8Format format) {
  return format == Fp8Format::e4m3 ? Fp8E4M3::kLargestExponent : Fp8E5M2::kLargestExponent;
}

/// The factor of one tensor and the magnitudes that it comes from. On the device, and in checkpoints as it is.
struct alignas(16) Fp8Scale {
  static constexpr int kSteps = 16;

  float inverse = 1;  ///< 1 / factor. Read by cuBLASLt, from a multiple of 16 bytes
  float factor = 1;   ///< a power of two, so that it rounds nothing; code = rounded(factor * number)
  Fp8Format format = Fp8Format::e4m3;
  int32_t padding = 0;
  float largest[kSteps] = {};  ///< the largest magnitude of each of the last steps, the newest last; 0: no step yet

  /// The largest power of two, from 2^-60 to 2^60, by which a number of this magnitude still fits the format.
  /// `most` > 0, finite.
  HCTR_HD static float factor_for(Fp8Format format, float most) {
    const auto bits = std::bit_cast<uint32_t>(most);
    int exponent = largest_exponent(format) + 127 - static_cast<int>(bits >> 23) - ((bits & 0x7fffffu) > 0x600000u);
    exponent = exponent < -60 ? -60 : exponent > 60 ? 60 : exponent;
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }

  /// Records the largest magnitude of a step at its end. Infinite or NaN magnitudes are ignored.
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

/// How one tensor becomes FP8, on the device of the tensor.
struct Fp8Scaling {
  const Fp8Scale* scale;
  float* amax;  ///< raised to the largest magnitude of the tensor in this step; NaN counts as the largest
  Fp8Format format;
};

/// The tensors of y = x W that its three GEMMs read in FP8.
struct Fp8ProductScaling {
  Fp8Scaling x, w, d_y;
};

/// At the end of a step: moves amax[i] into scales[i], unless the step is skipped, and sets it to 0. Shapes: amax [n],
/// f32, dense; n scales.
HCTR_OP(void finish_fp8_scales(Context&, Tensor amax, Fp8Scale* scales))

}  // namespace hctr::ops
