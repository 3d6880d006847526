// Finds slots of one table with equal texts and different keys.
#pragma once

#include <string>
#include <vector>

#include "formats/data/source.h"

namespace hctr {

/// A note for each single-value slot most of whose values also occur in lists of another slot of the same sparse input
/// (an item and the items before it) if the slots hash texts separately: equal texts then have separate rows. Reads the
/// first rows. Bad records are ignored.
std::vector<std::string> notes_on_equal_texts(const DataSection&, const Source&, KeyWidth);

}  // namespace hctr
