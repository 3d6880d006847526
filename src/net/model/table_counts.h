// Names of the counts of tables that those who report them have to know.
#pragma once

namespace hctr {

/// How many keys the index has places for, on all ranks. It depends on where a run began, as other counts do not.
inline constexpr const char* kIndexPlaces = "index_places";

}  // namespace hctr
