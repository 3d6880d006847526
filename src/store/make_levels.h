// The levels that a store consists of.
#pragma once

#include <memory>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"

namespace hctr {

/// In the order in which they are asked. Errors: Error(config) where they do not fit together; those of the levels.
std::vector<std::unique_ptr<StoreLevel>> make_levels(const StoreOptions&);

}  // namespace hctr
