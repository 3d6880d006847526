// Parallel loops on a fixed set of threads. The split into chunks depends only on the range and the grain, so results
// do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace hctr {

class ThreadPool {
 public:
  /// `threads`: including the caller's; with 1 everything runs in the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(begin, end) for every chunk of `grain` items of [0, count). Returns when all calls have returned, and
  /// rethrows the first exception. One caller at a time; body must not call parallel_for of the same pool.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The number of cores this process may use, by its affinity and container limits; at least 1.
int usable_cores();

}  // namespace hctr
