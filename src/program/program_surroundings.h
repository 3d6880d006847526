// What the programs give the library: the environment of the process, the standard error stream, their end.
#pragma once

#include "core/base/log.h"
#include "hctr/surroundings.h"

namespace hctr {

/// The environment of this process.
Environment system_environment();

/// Writes to the standard error stream: "line", "warning: line", "error: line".
Log log_to_stderr();

/// All of it: lines and progress go to the standard error stream, and a lost peer ends the process with its exit code,
/// at once and without exit handlers.
Surroundings program_surroundings();

}  // namespace hctr
