// Converts inputs of models and training between the C structs and InputView.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hctr/huge_ctr.h"
#include "hctr/model.h"

namespace hctr::capi {

/// Elements per sample; for keys: slots per sample.
int64_t columns_of(const ModelTensor&);
/// The tensor of this name; null: not found.
const ModelTensor* find(const std::vector<ModelTensor>&, std::string_view name);
/// Converts an input to a view. Errors: Error(usage) for a shape or type that does not match the tensor of this name.
InputView input_of(const std::vector<ModelTensor>&, const hctr_model_input&, int64_t samples);

/// The C struct of an input, and the shapes that the struct points to.
struct GivenInput {
  InputView view;
  std::array<int64_t, 2> shape;   // shape of data
  std::array<int64_t, 1> bounds;  // shape of offsets
  hctr_model_input as_c() const;
};
/// Converts views of `samples` samples to C structs, in the order of the views.
std::vector<GivenInput> given_inputs(const std::vector<ModelTensor>&, std::span<const InputView>, int64_t samples);

}  // namespace hctr::capi
