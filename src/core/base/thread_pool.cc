#include "core/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/short_waits.h"

namespace hctr {
namespace {

// Spin time before a thread sleeps. A step runs a few hundred loops in quick succession.
constexpr std::chrono::microseconds kUntilAsleep(50);
// number of loops in which threads do not spin after other threads have competed for the core
constexpr uint64_t kLoopsAsleep = 1000;

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable start, done;
  // The next members are written only while `mutex` is locked.
  std::atomic<uint64_t> generation = 0;  // number of loops so far; each worker runs each loop once
  std::atomic<int> busy = 0;             // workers that have not finished the current loop
  std::atomic<bool> stop = false;

  int64_t count = 0, grain = 1;
  const void* body = nullptr;
  Call call = nullptr;
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::vector<std::thread> workers;
  bool may_spin = true;
  std::atomic<uint64_t> asleep_until = 0;  // threads do not spin until `generation` reaches this value

  /// Spins for up to kUntilAsleep. Does not spin if the pool has more threads than cores, or if other threads recently
  /// competed for the core. Several thread pools in one process, such as OpenMP's, share cores only if idle threads
  /// sleep.
  template <class Over>
  void wait_shortly(const Over& over) {
    const uint64_t loop = generation;
    if (may_spin && loop >= asleep_until && !spin_until(kUntilAsleep, over)) asleep_until = loop + kLoopsAsleep;
  }

  void run_chunks() {
    for (int64_t begin; (begin = next.fetch_add(grain)) < count;) {
      try {
        call(body, begin, std::min(begin + grain, count));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(count);
      }
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    start.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void work() {
    uint64_t seen = 0;
    const auto may_go_on = [&] { return stop || generation != seen; };
    for (;;) {
      wait_shortly(may_go_on);
      {
        std::unique_lock lock(mutex);
        start.wait(lock, may_go_on);
        if (stop) return;
        seen = generation;
      }
      run_chunks();
      const std::lock_guard lock(mutex);
      if (--busy == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  state_->may_spin = threads <= usable_cores();
  try {
    for (int i = 1; i < threads; ++i) state_->workers.emplace_back([s = state_.get()] { s->work(); });
  } catch (...) {  // The threads that have started must be joined before the vector is destroyed.
    state_->end();
    throw;
  }
}

ThreadPool::~ThreadPool() { state_->end(); }

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(int64_t count, int64_t grain, const void* body, Call call_body) {
  grain = std::max<int64_t>(grain, 1);
  State& s = *state_;
  if (s.workers.empty() || count <= grain) {
    for (int64_t begin = 0; begin < count; begin += grain) call_body(body, begin, std::min(begin + grain, count));
    return;
  }
  {
    const std::lock_guard lock(s.mutex);
    s.count = count;
    s.grain = grain;
    s.body = body;
    s.call = call_body;
    s.next = 0;
    s.error = nullptr;
    s.busy = static_cast<int>(s.workers.size());
    ++s.generation;
  }
  s.start.notify_all();
  s.run_chunks();
  const auto all_are_done = [&] { return s.busy == 0; };
  s.wait_shortly(all_are_done);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, all_are_done);
  if (s.error) std::rethrow_exception(s.error);
}

int usable_cores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::min(cores, CPU_COUNT(&set));
  std::ifstream limit("/sys/fs/cgroup/cpu.max");  // "<quota> <period>", or "max <period>"
  std::string quota;
  double period = 0;
  if (limit >> quota >> period && quota != "max" && period > 0)
    cores = std::min(cores, static_cast<int>(std::stod(quota) / period + 0.999));
  return std::max(cores, 1);
}

}  // namespace hctr
