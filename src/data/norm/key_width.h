// Finding the width of a Norm file's keys by reading its records both ways: all but one reading soon meets nonsense.
#pragma once

#include "data/norm/norm_header.h"

namespace hctr {

/// 4 or 8. `asked` settles what the file leaves open; where the file clearly says otherwise that is Error(data), as is
/// a file that fits neither width.
int detect_key_bytes(const NormInfo&, KeyWidth asked);

}  // namespace hctr
