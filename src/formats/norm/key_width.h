// Detects the key width of a Norm file by reading its records with both widths. The wrong width soon yields invalid
// records.
#pragma once

#include "formats/norm/norm_header.h"

namespace hctr {

/// Returns 4 or 8. `asked`: the width to use if the file fits both. Errors: Error(data) if the file clearly has the
/// other width, or fits neither.
int detect_key_bytes(const NormInfo&, KeyWidth asked);

}  // namespace hctr
