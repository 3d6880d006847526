// Processes a text with many threads: blocks are processed concurrently, results are delivered in order, and progress
// is shown.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "core/base/ordered_workers.h"
#include "core/base/progress.h"
#include "prepare/text_source.h"

namespace hctr {

/// Calls work() for every block of `source` concurrently, and sink() for every result in order. `Item` is the state
/// that a thread keeps from block to block; it has a member `TextBlock block`. `show`: for the progress of `what`.
template <class Item, class Result>
void for_each_block(TextSource& source, int threads, const ShowProgress& show, const std::string& what,
                    const std::function<Result(Item&)>& work, const std::function<void(Result&)>& sink) {
  struct Done {
    Result result;
    int64_t bytes, rows;
  };
  Progress progress(show, what, "bytes", source.bytes());
  OrderedWorkers<Item, Done> workers(
      threads, [&](Item& item) { return source.next(item.block); },
      [&](Item& item) {
        Result result = work(item);
        return Done{std::move(result), item.block.bytes_done, item.block.first_row};
      });
  while (std::optional<Done> done = workers.next()) {
    sink(done->result);
    progress.update(done->bytes, with_unit_prefix(static_cast<double>(done->rows)) + " rows");
  }
  progress.finish();
}

/// Holds one object per thread.
template <class T>
class PerThread {
 public:
  /// Returns the calling thread's object, creating it on the first call. `mine` caches the pointer.
  T& get(T*& mine) {
    if (!mine) {
      const std::lock_guard lock(mutex_);
      mine = &all_.emplace_back();
    }
    return *mine;
  }
  /// Returns all objects. Call after the threads have finished.
  std::deque<T>& all() { return all_; }

 private:
  std::mutex mutex_;
  std::deque<T> all_;
};

/// Counts the rows of all files, as TextSource defines them. Plain files without quotes are counted by all threads in
/// pieces of `piece` bytes; each other file is counted by one thread.
int64_t count_rows(const std::vector<std::string>& files, const std::optional<std::string>& header,
                   const TextGrammar& grammar, int threads, const ShowProgress& show = {}, int64_t piece = 4 << 20);

}  // namespace hctr
