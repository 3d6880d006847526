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
/// Copies from the saved config the encoding fields that the config's Data layer omits. If the Data layer has no
/// encoding field at all, also copies the format. Otherwise copies nothing unless both configs have the same format.
CompletedConfig with_left_out_encoding_of(const Json& saved, const Json& config);

}  // namespace hctr
