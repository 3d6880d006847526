// The signals that end a run in order.
#pragma once

#include <atomic>
#include <functional>

namespace hctr {

/// From now on the first of SIGINT, SIGTERM, SIGUSR1 and SIGHUP stores its number in the returned variable and says so;
/// the second ends the process at once. A SIGHUP that the parent had set to be ignored (nohup) stays ignored. SIGPIPE
/// and SIGXFSZ are ignored: the write that caused them fails instead. `what`: what follows, for the message; a literal.
const std::atomic<int>& catch_stop_signals(const char* what = "Stopping after the current step");

/// 130 after SIGINT; 75 after the others, which schedulers take as a wish to be started again.
int exit_code_of_stop(int signal_number);

/// Returns what body() does; where an error says that it has been stopped by such a signal, says so and returns the
/// exit code of that signal.
int run_until_stopped(const std::function<int()>& body);

}  // namespace hctr
