// The table of data formats.
#pragma once

#include <vector>

#include "formats/data/format_type.h"

namespace hctr {

/// Every format, in the order of the manual.
const std::vector<FormatType>& format_types();
const FormatType& format_type(DataFormat);

}  // namespace hctr
