#include "app/stop_signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/base/expect.h"
#include "program/process_end.h"

namespace hctr {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<const char*> stop_text{""};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

void on_signal(int number) {
  if (stop_signal.exchange(number) != 0) std::_Exit(128 + number);
  const char* const text = stop_text;
  (void)!::write(STDERR_FILENO, "\n", 1);
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
  constexpr char rest[] = "; a second signal stops at once.\n";
  (void)!::write(STDERR_FILENO, rest, sizeof rest - 1);
}

}  // namespace

const std::atomic<int>& catch_stop_signals(const char* what) {
  stop_text = what;
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP})
    if (std::signal(number, on_signal) == SIG_IGN && number == SIGHUP) std::signal(number, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return stop_signal;
}

int exit_code_of_stop(int signal_number) { return signal_number == SIGINT ? exit_code(Kind::interrupted) : 75; }

int run_until_stopped(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.kind() != Kind::interrupted || stop_signal == 0) throw;
    print_error(error);
    return exit_code_of_stop(stop_signal);
  }
}

}  // namespace hctr
