// Copies the encoding saved with a model into a config.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Returns the config with a saved config's encoding. Fields about the layout of a file stay unchanged.
Json with_encoding_of(const Json& saved, const Json& config);

struct CompletedConfig {
  Json config;
  std::string taken{};  ///< the copied fields, separated by commas
};
/// Fills the encoding fields that the config's Data layer omits from the saved config: from sections of the same format
/// or, if the layer names only its data, all encoding fields.
CompletedConfig with_left_out_encoding_of(const Json& saved, const Json& config);

}  // namespace hctr
