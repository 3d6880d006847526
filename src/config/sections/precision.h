// The floating-point types of a model, from "mixed_precision" of the solver section.
#pragma once

#include <string>

#include "config/values.h"
#include "core/base/dtype.h"

namespace hctr {

/// All activations and activation gradients of the network have one floating-point type. Weights, wgrads, embedding
/// rows, optimizer states, losses and statistics stay f32. Layers read a copy of the weights in the activation type.
struct Precision {
  DType activations = DType::f32;
  double loss_scale = 1;       ///< factor of the gradients in the backward pass; with dynamic_scale, the first one
  bool dynamic_scale = false;  ///< adjusts loss_scale so that gradients fit f16
  bool fp8_products = false;   ///< the large GEMMs of training use FP8 operands
  int64_t least_fp8_width = kLeastFp8Width;  ///< minimum rows and columns of a weight for FP8 GEMMs

  /// Derived from the throughput in the H100 data sheet. For narrower GEMMs, quantizing and transposing the operands
  /// takes longer than FP8 saves.
  static constexpr int64_t kLeastFp8Width = 2048;

  bool operator==(const Precision&) const = default;
  /// Whether gradients can overflow the activation type. Steps that overflow are skipped.
  bool may_overflow() const { return activations == DType::f16; }
  bool mixed() const { return activations != DType::f32; }
  /// f16 with a dynamic loss scale.
  static constexpr Precision scaled() { return {DType::f16, 65536, true}; }
};

/// Reads "mixed_precision". A positive number: f16 with that loss scale. true or "fp16": f16 with a dynamic loss scale.
/// "bf16": bf16 without a loss scale. "fp8": bf16, with large GEMMs in FP8. false or "fp32": f32.
std::string read_value(const Json& value, const Range&, Precision& out);
Json to_json(const Precision&);
template <>
struct TypeWord<Precision> {
  static std::string text() { return "number, true or false, \"fp16\", \"bf16\", \"fp8\" or \"fp32\""; }
};

}  // namespace hctr
