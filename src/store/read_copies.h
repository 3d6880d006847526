// A value that one writer replaces while readers use it without locks.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace hctr {

/// Stores two copies, one of which is current. Each reader increments a counter of the copy that it reads. A previous
/// value is destroyed when its counters are zero (P. McKenney, "Sleepable read-copy update", 2006), by the writer, or
/// by the last reader if the writer no longer waits. Readers do not wait for a writer. Only one thread may write at a
/// time.
template <class T>
class ReadCopies {
 public:
  ReadCopies() = default;
  explicit ReadCopies(T first) { values_[0] = std::move(first); }
  ReadCopies(const ReadCopies&) = delete;
  ReadCopies& operator=(const ReadCopies&) = delete;

  /// Keeps the current value alive until destruction. Any thread may destroy the object.
  class Reading {
   public:
    explicit Reading(const ReadCopies& of) {
      size_t stripe = std::hash<std::thread::id>()(std::this_thread::get_id());
      stripe = (stripe ^ (stripe >> 12)) % kStripes;  // mixes the bits: thread identifiers are addresses
      for (;;) {
        const uint32_t place = of.current_.load();
        counter_ = &of.readers_[place][stripe].count;
        counter_->fetch_add(1);
        if (of.current_.load() == place) {
          of_ = &of;
          place_ = place;
          return;
        }
        counter_->fetch_sub(1);
        of.destroy_unused();  // this reader's count may have kept the writer from destroying the value
      }
    }
    ~Reading() {
      counter_->fetch_sub(1);
      // In the order of all atomic operations, either this load sees a new current value, or the writer sees the count.
      if (of_->current_.load() != place_) of_->destroy_unused();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const T& operator*() const { return of_->values_[place_]; }
    const T* operator->() const { return &of_->values_[place_]; }

   private:
    std::atomic<int64_t>* counter_;
    const ReadCopies* of_;
    uint32_t place_;
  };

  // Only the writer may call this.
  const T& get() const { return values_[current_.load()]; }
  /// Makes `next` the current value for new readers. First waits for readers of the value before the current one.
  void set(T next) {
    wait();
    {
      const std::lock_guard lock(changing_);
      const uint32_t after = 1 - current_.load();
      values_[after] = std::move(next);
      current_.store(after);
    }
    destroy_unused();
  }
  /// Returns when no reader uses a previous value. Other threads may call get() meanwhile.
  void wait() {
    for (int tries = 0; !destroy_unused(); ++tries)
      tries < 64 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Like wait(), but returns after at most `most`. If readers of a previous value remain then, the last of these
  /// readers destroys the value, which may delay that reader.
  void wait_for(std::chrono::milliseconds most) {
    const auto until = std::chrono::steady_clock::now() + most;
    while (!destroy_unused() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  /// Calls set(), then wait().
  void replace(T next) {
    set(std::move(next));
    wait();
  }

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Counter {
    std::atomic<int64_t> count{0};
  };
  /// Destroys the previous value if no reader uses it. Returns whether no previous value remains.
  bool destroy_unused() const {
    T unused;  // destroyed without the lock
    const std::lock_guard lock(changing_);
    const uint32_t before = 1 - current_.load();
    if (has_readers(before)) return false;
    unused = std::exchange(values_[before], T());
    return true;
  }
  bool has_readers(uint32_t place) const {
    for (const Counter& stripe : readers_[place])
      if (stripe.count.load() != 0) return true;
    return false;
  }

  mutable std::mutex changing_;  // serializes writes to the value that is not current
  mutable std::array<T, 2> values_{};
  std::atomic<uint32_t> current_{0};
  mutable std::array<std::array<Counter, kStripes>, 2> readers_{};
};

}  // namespace hctr
