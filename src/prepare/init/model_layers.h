// The layers of a first model for a table, by template.
#pragma once

#include <cstdint>

#include "config/json.h"

namespace hctr {

enum class InitModel { wide_deep, deepfm, dcn, dlrm, din };

/// The Data layer's outputs: label, dense [dense], keys [slots], and for din history and item.
struct ModelInputs {
  int64_t dense = 0;       ///< dense values
  int64_t slots = 0;       ///< slots of the sparse input "keys"
  int64_t history = 0;     ///< din: keys that are kept of the list, the first slot of "items"; the second has one
  bool rare_keys = false;  ///< rare keys get no row
};

/// The layers after the Data layer, up to the loss.
Json::Array model_layers(InitModel, const ModelInputs&);
/// "Wide & Deep", "DLRM", ...
const char* name_of(InitModel);
/// The word of --template: "wdl", "dlrm", ...
const char* template_word(InitModel);

}  // namespace hctr
