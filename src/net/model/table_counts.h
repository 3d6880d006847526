// Names of table counts that reports refer to.
#pragma once

namespace hctr {

/// The number of slots of the index, over all ranks. Unlike other counts, it depends on where a run began.
inline constexpr const char* kIndexPlaces = "index_places";

}  // namespace hctr
