// The layers of the model that --init suggests, for each template.
#pragma once

#include <cstdint>

#include "config/json.h"

namespace hctr {

enum class InitModel { wide_deep, deepfm, dcn, dlrm, din };

/// The outputs of the Data layer: label, dense [dense], keys [slots] and, for din, history and item.
struct ModelInputs {
  int64_t dense = 0;  ///< dense values
  int64_t slots = 0;  ///< slots of the sparse input "keys"
  /// for din: number of keys kept in the history, which is the first slot of "items"; the second slot has one key
  int64_t history = 0;
  bool rare_keys = false;  ///< whether rare keys get no row
};

/// All layers after the Data layer, including the loss.
Json::Array model_layers(InitModel, const ModelInputs&);
/// The model's name: "Wide & Deep", "DLRM", ...
const char* name_of(InitModel);
/// The argument of --template: "wdl", "dlrm", ...
const char* template_word(InitModel);

}  // namespace hctr
