// Copies the encoding saved with a model into a config.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Returns the config with the encoding of a saved one. Fields about how a file is written stay unchanged.
Json with_encoding_of(const Json& saved, const Json& config);

struct CompletedConfig {
  Json config;
  std::string taken{};  ///< the copied fields, separated by commas
};
/// Returns the config with the encoding fields that its Data layer omits copied from the saved one: from sections of
/// the same format, or all of them if the layer names only its data.
CompletedConfig with_left_out_encoding_of(const Json& saved, const Json& config);

}  // namespace hctr
