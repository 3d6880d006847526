// --restarts: a process that starts training again when it has failed.
#pragma once

#include <optional>

#include "hctr/solver.h"

namespace hctr {

/// Splits this process, which must have one thread, in two. In the worker it returns nothing: the caller trains, with
/// `options` as they are changed here. In the keeper it returns the exit code of the program once the last worker has
/// ended.
///
/// A worker that a signal ends, or that ends with an error of files, devices, other ranks or a bug, is started again at
/// most `restarts` times, and goes on from the last checkpoint; not where three in a row began after the same
/// iteration. Signals that stop a run are passed on to the worker. With the keeper its worker ends.
std::optional<int> keep_training(TrainOptions& options, int restarts);

}  // namespace hctr
