// What every communicator must do, whatever its ranks are.
#pragma once

#include "comm/communicator.h"

namespace hctr::test {

/// Called by every rank with its own communicator and a Runtime of its own; what is wrong fails the test, naming the rank.
void check_communicator(Communicator&, Runtime&);

}  // namespace hctr::test
