// What a plan costs: seconds of a step and bytes of memory, of a rank.
#pragma once

#include "embedding/plan.h"

namespace hctr::plan {

/// What a rank has to do, or has.
struct Load {
  double seconds = 0, bytes = 0;
  Load& operator+=(const Load& more) {
    seconds += more.seconds;
    bytes += more.bytes;
    return *this;
  }
};

/// What a slot, or a piece of one, costs its owner; or each rank, when it is spread. `slot_number`: of the piece.
Load cost(const PlanProblem&, const PlanTable&, size_t slot_number, bool spread, int64_t pieces);

/// What a slot costs each rank when all have its rows: a sum of all its gradients instead of vectors.
Load cost_replicated(const PlanProblem&, const PlanTable&, size_t slot_number);

/// What a step waits for whatever its sizes are: three all-to-alls of what is exchanged (keys, vectors, gradients), two
/// sums of what every rank has (which rows, gradients).
double waiting(const MachineSpeeds&, bool exchanges, bool sums);

}  // namespace hctr::plan
