// The processes of a job, joined by MPI or TCP. Only this folder uses the types of MPI and TCP.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "hctr/surroundings.h"

namespace hctr {

class AgreedSecret;  // core/comm/job_secret.h

/// The byte ranges that one rank sends to, and receives from, each rank of the job, including itself.
struct Transfer {
  struct Piece {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  std::vector<Piece> send, receive;
};

/// Whether a wait for other ranks has a time limit.
enum class Wait {
  limited,   ///< within a step: ranks run in near lockstep, so a rank that exceeds the limit counts as hung
  unlimited  ///< between steps: other ranks may have to wait while one rank writes a file
};

/// Time limits and options of processes that wait for each other.
struct JoinLimits {
  std::chrono::seconds step{25};     ///< limit within a step; 0: no limit
  std::chrono::seconds join{300};    ///< limit until all processes have joined over TCP
  std::chrono::seconds silence{20};  ///< maximum time between heartbeats; a process sends one every second
  /// After a restart over TCP: how long to wait for processes that may be lost. Processes that have joined by then
  /// continue without the missing ones. nullopt: all processes must join.
  std::optional<std::chrono::seconds> lost = {};
  /// Stores the job's secret if the user set none; only for TCP. The join uses the secret of an earlier join, if there
  /// is one. Otherwise the join generates a secret and stores it here. Null: the generated secret is not stored.
  AgreedSecret* agreed = nullptr;
  /// Name of the option that sets `step`, for messages.
  std::string step_setting = "--comm-timeout";
  bool over_tcp = false;  ///< join over TCP even under mpirun; MPI would end all processes when one ends
};

/// The ranks of the job that this process hosts: [first, first + count) of `total`.
struct LocalRanks {
  int first = 0, count = 1, total = 1;
};

class Processes {
 public:
  virtual ~Processes() = default;
  virtual int process() const = 0;
  virtual int count() const = 0;
  /// The number of this process and the number of processes, as assigned by the launcher. These differ from process()
  /// and count() after a restart that dropped lost processes.
  struct Launched {
    int process = 0, count = 1;
  };
  virtual Launched launched() const { return {process(), count()}; }
  /// The index of this process on its host, from 0, and the number of processes on that host. on_host() returns nullopt
  /// if these numbers are unknown.
  struct OnHost {
    int process = 0, count = 1;
  };
  virtual std::optional<OnHost> on_host() const = 0;
  /// Numbers the ranks of all processes, and returns the ranks of this process. `ranks`: how many ranks this process
  /// hosts.
  virtual LocalRanks join(int ranks) = 0;
  /// Exchanges all byte ranges between ranks of this process and ranks of other processes. `transfers` has one Transfer
  /// per local rank. Only one thread may call at a time. Errors: Error(comm) naming the ranks that did not answer in
  /// time.
  virtual void exchange(const std::vector<const Transfer*>& transfers, Wait) = 0;
  /// Ends all other processes immediately with this exit code. This process continues; the caller exits or throws.
  virtual void abort(int exit_code) noexcept = 0;
};

/// Joins the processes that a launcher started together with this process (core/comm/launcher.h). Processes of mpirun
/// join through MPI, others over TCP. Returns null if this process was started alone, or if `Surroundings` has no
/// environment. Errors: Error(usage) if environment variables are missing, or if mpirun started the process and MPI
/// cannot be loaded; Error(comm).
std::unique_ptr<Processes> started_processes(const JoinLimits&, const Surroundings&);

}  // namespace hctr
