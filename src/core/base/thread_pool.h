// Parallel loops on a fixed set of threads. Chunks depend only on the range and the grain, so results do not depend on
// the number of threads.
#pragma once

#include <cstdint>
#include <memory>

namespace hctr {

class ThreadPool {
 public:
  /// `threads` includes the calling thread. With 1, the caller runs every loop alone.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(begin, end) for every chunk of `grain` items of [0, count). Returns after all calls and rethrows the
  /// first exception. Only one thread may call at a time. `body` must not call parallel_for() of the same pool.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, const Body& body) {
    run(count, grain, &body, call<Body>);
  }

 private:
  // A function pointer instead of a std::function. With std::function, a tenth of the operators' code would only copy
  // and destroy bodies.
  using Call = void (*)(const void* body, int64_t begin, int64_t end);
  template <class Body>
  static void call(const void* body, int64_t begin, int64_t end) {
    (*static_cast<const Body*>(body))(begin, end);
  }
  void run(int64_t count, int64_t grain, const void* body, Call);

  struct State;
  std::unique_ptr<State> state_;
};

/// Cores that this process may use, by CPU affinity and cgroup quota; at least 1.
int usable_cores();

}  // namespace hctr
