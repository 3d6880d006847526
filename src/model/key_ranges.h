// Where the keys of each embedding begin: keys are counted through all slots of all sparse inputs, as the readers of
// HugeCTR count them.
#pragma once

#include "model/config.h"

namespace hctr {

/// Tells every embedding with slot_size_array the first key of its input. How many keys the inputs before it have is
/// known from slot_size_array of the Data layer, or of embeddings that read them. Where it is not, or where the two
/// disagree on sizes, the embedding finds rows by hash, with a note; that it was told not to is an error.
void place_keys(Config&, Problems&);

}  // namespace hctr
