// Computes the first key of each embedding with known key ranges. As in HugeCTR, the key ranges of all slots of all
// sparse inputs are consecutive.
#pragma once

#include "config/sections/config.h"

namespace hctr {

/// Sets the first key of every embedding with a direct index. The number of preceding keys comes from the
/// slot_size_array of the Data layer, or of the embeddings that read the preceding inputs. If that number is unknown,
/// or another part of the config states different slot sizes, the embedding falls back to a hash index, with a note. If
/// the config requests a direct index, this is an error instead.
void place_keys(Config&, Problems&);

}  // namespace hctr
