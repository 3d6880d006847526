// The cost of a plan on one rank: seconds of a step and bytes of memory.
#pragma once

#include "engine/placement/plan.h"

namespace hctr::plan {

/// The work and the memory of a rank.
struct Load {
  double seconds = 0, bytes = 0;
  Load& operator+=(const Load& more) {
    seconds += more.seconds;
    bytes += more.bytes;
    return *this;
  }
};

/// The cost of a slot, or of a piece of a slot, to its owner. If `spread`, the slot is sharded by key, and the result
/// is the cost to each rank. `slot_number` counts pieces.
Load cost(const PlanProblem&, const PlanTable&, size_t slot_number, bool spread, int64_t pieces);

/// The cost of a replicated slot to each rank. The slot needs an all-reduce of its gradients, but no exchange of
/// vectors.
Load cost_replicated(const PlanProblem&, const PlanTable&, size_t slot_number);

/// The latency of a step, independent of sizes: three all-to-alls (keys, vectors, gradients) if rows are exchanged; two
/// all-reduces (touched rows, gradients) if rows are replicated.
double waiting(const MachineSpeeds&, bool exchanges, bool sums);

}  // namespace hctr::plan
