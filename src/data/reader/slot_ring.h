// Which batch slots are free. The filler asks for one slot after another and waits for each; closing wakes it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace hctr {

class SlotRing {
 public:
  explicit SlotRing(size_t slots) : free_(slots, true) {}

  /// Waits until the slot is free and takes it. False when closed.
  bool take(size_t slot) {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [&] { return closed_ || free_[slot]; });
    free_[slot] = false;
    return !closed_;
  }
  void release(size_t slot) {
    {
      const std::lock_guard lock(mutex_);
      HCTR_EXPECT(slot < free_.size() && !free_[slot], "slot ", slot, " released without being held");
      free_[slot] = true;
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
