#include "config/sections/precision.h"

#include <cmath>

namespace hctr {
namespace {

constexpr Precision kF32{}, kBf16{DType::bf16, 1, false}, kFp8{DType::bf16, 1, false, true}, kF16 = Precision::scaled();

}  // namespace

std::string read_value(const Json& value, const Range&, Precision& out) {
  double scale = 0;
  bool wanted = false;
  std::string word;
  if (read_value(value, Range{}, wanted).empty()) {
    out = wanted ? kF16 : kF32;
    return "";
  }
  if (read_value(value, Range{}, word).empty()) {
    for (const auto& [name, meaning] :
         {std::pair("fp16", kF16), std::pair("bf16", kBf16), std::pair("fp8", kFp8), std::pair("fp32", kF32)})
      if (word == name) {
        out = meaning;
        return "";
      }
  } else if (read_value(value, Range{}, scale).empty() && scale > 0 && std::isfinite(static_cast<float>(scale))) {
    out = {DType::f16, scale, false};
    return "";
  }
  return "true or \"fp16\" (dynamic loss scale), a positive loss scale such as 1024, \"bf16\", \"fp8\", or false";
}

Json to_json(const Precision& precision) {
  if (precision.activations == DType::f32) return "fp32";
  if (precision.fp8_products) return "fp8";
  if (precision.activations == DType::bf16) return "bf16";
  return precision.dynamic_scale ? Json("fp16") : Json(precision.loss_scale);
}

}  // namespace hctr
