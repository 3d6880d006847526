// Finds slots of one table that encode equal texts as different keys.
#pragma once

#include <string>
#include <vector>

#include "formats/data/source.h"

namespace hctr {

/// Finds pairs of slots that should share vectors, such as an item and a list of earlier items. Returns a note for each
/// single-value slot if at least half of its values also occur in a list slot of the same sparse input, and both slots
/// encode texts independently. Equal texts then have separate rows. Reads the first rows of the source; ignores bad
/// records.
std::vector<std::string> notes_on_equal_texts(const DataSection&, const Source&, KeyWidth);

}  // namespace hctr
