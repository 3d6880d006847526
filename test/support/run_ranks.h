// Runs ranks as threads of a test.
#pragma once

#include <functional>

namespace hctr::test {

/// Calls body(rank) for ranks 0 to count - 1, each in its own thread. Waits for all threads, then rethrows the first
/// exception.
void run_ranks(int count, const std::function<void(int rank)>& body);

}  // namespace hctr::test
