// The encoding that a config takes from the one saved with a model.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Returns the config with the encoding of a saved one. What says how a file is written stays as it is.
Json with_encoding_of(const Json& saved, const Json& config);

struct CompletedConfig {
  Json config;
  std::string taken{};  ///< the fields that were, with commas
};
/// Returns the config with what its Data layer leaves out of the encoding as the saved one has it: sections of the same
/// format, or all of it where the layer names no more than its data.
CompletedConfig with_left_out_encoding_of(const Json& saved, const Json& config);

}  // namespace hctr
