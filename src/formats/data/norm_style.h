// How the samples of a Norm set are stored.
#pragma once

#include <cstdint>

#include "formats/data/data_section.h"

namespace hctr {

/// How the samples of a set are stored.
struct NormStyle {
  int64_t label_dim = 1, dense_dim = 0, slots = 0;
  Check check = Check::sum;
  int key_bytes = 8;
};

}  // namespace hctr
