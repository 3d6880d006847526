// A background thread for work that must not delay look-ups.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hctr {

/// Runs work in one thread. Drops work if the queue is full, and at destruction.
class RedisBackground {
 public:
  RedisBackground() : thread_([this] { serve(); }) {}
  ~RedisBackground() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wanted_.notify_all();
    thread_.join();
  }
  void add(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() == kMostWaiting) return;
      waiting_.push_back(std::move(work));
    }
    wanted_.notify_one();
  }

 private:
  static constexpr size_t kMostWaiting = 64;
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::function<void()>> waiting_{};
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace hctr
