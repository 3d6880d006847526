// Inputs of models and of training, as views.
#pragma once

#include <string_view>
#include <vector>

#include "hctr/huge_ctr.h"
#include "hctr/model.h"

namespace hctr::capi {

/// Elements that a sample has; of keys: its slots.
int64_t columns_of(const ModelTensor&);
/// Null: there is none.
const ModelTensor* find(const std::vector<ModelTensor>&, std::string_view name);
/// Errors: Error(usage) for a shape or type that does not fit the tensor of this name.
InputView input_of(const std::vector<ModelTensor>&, const hctr_model_input&, int64_t samples);

}  // namespace hctr::capi
