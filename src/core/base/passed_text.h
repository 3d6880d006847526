// Reads text from a pipe and can be stopped while the pipe's writer is slow.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "core/base/files.h"

namespace hctr {

/// Like read_text(). If the file is not a regular file, polls `*stop` while reading and throws once `*stop` is nonzero,
/// because a signal does not interrupt a blocking read. `stop` may be null. Errors: those of read_text();
/// Error(interrupted).
std::string read_text_until(const fs::path&, std::string_view what, const std::atomic<int>* stop);

}  // namespace hctr
