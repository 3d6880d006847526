// The program's services for the library: environment, log, progress, reaction to a failed job.
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

/// Receives a log line, without its end. Called by any thread.
using LogSink = std::function<void(Level, std::string_view line)>;

/// Reads an environment variable; none if it is not set. Called by any thread.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Shows the progress of a piece of work while it lives. Used by one thread at a time.
class ProgressView {
 public:
  virtual ~ProgressView() = default;
  /// `done`: units so far. `remark`: more to show; may be empty.
  virtual void update(int64_t done, std::string_view remark) = 0;
  /// The work is complete. Called at most once.
  virtual void finish() = 0;
  /// Makes room for a log line. The next update() draws again.
  virtual void clear() = 0;
  /// Whether an update overwrites the previous one. If not, a run shows only its display lines.
  virtual bool in_place() const = 0;
};
/// `what` names the work, `unit` the counted things ("rows", "samples"). `total`: 0, or exceeded: unknown. May return
/// null: nothing is shown.
using ShowProgress =
    std::function<std::unique_ptr<ProgressView>(const std::string& what, const std::string& unit, int64_t total)>;

/// All members are optional. The library itself reads and sets no environment variable, prints nothing and never ends
/// the process.
struct Surroundings {
  /// Used for "${NAME}" in configs; for the variables of a job's launcher (docs/distributed.md); for HCTR_JOB_SECRET,
  /// NCCL_HOSTID, NCCL_P2P_DISABLE and NCCL_SOCKET_IFNAME as NCCL reads them; for HOME and XDG_CACHE_HOME, where GEMM
  /// algorithms are cached; for OPENBLAS_CORETYPE. Null: no variable is set, so this process is alone.
  Environment environment{};
  LogSink log{};            ///< null: lines are dropped
  ShowProgress progress{};  ///< null: nothing is shown
  /// Called with the failure if a job of several ranks or processes cannot continue and some thread may never notice,
  /// since it waits in a kernel, in MPI or for a disk; end_process() follows. Called by a thread of the library.
  std::function<void(const Error&)> on_lost_peer{};
  /// Ends this process at once with the exit code, if another process of the job has requested it or is lost, or a rank
  /// does not end after another one has failed. Null: the process lives. Then threads that wait for the others get the
  /// error, the library waits for a hung rank without a timeout, and MPI is not finalized once a process is lost.
  std::function<void(int exit_code)> end_process{};
  /// Sets an environment variable, or with null removes it. Called when the BLAS library is loaded, before the library
  /// starts threads, if that library does not know the processor: it reads OPENBLAS_CORETYPE once. Null: nothing is
  /// set; on such a processor GEMMs are slower and may differ in their last bits from those of the programs, unless
  /// OPENBLAS_CORETYPE is set.
  std::function<void(const char* name, const char* value)> set_environment{};
};

}  // namespace hctr
