// The exception in flight as an Error with a sentence for the user.
#pragma once

#include <string_view>

#include "core/base/expect.h"

namespace hctr {

/// The message for refused host memory.
inline constexpr std::string_view kOutOfHostMemory =
    "out of memory on the CPU; a smaller batchsize, fewer num_workers or a smaller embedding_vec_size need less, and "
    "`ulimit -v` may limit it";

/// In a catch block: the exception that it caught. An Error stays itself; refused memory and threads are Error(device),
/// faults of the file system are Error(io), anything else is Error(bug).
Error current_error();

}  // namespace hctr
