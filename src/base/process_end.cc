#include "base/process_end.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace hctr {
namespace {

std::atomic<bool> abruptly = false;

}  // namespace

void threads_outlive_main() { abruptly = true; }

void end_process(int exit_code) {
  if (!abruptly) std::exit(exit_code);
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

}  // namespace hctr
