#include "app/restarts.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>

#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "core/base/log.h"
#include "core/comm/job_secret.h"
#include "launch/attempt.h"
#include "program/program_surroundings.h"

namespace hctr {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
constexpr int kMostWithoutProgress = 3;

std::atomic<pid_t> worker{0};
std::atomic<int> stop_requested{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void pass_on(int number) {
  const int error = errno;
  stop_requested = number;
  if (const pid_t process = worker) ::kill(process, number);
  errno = error;
}

void set_handlers() {
  for (const int number : kStopSignals)
    // if the parent process ignores SIGHUP (nohup), keep ignoring it
    if (std::signal(number, pass_on) == SIG_IGN && number == SIGHUP) std::signal(number, SIG_IGN);
}

/// Blocks the signals that stop a run, during this object's lifetime.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    ::sigemptyset(&held);
    for (const int number : kStopSignals) ::sigaddset(&held, number);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

/// Memory shared by the keeper and its workers. It is unnamed: only root and debuggers of these processes can read it.
struct SharedWithWorkers {
  Attempt attempt;
  AgreedSecret secret;
};
struct Unmap {
  void operator()(SharedWithWorkers* shared) const { ::munmap(shared, sizeof(SharedWithWorkers)); }
};

std::unique_ptr<SharedWithWorkers, Unmap> memory_of_workers() {
  void* memory = ::mmap(nullptr, sizeof(SharedWithWorkers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(Kind::device, cat("mmap: ", std::strerror(errno)));
  std::unique_ptr<SharedWithWorkers, Unmap> shared(new (memory) SharedWithWorkers);
  shared->attempt.secret = &shared->secret;
  return shared;
}

/// Whether another attempt may succeed. Config, command line and data errors would occur again.
bool may_help(int code) {
  for (const Kind kind : {Kind::bug, Kind::io, Kind::device, Kind::comm})
    if (code == exit_code(kind)) return true;
  return code >= 128;  // a signal ended the worker
}

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? cat("was ended by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")")
                             : cat("has ended with exit code ", WEXITSTATUS(status));
}

/// Forks the worker, which trains with `options`. Returns true in the worker. Errors: Error(device).
bool fork_worker(TrainOptions& options, std::unique_ptr<SharedWithWorkers, Unmap>& shared) {
  const pid_t keeper = ::getpid();
  const SignalsHeld held;
  const pid_t process = ::fork();
  if (process < 0) throw Error(Kind::device, cat("fork: ", std::strerror(errno)));
  if (process > 0) {
    worker = process;
    return false;
  }
  // The worker gets its own process group. A Ctrl-C then reaches the worker once, through the keeper. In the keeper's
  // group, the worker would get the signal twice, and the second signal would end it immediately.
  ::setpgid(0, 0);
  // SIGTTOU would stop the worker when it writes to the terminal, because its process group is in the background
  std::signal(SIGTTOU, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(exit_code(Kind::comm));
  options.attempt = &shared.release()->attempt;
  options.stop = &catch_stop_signals();
  return true;
}

/// Waits until the worker ends. Returns its status, as waitpid() does.
int wait_for_worker() {
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0)
    if (errno != EINTR) throw Error(Kind::bug, cat("waitpid: ", std::strerror(errno)));
  worker = 0;
  return status;
}

/// Counts the consecutive attempts that resumed after the same iteration.
class StalledAttempts {
 public:
  /// `from`: the iteration that the attempt resumed after; -1: not known.
  void add(int64_t from) {
    attempts_ = from == from_ ? attempts_ + 1 : 1;
    from_ = from;
  }
  bool too_many() const { return attempts_ == kMostWithoutProgress; }
  std::string text() const {
    return cat(", three consecutive times ",
               from_ < 0    ? std::string("before its first step")
               : from_ == 0 ? std::string("before its first checkpoint")
                            : cat("before a checkpoint newer than iteration ", from_),
               ": another restart would not help; fix the cause in the messages above");
  }

 private:
  int attempts_ = 0;
  int64_t from_ = -2;
};

}  // namespace

std::optional<int> keep_training(TrainOptions& options, int restarts) {
  if (options.config == "-")
    throw Error(Kind::usage,
                "--restarts reads the config again at each restart: name a file instead of the "
                "standard input");
  const Log log = log_to_stderr();
  auto shared = memory_of_workers();
  Attempt* const attempt = &shared->attempt;
  set_handlers();
  for (StalledAttempts stalled;; ++attempt->number) {
    attempt->joined = false;
    attempt->from = -1;
    const auto begin = std::chrono::steady_clock::now();
    if (fork_worker(options, shared)) return std::nullopt;
    const int status = wait_for_worker();
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (!may_help(code) || stop_requested != 0) return code;
    const auto took = std::chrono::steady_clock::now() - begin;
    if (attempt->number > 0 && !attempt->joined && took >= std::chrono::seconds(options.join_timeout)) {
      log.error(
          "after a restart the other processes could not be reached: the other processes have ended, or continue "
          "without this process");
      return code;
    }
    stalled.add(attempt->from);
    const std::string ended = cat("training ", how_it_ended(status));
    if (stalled.too_many()) {
      log.error(ended, stalled.text());
      return code;
    }
    if (attempt->number == restarts) {
      log.error(ended, restarts == 1 ? ", after the one restart" : cat(", after ", restarts, " restarts"),
                " that --restarts allows");
      return code;
    }
    log.warning(ended, ": resuming from the last checkpoint, restart ", attempt->number + 1, " of ", restarts);
  }
}

}  // namespace hctr
