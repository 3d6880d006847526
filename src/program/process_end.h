// Ends the process, with or without exit handlers.
#pragma once

#include "core/base/expect.h"

namespace hctr {

/// Writes an error to the standard error stream in the form shared by all programs: "error (data): ...".
void print_error(const Error&);

/// Ends the process like a return of `exit_code` from main(). Exit handlers are skipped if threads_outlive_main() was
/// called (core/base/lasting_threads.h). Call it after the objects of main() are destroyed.
[[noreturn]] void end_process(int exit_code);

}  // namespace hctr
