// A bounded queue between threads. Closing it wakes everyone; an exception put in comes out at the other end.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

namespace hctr {

/// First in, first out, at most `capacity` items. Any number of producers and consumers.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  /// Waits for room. False when the queue was closed: the item was not taken and the producer should stop.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    some_.notify_one();
    return true;
  }

  /// Waits for an item. Empty when the queue was closed and drained; throws what fail() was given, once drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    some_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    T item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

  /// No more items will come (from the producer), or are wanted (from the consumer). Items inside can still be popped.
  void close() { finish(nullptr); }
  /// As close(), and consumers get `error` after the items inside.
  void fail(std::exception_ptr error) { finish(std::move(error)); }

 private:
  void finish(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) error_ = std::move(error);
      closed_ = true;
    }
    room_.notify_all();
    some_.notify_all();
  }

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable room_, some_;
  std::deque<T> items_;
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace hctr
