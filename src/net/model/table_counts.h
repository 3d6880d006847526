// Names of table counts that reports refer to.
#pragma once

namespace hctr {

/// The number of slots of the index over all ranks. After a restart this count may differ, unlike other counts.
inline constexpr const char* kIndexPlaces = "index_places";

}  // namespace hctr
