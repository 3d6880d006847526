// Tracks which batch buffers are free. The filling thread acquires the buffers in turn, and waits for each until it is
// free. close() ends such a wait.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "core/base/expect.h"

namespace hctr {

class BufferRing {
 public:
  explicit BufferRing(size_t buffers) : free_(buffers, true) {}

  /// Blocks until the buffer is free and acquires it. Returns false if closed.
  bool acquire(size_t buffer) {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [&] { return closed_ || free_[buffer]; });
    free_[buffer] = false;
    return !closed_;
  }
  void release(size_t buffer) {
    {
      const std::lock_guard lock(mutex_);
      HCTR_EXPECT(buffer < free_.size() && !free_[buffer], "buffer ", buffer, " was released, but is not in use");
      free_[buffer] = true;
    }
    change_.notify_one();
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    change_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<bool> free_;
  bool closed_ = false;
};

}  // namespace hctr
