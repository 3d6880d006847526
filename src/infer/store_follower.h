// Keeps a store up to date while a program runs: reads streams, applies deltas of files, and reads the commits of
// another process.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.h"
#include "hctr/store_stream.h"
#include "store/store_config.h"

namespace hctr {

class StoreFollower {
 public:
  /// Starts one thread for each "stream" of the config. One more thread applies the deltas that appear at each
  /// "updates" prefix, and reads the commits of the process that updates the lowest level. Logs a warning when a
  /// problem has lasted for some time, and when it ends. The store outlives the follower. Errors: those of StoreStream.
  StoreFollower(Store&, const StoreConfig&, const Log&);
  ~StoreFollower();
  StoreFollower(const StoreFollower&) = delete;
  StoreFollower& operator=(const StoreFollower&) = delete;

  struct Stream {
    std::string model;
    StoreStreamStatistics statistics;
  };
  /// Thread-safe.
  std::vector<Stream> streams() const;

 private:
  /// A problem is reported only after it has lasted for some seconds. Shorter problems are normal: a delta is
  /// incomplete while messages of several partitions arrive out of order.
  struct Problem {
    std::string now{}, reported{};
    std::chrono::steady_clock::time_point since{};
  };
  struct Followed {
    std::string model;
    std::unique_ptr<StoreStream> stream{};
    std::string updates{};  // the snapshot_prefix of the deltas to apply; empty: none
    Problem problem{};
  };
  void run();
  /// Starts to apply updates. If the store is in shared memory and another process applies updates, they start in this
  /// process after the other one has ended.
  void start_updates();
  void look_at_files(Followed&);
  void note(Problem&, const std::string& what, const std::string& now);

  Store& store_;
  const StoreConfig config_;
  const bool refreshes_;
  bool updates_ = false;  // whether this process applies updates
  const Log log_;
  mutable std::mutex streams_;  // guards Followed::stream
  std::vector<Followed> models_;
  Problem refresh_{};
  std::atomic<bool> stops_ = false;
  std::thread thread_;  // declared last, because the thread uses the other members
};

}  // namespace hctr
