// A thread for slow tasks: loading and unloading models.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hctr::serve {

/// Runs tasks in order. Calls `idle` after each task, and at intervals of `every` while there is no task.
class ControlThread {
 public:
  ControlThread(std::function<void()> idle, std::chrono::milliseconds every);
  /// Runs the posted tasks, then ends.
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;
  void post(std::function<void()> task);

 private:
  void run();

  std::function<void()> idle_;
  std::chrono::milliseconds every_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hctr::serve
