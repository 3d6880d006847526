// A progress line with rate and time left: redrawn in place on a terminal, else a new line every few seconds.
#pragma once

#include "hctr/surroundings.h"

namespace hctr {

/// Writes to the standard error stream. Redraws at most a few times a second.
std::unique_ptr<ProgressView> show_progress_line(const std::string& what, const std::string& unit, int64_t total);

}  // namespace hctr
