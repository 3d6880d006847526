// Limits the rate of work per second.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace hctr {

class RateLimit {
 public:
  /// `per_second`: maximum amount per second; 0: no limit.
  explicit RateLimit(int64_t per_second) : per_second_(per_second) {}
  bool limits() const { return per_second_ > 0; }
  /// Waits until the rate permits further work, then counts `amount`. `frees`: releases `lock` during the wait.
  void wait_for(int64_t amount, std::unique_lock<std::mutex>& lock, bool frees) {
    if (per_second_ <= 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (free_at_ > now) {
      if (frees) lock.unlock();
      std::this_thread::sleep_for(free_at_ - now);
      if (frees) lock.lock();
    }
    free_at_ = std::max(free_at_, now) + std::chrono::nanoseconds(amount * 1'000'000'000 / per_second_);
  }

 private:
  int64_t per_second_;
  std::chrono::steady_clock::time_point free_at_{};
};

}  // namespace hctr
