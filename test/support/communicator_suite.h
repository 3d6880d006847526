// A test suite that every communicator must pass, for any kind of ranks.
#pragma once

#include "core/comm/communicator.h"

namespace hctr::test {

/// Every rank calls this with its own communicator and Runtime. Failures name the rank. `reaches_memory`: whether ranks
/// can write to each other's memory. If they can, peer exchanges must write directly.
void check_communicator(Communicator&, Runtime&, bool reaches_memory);

}  // namespace hctr::test
