#include "base/process_end.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/printable.h"

namespace hctr {
namespace {

std::atomic<bool> skip_exit_handlers = false;

}  // namespace

void print_error(const Error& error) {
  std::fprintf(stderr, "error (%s): %s\n", std::string(kind_name(error.kind())).c_str(),
               printable(error.what()).c_str());
  std::fflush(stderr);
}

void threads_outlive_main() { skip_exit_handlers = true; }

void end_process(int exit_code) {
  if (!skip_exit_handlers) std::exit(exit_code);
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace hctr
