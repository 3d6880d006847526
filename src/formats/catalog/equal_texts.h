// Finds slots of one table that encode equal texts as different keys.
#pragma once

#include <string>
#include <vector>

#include "formats/data/source.h"

namespace hctr {

/// Finds pairs of slots that should share vectors, such as an item and a list of earlier items. Returns a note for each
/// single-value slot of which at least half of the values also occur in a list slot of the same sparse input, if the
/// two slots encode texts independently. Such slots have different keys, and separate rows, for equal texts. Reads the
/// first rows of the source; ignores bad records.
std::vector<std::string> notes_on_equal_texts(const DataSection&, const Source&, KeyWidth);

}  // namespace hctr
