// Ending the process, with or without exit handlers.
#pragma once

#include "core/base/expect.h"

namespace hctr {

/// Writes an error to the standard error stream, as all programs do: "error (data): ...".
void print_error(const Error&);

/// Ends the process like a return of `exit_code` from main(), but without exit handlers if threads_outlive_main() was
/// called (core/base/lasting_threads.h). Call it after the objects of main() are destroyed.
[[noreturn]] void end_process(int exit_code);

}  // namespace hctr
