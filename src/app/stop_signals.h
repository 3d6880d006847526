// The signals that end a run gracefully.
#pragma once

#include <atomic>
#include <functional>

namespace hctr {

/// Installs handlers for SIGINT, SIGTERM, SIGUSR1 and SIGHUP. The first signal stores its number in the returned
/// variable and prints a message; the second one ends the process immediately. SIGHUP stays ignored if the parent
/// process ignores it (nohup). SIGPIPE and SIGXFSZ are ignored: the write that caused them fails instead. `what`: the
/// reaction to the first signal, for the message; a string literal.
const std::atomic<int>& catch_stop_signals(const char* what = "Stopping after the current step");

/// 130 after SIGINT; 75 (EX_TEMPFAIL) after the other signals: schedulers requeue the job.
int exit_code_of_stop(int signal_number);

/// Returns the result of body(). If body() throws Error(interrupted) after one of these signals, prints the error and
/// returns the signal's exit code.
int run_until_stopped(const std::function<int()>& body);

}  // namespace hctr
