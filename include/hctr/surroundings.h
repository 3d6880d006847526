// What the program around the library gives it: the environment, who reads its lines, what the end of a job means.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hctr {

class Error;

enum class Level { info, warning, error };

/// Gets a line for people, without its end. Called by any thread.
using LogSink = std::function<void(Level, std::string_view line)>;

/// A variable of the environment; nothing where it is not set. Called by any thread.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Shows how far a piece of work is, from when it is made to when it is destroyed. Used by one thread at a time.
class ProgressView {
 public:
  virtual ~ProgressView() = default;
  /// `done`: units so far. `remark`: what else to show; may be empty.
  virtual void update(int64_t done, std::string_view remark) = 0;
  /// The work is complete. Called once at most.
  virtual void finish() = 0;
  /// Makes room for a line of the log. The next update() shows it again.
  virtual void clear() = 0;
  /// Whether an update replaces what the one before has shown. Where it does not, a run shows its display lines alone.
  virtual bool in_place() const = 0;
};
/// `what` names the work, `unit` what is counted ("rows", "samples"). A total of 0, or one that is exceeded, means that
/// nobody knows it. Null: nobody looks.
using ShowProgress =
    std::function<std::unique_ptr<ProgressView>(const std::string& what, const std::string& unit, int64_t total)>;

/// Each of these may be left out. The library itself reads and sets no variable of the environment, prints nothing and
/// never ends the process.
struct Surroundings {
  /// For "${NAME}" in configs; for what a launcher says of the processes of a job (docs/distributed.md); for
  /// HCTR_JOB_SECRET, NCCL_HOSTID, NCCL_P2P_DISABLE and NCCL_SOCKET_IFNAME as NCCL reads them; for HOME and
  /// XDG_CACHE_HOME, where measured products are kept; for OPENBLAS_CORETYPE. Null: none of them is set, so this
  /// process is alone.
  Environment environment{};
  LogSink log{};            ///< null: lines are dropped
  ShowProgress progress{};  ///< null: nothing is shown
  /// Called with what has failed where a job of several ranks or processes cannot go on and some thread may never
  /// notice, since it waits in a kernel, in MPI or for a disk; behind it, in the program, comes end_process(). Called
  /// by a thread of the library.
  std::function<void(const Error&)> on_lost_peer{};
  /// Ends this process at once, with such an exit code, where another process of the job has said so or is lost, or a
  /// rank does not end after another one has failed. Null: the process lives. Then whoever waits for the others gets
  /// the error, a rank that hangs is waited for without a limit, and MPI is not finalized once a process is lost.
  std::function<void(int exit_code)> end_process{};
  /// Sets a variable of the environment, or with null removes it. Called when the BLAS library is loaded, before the
  /// library starts threads, if that library does not know the processor: it reads OPENBLAS_CORETYPE once. Null:
  /// nothing is set, and on such a processor products are slower and may differ in their last bits from those of the
  /// programs, unless OPENBLAS_CORETYPE is set.
  std::function<void(const char* name, const char* value)> set_environment{};
};

}  // namespace hctr
