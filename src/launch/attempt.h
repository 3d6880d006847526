// The status that a worker process shares with its keeper, the process that restarts a failed worker.
#pragma once

#include <atomic>
#include <cstdint>

namespace hctr {

class AgreedSecret;

/// One of several attempts at a run. The worker writes this struct, in memory shared with the keeper that restarts a
/// failed worker.
struct Attempt {
  int number = 0;                             ///< counted from 0
  std::atomic<bool> joined{false};            ///< whether the attempt has joined the other processes, if any
  std::atomic<int64_t> from = -1;             ///< the attempt resumes after this iteration; -1: not known yet
  std::atomic<bool> owns_checkpoints{false};  ///< whether checkpoints in the config's folder belong to this run
  AgreedSecret* secret = nullptr;             ///< authenticates the processes when they rejoin; also in shared memory
};

}  // namespace hctr
