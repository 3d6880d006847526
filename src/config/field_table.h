// Writes parts of the manual from the declarations of fields.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

namespace hctr {

/// A Markdown table of the fields, one per line, those of inner objects as "outer.inner"; empty if there are none.
std::string field_table(const std::vector<FieldDoc>&);
/// "Accepted without effect: `a` (why), ..."; empty if there are none.
std::string ignored_line(const SchemaBase&);
/// "An error unless empty: `a` (why), ..."; empty if there are none.
std::string refused_line(const SchemaBase&);

}  // namespace hctr
