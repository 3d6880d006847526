// The exception in flight as an Error with a sentence for the user.
#pragma once

#include "base/error.h"

namespace hctr {

/// In a catch block: the exception that it caught. An Error is itself; memory that the system does not give and threads
/// that it does not start are Error(device), faults of the file system are Error(io), anything else is Error(bug).
Error current_error();

}  // namespace hctr
