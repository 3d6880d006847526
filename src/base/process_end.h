// How programs end.
#pragma once

namespace hctr {

/// As returning `exit_code` from main() does, after its objects are gone; but without exit handlers once
/// threads_outlive_main() was called.
[[noreturn]] void end_process(int exit_code);

/// From now on threads run that nobody can end or wait for, as those in which NCCL takes communicators apart: what exit
/// handlers destroy they still use.
void threads_outlive_main();

}  // namespace hctr
