// Converts inputs of models and of training to views.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hctr/huge_ctr.h"
#include "hctr/model.h"

namespace hctr::capi {

/// Elements per sample; for keys, its slots.
int64_t columns_of(const ModelTensor&);
/// Null: not found.
const ModelTensor* find(const std::vector<ModelTensor>&, std::string_view name);
/// Errors: Error(usage) for a shape or type that does not fit the tensor of this name.
InputView input_of(const std::vector<ModelTensor>&, const hctr_model_input&, int64_t samples);

/// An input with its shapes, for callers.
struct GivenInput {
  InputView view;
  std::array<int64_t, 2> shape;   // of data
  std::array<int64_t, 1> bounds;  // of offsets
  hctr_model_input as_c() const;
};
/// Views of `samples` samples, in the order of the views.
std::vector<GivenInput> given_inputs(const std::vector<ModelTensor>&, std::span<const InputView>, int64_t samples);

}  // namespace hctr::capi
