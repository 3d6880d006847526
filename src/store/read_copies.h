// A value that a writer replaces while readers use it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace hctr {

/// Two places for values, of which one is current; each reader counts itself in that of its place, and the writer waits
/// until the other place has none before it uses it again (P. McKenney, "Sleepable read-copy update", 2006). Readers
/// never wait. One thread at a time writes.
template <class T>
class ReadCopies {
 public:
  ReadCopies() = default;
  explicit ReadCopies(T first) { values_[0] = std::move(first); }
  ReadCopies(const ReadCopies&) = delete;
  ReadCopies& operator=(const ReadCopies&) = delete;

  /// The value as it is now, as long as this lives; any thread may end it.
  class Reading {
   public:
    explicit Reading(const ReadCopies& of) {
      size_t stripe = std::hash<std::thread::id>()(std::this_thread::get_id());
      stripe = (stripe ^ (stripe >> 12)) % kStripes;  // identifiers are addresses
      for (;;) {
        const uint32_t place = of.current_.load();
        counter_ = &of.readers_[place][stripe].count;
        counter_->fetch_add(1);
        if (of.current_.load() == place) {
          value_ = &of.values_[place];
          return;
        }
        counter_->fetch_sub(1);
      }
    }
    ~Reading() { counter_->fetch_sub(1); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_; }

   private:
    std::atomic<int64_t>* counter_;
    const T* value_;
  };

  // Of the writer.
  const T& get() const { return values_[current_.load()]; }
  /// Readers that begin from now on see `next`. Returns when the others have ended.
  void replace(T next) {
    const uint32_t before = current_.load(), after = 1 - before;
    values_[after] = std::move(next);
    current_.store(after);
    for (int tries = 0; has_readers(before); ++tries)
      tries < 64 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
    values_[before] = T();
  }

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Counter {
    std::atomic<int64_t> count{0};
  };
  bool has_readers(uint32_t place) const {
    for (const Counter& stripe : readers_[place])
      if (stripe.count.load() != 0) return true;
    return false;
  }

  std::array<T, 2> values_{};
  std::atomic<uint32_t> current_{0};
  mutable std::array<std::array<Counter, kStripes>, 2> readers_{};
};

}  // namespace hctr
