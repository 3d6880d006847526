// A bounded queue between threads. close() wakes all waiting threads; pop() rethrows an exception passed to fail().
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

namespace hctr {

/// A FIFO of at most `capacity` items for any number of producers and consumers.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  /// Blocks while the queue is full. Returns false if the queue is closed: the item is then dropped, and the producer
  /// should stop.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  /// Blocks until an item arrives. Once the queue is closed and drained, returns nullopt or throws the error passed to
  /// fail().
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    T item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

  /// Blocks for at most `limit`. Returns whether pop() would not block now.
  template <class Duration>
  bool wait(Duration limit) {
    std::unique_lock lock(mutex_);
    return not_empty_.wait_for(lock, limit, [&] { return closed_ || !items_.empty(); });
  }

  /// A producer calls close() after its last item, and a consumer calls it when it needs no more items. pop() still
  /// returns the queued items.
  void close() { finish(nullptr); }
  /// Like close(), but pop() throws `error` after the queued items.
  void fail(std::exception_ptr error) { finish(std::move(error)); }

 private:
  void finish(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) error_ = std::move(error);
      closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::deque<T> items_;
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace hctr
