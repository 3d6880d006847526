// The processes of a job, which MPI or TCP joins; their types are used in this folder only.
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

/// What one rank sends to each rank of the job, itself included, and receives from each: one piece per rank.
struct Transfer {
  struct Piece {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  std::vector<Piece> send, receive;
};

/// How long a rank waits for the others.
enum class Wait {
  limited,   ///< within a step, where ranks stay close together: a rank that is later than the limit hangs
  unlimited  ///< between steps, where one rank may write a file while the others wait
};

/// How long processes wait for each other.
struct JoinLimits {
  std::chrono::seconds step{25};     ///< in a step; 0: without limit
  std::chrono::seconds join{300};    ///< for all to be there, over TCP
  std::chrono::seconds silence{20};  ///< for a sign of life, which processes give every second
  /// After a restart, over TCP: for those that may be lost; then the others go on without them. Nothing: all must come.
  std::optional<std::chrono::seconds> lost = {};
  /// Over TCP: the secret that earlier joins have made and this one makes, where none was set. Nothing: it is
  /// forgotten.
  AgreedSecret* agreed = nullptr;
  /// Where a longer limit of a step is set, for messages.
  std::string step_setting = "--comm-timeout";
  bool over_tcp = false;  ///< not by MPI, which ends all processes when one ends
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
  /// The number of this process and of all, as the launcher has given them. They differ from process() and count() in a
  /// job that was restarted without those that are lost.
  struct Launched {
    int process = 0, count = 1;
  };
  virtual Launched launched() const { return {process(), count()}; }
  /// The number of this process among those of its host, from 0, and how many these are; nothing where it is not known.
  struct OnHost {
    int process = 0, count = 1;
  };
  virtual std::optional<OnHost> on_host() const = 0;
  /// Numbers the ranks of all processes. `ranks`: how many this process hosts.
  virtual LocalRanks join(int ranks) = 0;
  /// Sends and receives all pieces between ranks of this process and ranks of others. `transfers`: one for each rank of
  /// this process. Called by one thread at a time. Errors: Error(comm) naming the ranks that did not answer in time.
  virtual void exchange(const std::vector<const Transfer*>& transfers, Wait) = 0;
  /// Tells all other processes to end at once, with this exit code. This one goes on: its caller ends it, or throws.
  virtual void abort(int exit_code) noexcept = 0;
};

/// Joins the processes that a launcher started together with this one (core/comm/launcher.h): those of mpirun with MPI,
/// others over TCP. Returns null if this process was started alone, as it was where the surroundings have no
/// environment. Errors: Error(usage) when the environment does not
/// say what is needed, or mpirun has started it and MPI cannot be loaded; Error(comm).
std::unique_ptr<Processes> started_processes(const JoinLimits&, const Surroundings&);

}  // namespace hctr
