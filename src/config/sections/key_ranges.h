// The first key of each embedding with known key ranges. As in HugeCTR, the key ranges of all slots of all sparse
// inputs follow each other.
#pragma once

#include "config/sections/config.h"

namespace hctr {

/// Sets the first key of every embedding with a direct index. The number of keys of the inputs before it comes from the
/// slot_size_array of the Data layer or of the embeddings that read them. When it is unknown, or when the two differ,
/// the embedding uses a hash index and a note says so; that is an error when the config asks for a direct index.
void place_keys(Config&, Problems&);

}  // namespace hctr
