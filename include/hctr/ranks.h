// The ranks that share the tables of embedding sets: threads of one process, and of processes that join.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/surroundings.h"

namespace hctr {

/// How ranks wait for each other.
struct RankWaits {
  int call_seconds = 60;     ///< for a rank that is late in a call of a step, which counts as lost then; 0: no limit
  int join_seconds = 300;    ///< for all processes to be there
  int silence_seconds = 20;  ///< for a sign of life of another process, which each gives every second
};

/// One process of several that join.
struct JoinOptions {
  int ranks = 1;  ///< of this process
  /// Where process 0 waits for the others over TCP. Empty: as the launcher says in the environment of `surroundings`
  /// (mpirun with MPI, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or srun; docs/distributed.md).
  std::string address{};
  int port = 0;
  int process = 0, processes = 1;  ///< with an address: the number of this one, and how many there are
  /// By which they know each other, at least 16 characters; whoever reaches the port can join without one.
  std::string secret{};
  RankWaits waits{};
  /// Environment and log; end_process() and on_lost_peer() as they say there. All may be left out.
  Surroundings surroundings{};
};

/// One rank of a group. Copies are the same rank. Each is used by one thread at a time, and all ranks of a group make
/// the same collective calls in the same order, of all their sets together. Once the last copy of a rank is gone, with
/// its sets, the others get an error from the calls in which they would wait for it: so a thread that may end early
/// owns its rank.
class HCTR_API EmbeddingRank {
 public:
  /// No group: the tables belong to one set.
  EmbeddingRank() = default;
  /// So many ranks, each for a thread of this process.
  static std::vector<EmbeddingRank> of_threads(int ranks, const RankWaits& = {});
  /// The ranks of this process among those of several; each process makes this call. Waits until all are there. Errors:
  /// Error(usage) for options that do not fit; Error(comm) naming who did not come, or has another secret.
  static std::vector<EmbeddingRank> of_processes(const JoinOptions&);

  int rank() const;
  int size() const;  ///< ranks of the group; 1 without one

  struct HCTR_HIDDEN State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hctr
