// Environment variables, as the caller of the library passes them.
#pragma once

#include "hctr/surroundings.h"

namespace hctr {

/// Nothing where the variable is not set, or no environment is given.
inline std::optional<std::string> variable_of(const Environment& environment, const char* name) {
  return environment ? environment(name) : std::nullopt;
}

}  // namespace hctr
