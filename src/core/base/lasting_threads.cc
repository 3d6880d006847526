#include "core/base/lasting_threads.h"

#include <atomic>

namespace hctr {
namespace {

std::atomic<bool> threads_left = false;

}  // namespace

void threads_outlive_main() noexcept { threads_left = true; }

bool some_threads_outlive_main() noexcept { return threads_left; }

}  // namespace hctr
