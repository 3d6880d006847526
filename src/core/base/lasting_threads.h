// Threads that cannot be joined.
#pragma once

namespace hctr {

/// Declares that threads run which cannot be stopped or joined, such as those in which NCCL destroys communicators.
/// They may still use objects that exit handlers would destroy.
void threads_outlive_main() noexcept;
/// Whether that was declared in this process, for the program that ends it. Nothing else depends on it.
bool some_threads_outlive_main() noexcept;

}  // namespace hctr
