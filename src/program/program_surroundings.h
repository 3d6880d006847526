// The surroundings of the programs: process environment, standard error stream, end of the process.
#pragma once

#include "core/base/log.h"
#include "hctr/surroundings.h"

namespace hctr {

/// The environment of this process.
Environment system_environment();

/// Writes log lines to the standard error stream, with the prefix "warning: " or "error: " if they are not plain notes.
Log log_to_stderr();

/// The complete surroundings: log and progress go to the standard error stream. A lost peer ends the process
/// immediately with the given exit code, without exit handlers.
Surroundings program_surroundings();

}  // namespace hctr
