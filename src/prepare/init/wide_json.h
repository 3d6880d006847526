// JSON text for people: what fits on a line stands on one.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Objects and arrays are broken, one member a line, where they do not fit into 120 columns.
std::string wide_json(const Json&);

}  // namespace hctr
