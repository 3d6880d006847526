// Converts the exception being handled into an Error with a message for the user.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/expect.h"

namespace hctr {

/// The message for std::bad_alloc, which says that the host is out of memory.
inline constexpr std::string_view kOutOfHostMemory =
    "out of memory on the CPU; a smaller batchsize, fewer num_workers or a smaller embedding_vec_size need less, and "
    "`ulimit -v` may limit it";

/// Call inside a catch block. Converts the caught exception to an Error. An Error is returned unchanged. std::bad_alloc
/// and std::system_error become Error(device), filesystem errors Error(io), other exceptions Error(bug).
Error current_error();

/// Runs body(), and returns its error instead of throwing it; nullopt: no error.
template <class Body>
std::optional<Error> error_of(const Body& body) {
  try {
    body();
    return std::nullopt;
  } catch (...) {
    return current_error();
  }
}

}  // namespace hctr
