// Derives omitted sizes of a Data layer from its columns.
#pragma once

#include "formats/data/format_type.h"

namespace hctr {

/// Sets each of these sizes that is omitted: label_dim, dense_dim, slot_num (of at most one sparse input), and key
/// limits. Reports sizes that cannot be derived.
void complete_widths(DataSection&, const FormatType&, const std::string& pointer, Problems&);

}  // namespace hctr
