// Pages of the manual, written out from the declarations.
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

namespace hctr {

/// A Markdown table of the fields, one a line, those of inner objects as "outer.inner"; empty text for no fields.
std::string field_table(const std::vector<FieldDoc>&);
/// "Accepted without effect: `a` (why), ..."; empty text for none.
std::string ignored_line(const SchemaBase&);
/// "An error unless empty: `a` (why), ..."; empty text for none.
std::string refused_line(const SchemaBase&);

}  // namespace hctr
