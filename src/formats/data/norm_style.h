// The storage parameters of a Norm data set.
#pragma once

#include <cstdint>

#include "formats/data/data_section.h"

namespace hctr {

/// Storage parameters of the samples in a Norm data set.
struct NormStyle {
  int64_t label_dim = 1, dense_dim = 0, slots = 0;
  Check check = Check::sum;
  int key_bytes = 8;
};

}  // namespace hctr
