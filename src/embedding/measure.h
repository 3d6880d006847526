// What this machine moves in a second, for the plan.
#pragma once

#include "comm/communicator.h"
#include "device/context.h"
#include "embedding/plan.h"

namespace hctr {

/// Collective, and over in a fraction of a second: an all-to-all and an all-reduce of two sizes, a gather of rows, the
/// memory that is free. On rank 0 the result is that of the slowest rank, rounded to powers of two so that two runs
/// decide alike; elsewhere it is this rank's own.
MachineSpeeds measure_speeds(Runtime&, Communicator&);

}  // namespace hctr
