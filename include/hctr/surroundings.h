// Services that the calling program provides to the library: environment, log, progress display, reaction to a failed
// job.
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

/// Receives a log line without the newline. Called by any thread.
using LogSink = std::function<void(Level, std::string_view line)>;

/// Returns an environment variable; none if it is not set. Called by any thread.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Shows the progress of one task during its lifetime. Used by one thread at a time.
class ProgressView {
 public:
  virtual ~ProgressView() = default;
  /// `done`: units so far. `remark`: additional text; may be empty.
  virtual void update(int64_t done, std::string_view remark) = 0;
  /// The task is complete. Called at most once.
  virtual void finish() = 0;
  /// Clears the display before a log line. The next update() draws it again.
  virtual void clear() = 0;
  /// Whether an update overwrites the previous one. If false, a run shows no progress between its display lines.
  virtual bool in_place() const = 0;
};
/// Starts a progress display. `what` names the task, `unit` the counted things ("rows", "samples"). `total`: 0 if
/// unknown; if `done` exceeds `total`, the total counts as unknown. May return null, and then nothing is shown.
using ShowProgress =
    std::function<std::unique_ptr<ProgressView>(const std::string& what, const std::string& unit, int64_t total)>;

/// All members are optional. The library itself reads and sets no environment variable, prints nothing and never ends
/// the process.
struct Surroundings {
  /// Used for "${NAME}" in configs; for the launcher's variables (docs/distributed.md); for HCTR_JOB_SECRET; for
  /// NCCL_CUMEM_ENABLE, NCCL_HOSTID, NCCL_P2P_DISABLE and NCCL_SOCKET_IFNAME, with NCCL's meaning; for HOME and
  /// XDG_CACHE_HOME, where GEMM algorithms are cached; for OPENBLAS_CORETYPE. Null: no variable is set, so the job
  /// consists of this process.
  Environment environment{};
  LogSink log{};            ///< null: lines are discarded
  ShowProgress progress{};  ///< null: nothing is shown
  /// Called with the failure if a job of several ranks or processes cannot continue and some threads may never return,
  /// because they are blocked in a kernel, in MPI or on a disk. The library then calls end_process(). Called by a
  /// thread of the library.
  std::function<void(const Error&)> on_lost_peer{};
  /// Must end this process immediately with the exit code. Called if another process of the job has requested the end
  /// or is lost, or if a rank does not return after another rank has failed. Null: the process continues. Threads that
  /// wait for other ranks then get the error, the library waits for a hung rank without a timeout, and MPI is not
  /// finalized after a process is lost.
  std::function<void(int exit_code)> end_process{};
  /// Sets an environment variable; a null `value` removes it. Called when the library loads OpenBLAS and OpenBLAS does
  /// not know the processor, because OpenBLAS reads OPENBLAS_CORETYPE once, when it is loaded. The call precedes the
  /// library's first thread. Null: nothing is set. On such a processor, unless OPENBLAS_CORETYPE is set, GEMMs are then
  /// slower than in the huge_ctr programs, and their results may differ in the last bits. Also called before several
  /// GPUs train in this process: sets NCCL_CUMEM_ENABLE to 0 unless it is set, because NCCL 2.28 may otherwise crash
  /// when its communicators are destroyed.
  std::function<void(const char* name, const char* value)> set_environment{};
};

}  // namespace hctr
