// Threads that read from disk in parallel with the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hctr {

/// Without io_uring, RocksDB reads the blocks of a MultiGet sequentially. This pool splits a request into pieces for
/// several threads, so that many reads are in flight.
class ReaderThreads {
 public:
  explicit ReaderThreads(int32_t count);
  ~ReaderThreads();
  /// Calls body(0) ... body(pieces - 1), in the pool's threads and in this thread. Returns when all calls are complete.
  /// body must not throw.
  void run(int64_t pieces, const std::function<void(int64_t)>& body);

 private:
  struct Job {
    int64_t pieces;
    const std::function<void(int64_t)>* body;
    std::atomic<int64_t> next{0};
    int64_t done = 0;  // guarded by mutex_
  };
  void work(Job&);
  void serve();

  std::mutex mutex_;
  std::condition_variable wanted_, finished_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hctr
