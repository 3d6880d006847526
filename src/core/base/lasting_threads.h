// Threads that cannot be joined. This flag is process-wide, because such threads affect how the process may end. It is
// only ever set to true, and only programs read it.
#pragma once

namespace hctr {

/// Declares that the process runs threads that cannot be stopped or joined, such as the threads in which NCCL destroys
/// communicators. These threads may still use objects that exit handlers would destroy.
void threads_outlive_main() noexcept;
/// Whether threads_outlive_main() was called. Read only by the code that ends the process.
bool some_threads_outlive_main() noexcept;

}  // namespace hctr
