// Formats JSON for people: values that fit on a line are not broken.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Formats JSON. Objects and arrays that exceed 120 columns have one member per line.
std::string wide_json(const Json&);

}  // namespace hctr
