// Worker threads that process items in parallel and return the results in item order.
#pragma once

#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/queue.h"

namespace hctr {

/// Each thread reuses one Item, so an Item may own buffers and scratch memory. Results are returned in the order in
/// which the source filled the items, for any number of threads.
template <class Item, class Result>
class OrderedWorkers {
 public:
  /// `source` fills an item, or returns false at the end; only one thread calls `source` at a time. Threads call `work`
  /// concurrently. At most 2 * threads + 2 results are queued.
  OrderedWorkers(int threads, std::function<bool(Item&)> source, std::function<Result(Item&)> work)
      : source_(std::move(source)), work_(std::move(work)), results_(2 * static_cast<size_t>(threads) + 2) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {  // The threads that have started must be joined before the vector is destroyed.
      end();
      throw;
    }
  }
  ~OrderedWorkers() { end(); }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Returns the next result, or nullopt at the end and after close(). If `source` or `work` threw an exception for the
  /// item, next() throws it.
  std::optional<Result> next() {
    std::optional<FutureResult> result = results_.pop();
    return result ? result->get() : std::nullopt;
  }
  /// Stops the threads and wakes next().
  void close() { results_.close(); }

 private:
  void end() {
    close();
    for (std::thread& thread : threads_) thread.join();
  }

  using FutureResult = std::future<std::optional<Result>>;

  void run() {
    Item item;
    for (;;) {
      std::promise<std::optional<Result>> promise;
      try {
        {
          const std::lock_guard lock(source_mutex_);
          if (!results_.push(promise.get_future())) return;
          if (!source_(item)) {
            results_.close();
            promise.set_value(std::nullopt);
            return;
          }
        }
        promise.set_value(work_(item));
      } catch (...) {
        results_.close();  // the caller gets no results after the failed item
        promise.set_exception(std::current_exception());
        return;
      }
    }
  }

  std::function<bool(Item&)> source_;
  std::function<Result(Item&)> work_;
  std::mutex source_mutex_;
  BoundedQueue<FutureResult> results_;
  std::vector<std::thread> threads_;
};

}  // namespace hctr
