// The ranks that share the tables of embedding sets: threads of one process, or of several processes that join over TCP
// or MPI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Timeouts, in seconds.
struct RankWaits {
  /// timeout of a collective call in which other ranks are late; a late rank counts as lost; 0: no timeout
  int call_seconds = 60;
  int join_seconds = 300;    ///< timeout for all processes to join
  int silence_seconds = 20;  ///< timeout for the next heartbeat of another process; heartbeats are sent every second
};

/// The options of one process that joins a group.
struct JoinOptions {
  int ranks = 1;  ///< number of ranks in this process
  /// The address where process 0 accepts the other processes over TCP. Empty: the launcher's environment variables in
  /// `surroundings` decide: mpirun (with MPI), RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or srun
  /// (docs/distributed.md).
  std::string address{};
  int port = 0;
  int process = 0, processes = 1;  ///< if `address` is set: the index of this process, and the number of processes
  /// A shared secret of at least 16 characters. Without a secret, any process that reaches the port can join.
  std::string secret{};
  RankWaits waits{};
  /// Optional: the environment and log, end_process() and on_lost_peer() (see Surroundings).
  Surroundings surroundings{};
};

/// One rank of a group. Copies refer to the same rank. A rank is used by one thread at a time. All ranks of a group
/// make the same collective calls in the same order, over all their sets. A rank is lost when its last copy and its
/// sets are destroyed; collective calls of the other ranks then fail. A thread that may end early must therefore own
/// its rank.
class HCTR_API EmbeddingRank {
 public:
  /// The rank of a single set without a group, which has all rows of its tables.
  EmbeddingRank() = default;
  /// Makes a group of `ranks` ranks, one for each thread of this process.
  static std::vector<EmbeddingRank> of_threads(int ranks, const RankWaits& = {});
  /// Returns the ranks of this process in a group of several processes. Each process makes this call, which waits until
  /// all processes have joined. Errors: Error(usage) for invalid options; Error(comm) naming the process that did not
  /// join, or has another secret.
  static std::vector<EmbeddingRank> of_processes(const JoinOptions&);

  int rank() const;
  int size() const;  ///< number of ranks in the group; 1 without a group

  struct HCTR_HIDDEN State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hctr
