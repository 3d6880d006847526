// Derives omitted sizes of a Data layer from its columns.
#pragma once

#include "formats/data/format_type.h"

namespace hctr {

/// Sets label_dim, dense_dim, slot_num of one sparse input, and key limits, if they are omitted. Reports sizes that
/// cannot be derived.
void complete_widths(DataSection&, const FormatType&, const std::string& pointer, Problems&);

}  // namespace hctr
