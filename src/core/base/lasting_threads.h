// A process-wide flag: this process runs threads that cannot be joined, which affects how the process may end. The flag
// is only ever set to true, and only programs read it.
#pragma once

namespace hctr {

/// Declares that the process runs threads that cannot be stopped or joined, such as the threads in which NCCL destroys
/// communicators. These threads may still use objects that exit handlers would destroy.
void threads_outlive_main() noexcept;
/// Whether threads_outlive_main() has been called. Only the code that ends the process reads this.
bool some_threads_outlive_main() noexcept;

}  // namespace hctr
