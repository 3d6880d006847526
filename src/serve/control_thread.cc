#include "serve/control_thread.h"

#include <utility>

namespace hctr::serve {

ControlThread::ControlThread(std::function<void()> idle, std::chrono::milliseconds every)
    : idle_(std::move(idle)), every_(every), thread_([this] { run(); }) {}

ControlThread::~ControlThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  filled_.notify_one();
  thread_.join();
}

void ControlThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  filled_.notify_one();
}

void ControlThread::run() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      filled_.wait_for(lock, every_, [&] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty() && ends_) return;
      if (!tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task) task();
    idle_();
  }
}

}  // namespace hctr::serve
