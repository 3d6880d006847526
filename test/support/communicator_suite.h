// What every communicator must do, whatever its ranks are.
#pragma once

#include "comm/communicator.h"

namespace hctr::test {

/// Called by every rank with its own communicator and a Runtime of its own; what is wrong fails the test, naming the
/// rank. `reaches_memory`: whether ranks can write to each other's, and so must have routes that do.
void check_communicator(Communicator&, Runtime&, bool reaches_memory);

}  // namespace hctr::test
