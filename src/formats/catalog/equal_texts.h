// Slots of one table whose texts are the same, and whose keys are not.
#pragma once

#include <string>
#include <vector>

#include "formats/data/source.h"

namespace hctr {

/// A note for each slot with one value a row, most of whose values also stand in lists of another slot of the same
/// sparse input, as an item and the items before it do, where each slot hashes its texts apart: their keys have rows of
/// their own. Looks at the first rows. Bad records have no part in it.
std::vector<std::string> notes_on_equal_texts(const DataSection&, const Source&, KeyWidth);

}  // namespace hctr
