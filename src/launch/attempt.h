// What a process that is started again when it fails says to the one that starts it.
#pragma once

#include <atomic>
#include <cstdint>

namespace hctr {

class AgreedSecret;

/// One of several attempts at a run, by a process that another one starts again when it fails: what the one says to the
/// other. It lies in memory that both share.
struct Attempt {
  int number = 0;                             ///< from 0
  std::atomic<bool> joined{false};            ///< with the other processes, if there are any
  std::atomic<int64_t> from = -1;             ///< the iteration after which it begins; -1: it has not come so far
  std::atomic<bool> owns_checkpoints{false};  ///< the checkpoints in the config's folder are those of this run
  AgreedSecret* secret = nullptr;  ///< by which the processes know each other when they join again; shared too
};

}  // namespace hctr
