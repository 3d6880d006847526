// Writes parts of the manual from field declarations.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

namespace hctr {

/// A Markdown table with one line per field. Fields of inner objects are named "outer.inner". Empty if there are no
/// fields.
std::string field_table(const std::vector<FieldDoc>&);
/// The line "Accepted without effect: `a` (why), ..." for the manual; empty if the schema has no ignored keys.
std::string ignored_line(const SchemaBase&);
/// The line "An error unless empty: `a` (why), ..." for the manual; empty if the schema has no refused keys.
std::string refused_line(const SchemaBase&);

}  // namespace hctr
