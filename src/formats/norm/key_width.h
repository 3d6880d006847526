// Finds the width of a Norm file's keys by reading its records with both: the wrong width soon makes no sense.
#pragma once

#include "formats/norm/norm_header.h"

namespace hctr {

/// 4 or 8. `asked` decides where the file fits both. Errors: Error(data) when the file clearly has the other width, or
/// fits neither.
int detect_key_bytes(const NormInfo&, KeyWidth asked);

}  // namespace hctr
