// The messages of a restarted process to the process that restarts it.
#pragma once

#include <atomic>
#include <cstdint>

namespace hctr {

class AgreedSecret;

/// One of several attempts at a run, by a process that another one restarts when it fails. In memory that both
/// processes share.
struct Attempt {
  int number = 0;                             ///< from 0
  std::atomic<bool> joined{false};            ///< with the other processes, if any
  std::atomic<int64_t> from = -1;             ///< the iteration after which it begins; -1: not reached
  std::atomic<bool> owns_checkpoints{false};  ///< the checkpoints in the config's folder belong to this run
  AgreedSecret* secret = nullptr;             ///< authenticates the processes when they join again; also shared
};

}  // namespace hctr
