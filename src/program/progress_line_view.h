// A progress line with rate and remaining time. On a terminal it is redrawn in place; otherwise a new line is printed
// every few seconds.
#pragma once

#include "hctr/surroundings.h"

namespace hctr {

/// Writes to the standard error stream. Redraws at most a few times a second.
std::unique_ptr<ProgressView> show_progress_line(const std::string& what, const std::string& unit, int64_t total);

}  // namespace hctr
