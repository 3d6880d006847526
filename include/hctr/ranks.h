// The ranks that share the tables of embedding sets: threads of one process, or of several processes that join.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Timeouts of ranks.
struct RankWaits {
  int call_seconds = 60;     ///< for a rank that is late in a call of a step, which then counts as lost; 0: none
  int join_seconds = 300;    ///< until all processes have joined
  int silence_seconds = 20;  ///< for the heartbeat of another process, which each sends every second
};

/// One of several processes that join.
struct JoinOptions {
  int ranks = 1;  ///< of this process
  /// The address at which process 0 waits for the others over TCP. Empty: taken from the launcher's variables in the
  /// environment of `surroundings` (mpirun with MPI, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or srun;
  /// docs/distributed.md).
  std::string address{};
  int port = 0;
  int process = 0, processes = 1;  ///< with an address: the number of this process, and how many there are
  /// A shared secret of at least 16 characters; without one, any process that reaches the port can join.
  std::string secret{};
  RankWaits waits{};
  /// The environment and log; and end_process() and on_lost_peer(), as documented there. All are optional.
  Surroundings surroundings{};
};

/// One rank of a group. Copies are the same rank. One thread at a time uses a rank, and all ranks of a group make the
/// same collective calls in the same order, over all their sets. Once the last copy of a rank is destroyed, with its
/// sets, calls in which others would wait for it fail; so a thread that may end early must own its rank.
class HCTR_API EmbeddingRank {
 public:
  /// No group: the tables belong to one set.
  EmbeddingRank() = default;
  /// Makes `ranks` ranks, each for a thread of this process.
  static std::vector<EmbeddingRank> of_threads(int ranks, const RankWaits& = {});
  /// The ranks of this process in a group of several processes; each process makes this call. Waits until all have
  /// joined. Errors: Error(usage) for options that do not fit; Error(comm) naming the process that did not join, or has
  /// another secret.
  static std::vector<EmbeddingRank> of_processes(const JoinOptions&);

  int rank() const;
  int size() const;  ///< ranks of the group; 1 without one

  struct HCTR_HIDDEN State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hctr
