#include "program/process_end.h"

#include <cstdio>
#include <cstdlib>

#include "core/base/lasting_threads.h"
#include "program/terminal.h"

namespace hctr {

void print_error(const Error& error) { print_note(cat("error (", kind_name(error.kind()), "): ", error.what(), "\n")); }

void end_process(int exit_code) {
  if (!some_threads_outlive_main()) std::exit(exit_code);
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace hctr
