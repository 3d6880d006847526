// Creates the levels of a store.
#pragma once

#include <memory>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"

namespace hctr {

/// The levels in look-up order. Errors: Error(config) if the levels cannot be combined; those of the levels.
std::vector<std::unique_ptr<StoreLevel>> make_levels(const StoreOptions&);

}  // namespace hctr
