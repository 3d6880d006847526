// The stack size of a program's threads.
#pragma once

namespace hctr {

/// Raises a small stack limit (`ulimit -s`) for this thread and those that start later: a stack overflow would end the
/// program without a message. Errors: Error(device) if the system does not allow enough.
void raise_stack_limit();

}  // namespace hctr
