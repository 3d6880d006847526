// Threads that take items from one source in turn, work on them side by side, and hand the results over in the items'
// order.
#pragma once

#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/queue.h"

namespace hctr {

/// Each thread keeps one Item and has it filled again and again, so an Item may own buffers and scratch memory.
/// An item gets its place in line when the source fills it: the order of results does not depend on the number of
/// threads.
template <class Item, class Result>
class OrderedWorkers {
 public:
  /// `source` fills an item, or returns false at the end; called by one thread at a time. `work` is called by all at
  /// once. Results that nobody has taken yet: at most 2 * threads + 2.
  OrderedWorkers(int threads, std::function<bool(Item&)> source, std::function<Result(Item&)> work)
      : source_(std::move(source)), work_(std::move(work)), line_(2 * static_cast<size_t>(threads) + 2) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~OrderedWorkers() {
    close();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// The next result; empty at the end, or when closed. Rethrows what source or work threw for that item.
  std::optional<Result> next() {
    std::optional<Place> place = line_.pop();
    return place ? place->get() : std::nullopt;
  }
  /// Nothing more is wanted; wakes next().
  void close() { line_.close(); }

 private:
  using Place = std::future<std::optional<Result>>;

  void run() {
    Item item;
    for (;;) {
      std::promise<std::optional<Result>> promise;
      try {
        {
          const std::lock_guard turn(source_mutex_);
          if (!line_.push(promise.get_future())) return;
          if (!source_(item)) {
            line_.close();
            promise.set_value(std::nullopt);
            return;
          }
        }
        promise.set_value(work_(item));
      } catch (...) {
        line_.close();  // nothing behind an error is wanted
        promise.set_exception(std::current_exception());
        return;
      }
    }
  }

  std::function<bool(Item&)> source_;
  std::function<Result(Item&)> work_;
  std::mutex source_mutex_;
  BoundedQueue<Place> line_;
  std::vector<std::thread> threads_;
};

}  // namespace hctr
