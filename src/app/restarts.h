// --restarts: a process that starts training again when it has failed.
#pragma once

#include <optional>

#include "hctr/solver.h"

namespace hctr {

/// Splits this process, which must have one thread, in two. In the worker it returns nothing: the caller trains, with
/// `options` as they are changed here. In the keeper it returns the exit code of the program once the last worker has
/// ended.
///
/// Restarts a worker that was ended by a signal, or by an error of files, devices, other ranks or a bug, at most
/// `restarts` times, from the last checkpoint; not after three consecutive attempts from the same iteration. Passes
/// signals that stop a run on to the worker. The worker ends with its keeper.
std::optional<int> keep_training(TrainOptions& options, int restarts);

}  // namespace hctr
