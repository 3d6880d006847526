// Access to environment variables through a function that the library's caller passes.
#pragma once

#include "hctr/surroundings.h"

namespace hctr {

/// Returns the variable's value; nullopt if the variable is not set, or if `environment` is empty.
inline std::optional<std::string> variable_of(const Environment& environment, const char* name) {
  return environment ? environment(name) : std::nullopt;
}

}  // namespace hctr
