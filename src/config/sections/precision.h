// The precision of a model, from "mixed_precision" of the solver section.
#pragma once

#include <string>

#include "config/values.h"
#include "core/base/dtype.h"

namespace hctr {

/// Activations and their gradients have one floating-point type in the whole network. Weights, their gradients,
/// embedding rows, optimizer states, losses and statistics stay f32; layers read a copy of the weights in the type of
/// activations.
struct Precision {
  DType activations = DType::f32;
  double loss_scale = 1;       ///< factor of the gradients in backward; the first value of a dynamic scale
  bool dynamic_scale = false;  ///< the scale is adjusted so that gradients fit f16
  bool fp8_products = false;   ///< the large GEMMs of training use FP8 operands
  int64_t least_fp8_width = kLeastFp8Width;  ///< minimum rows and columns of a weight whose GEMMs do

  /// Follows from the rates of an H100's data sheet: for narrower GEMMs, rounding and transposing the operands takes as
  /// long as FP8 saves.
  static constexpr int64_t kLeastFp8Width = 2048;

  bool operator==(const Precision&) const = default;
  /// Whether gradients can overflow their type; such steps are skipped.
  bool may_overflow() const { return activations == DType::f16; }
  bool mixed() const { return activations != DType::f32; }
  /// f16 with a dynamic loss scale.
  static constexpr Precision scaled() { return {DType::f16, 65536, true}; }
};

/// A positive number: f16 with that loss scale. true or "fp16": f16 with a dynamic loss scale. "bf16": bf16 without a
/// scale. "fp8": bf16, and large products in FP8. false or "fp32": f32.
std::string read_value(const Json& value, const Range&, Precision& out);
Json to_json(const Precision&);
template <>
struct TypeWord<Precision> {
  static std::string text() { return "number, true or false, \"fp16\", \"bf16\", \"fp8\" or \"fp32\""; }
};

}  // namespace hctr
