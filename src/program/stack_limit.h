// The stack of a program's threads.
#pragma once

namespace hctr {

/// Raises a small limit of the stack (`ulimit -s`), for this thread and those that start later: a thread that exceeds
/// it ends the program without a word. Errors: Error(device) where the system does not allow enough.
void raise_stack_limit();

}  // namespace hctr
