// JSON text for people: values that fit on a line stay on one line.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// Breaks objects and arrays, one member a line, if they exceed 120 columns.
std::string wide_json(const Json&);

}  // namespace hctr
