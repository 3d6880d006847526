// Reads texts from a pipe, however long its writer takes.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "core/base/files.h"

namespace hctr {

/// As read_text(). Where the file is not a regular one, gives up once `stop`, which may be null, is other than 0: a
/// signal does not end a read. Errors: those of read_text(); Error(interrupted).
std::string read_text_until(const fs::path&, std::string_view what, const std::atomic<int>* stop);

}  // namespace hctr
