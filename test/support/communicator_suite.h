// Tests that every communicator must pass, for any kind of ranks.
#pragma once

#include "core/comm/communicator.h"

namespace hctr::test {

/// Called by every rank with a communicator and a Runtime of its own. Failures name the rank. `reaches_memory`: whether
/// ranks can write to each other's memory; their peer exchanges must then do so.
void check_communicator(Communicator&, Runtime&, bool reaches_memory);

}  // namespace hctr::test
