// --restarts: a keeper process restarts training after a failure.
#pragma once

#include <optional>

#include "hctr/solver.h"

namespace hctr {

/// Forks this process, which must have one thread, into a keeper and a worker. In the worker the function returns none,
/// and the caller trains with the modified `options`. In the keeper the function returns the program's exit code after
/// the last worker has ended.
///
/// The keeper restarts a worker from the last checkpoint, at most `restarts` times, if the worker was ended by a signal
/// or by an error of kind io, device, comm or bug. The keeper gives up after three consecutive attempts that resumed
/// from the same iteration. It forwards to the worker the signals that stop a run. If the keeper ends, the system kills
/// the worker.
std::optional<int> keep_training(TrainOptions& options, int restarts);

}  // namespace hctr
