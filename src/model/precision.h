// The precision of a model: one setting, "mixed_precision" of the solver section.
#pragma once

#include <string>

#include "config/values.h"
#include "device/dtype.h"

namespace hctr {

/// Activations and their gradients have one floating-point type throughout the network; weights, their gradients,
/// embedding rows, optimizer states, losses and statistics stay f32, and layers read a copy of the weights in the type
/// of activations.
struct Precision {
  DType activations = DType::f32;
  double loss_scale = 1;       ///< what gradients are multiplied by on their way back, or start with
  bool dynamic_scale = false;  ///< the scale follows what f16 can hold

  bool operator==(const Precision&) const = default;
  /// Gradients may leave the range of their type; such a step is skipped.
  bool may_overflow() const { return activations == DType::f16; }
  bool mixed() const { return activations != DType::f32; }
  /// The scale that finds itself, for gradients that pass through f16.
  static constexpr Precision scaled() { return {DType::f16, 65536, true}; }
};

/// A positive number: f16 with that loss scale. true or "fp16": f16 with a scale that finds itself. "bf16": bf16,
/// unscaled. false or "fp32": f32.
std::string read_value(const Json& value, const Range&, Precision& out);
Json to_json(const Precision&);
template <>
struct TypeWord<Precision> {
  static std::string text() { return "number, true or false, \"fp16\", \"bf16\" or \"fp32\""; }
};

}  // namespace hctr
