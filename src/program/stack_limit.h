// The stack size of a program's threads.
#pragma once

namespace hctr {

/// Raises a small stack limit (`ulimit -s`) for this thread and threads that start later. Otherwise a stack overflow
/// could end the program without a message. Errors: Error(device) if the system does not allow a sufficient limit.
void raise_stack_limit();

}  // namespace hctr
