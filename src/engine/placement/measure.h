// Measures the bandwidths and latencies of the machine for the placement plan.
#pragma once

#include "core/comm/communicator.h"
#include "core/device/context.h"
#include "engine/placement/plan.h"

namespace hctr {

/// Measures an all-to-all and an all-reduce of two sizes each, a gather of rows, and the free memory. Collective. Takes
/// a fraction of a second. On rank 0 returns the speeds of the slowest rank, rounded to powers of two so that two runs
/// make the same plan. On other ranks returns the rank's own speeds.
MachineSpeeds measure_speeds(Runtime&, Communicator&);

}  // namespace hctr
