#include "core/base/process_end.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "core/base/terminal.h"

namespace hctr {
namespace {

std::atomic<bool> skip_exit_handlers = false;

}  // namespace

void print_error(const Error& error) { print_note(cat("error (", kind_name(error.kind()), "): ", error.what(), "\n")); }

void threads_outlive_main() { skip_exit_handlers = true; }

void end_process(int exit_code) {
  if (!skip_exit_handlers) std::exit(exit_code);
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace hctr
