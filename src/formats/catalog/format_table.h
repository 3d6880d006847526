// The table of data formats.
#pragma once

#include <vector>

#include "formats/data/format_type.h"

namespace hctr {

/// All data formats, in the order of the manual.
const std::vector<FormatType>& format_types();
const FormatType& format_type(DataFormat);

}  // namespace hctr
