// Processes the blocks of a text in many threads, and delivers the results in order with a progress display.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "core/base/ordered_workers.h"
#include "core/base/progress.h"
#include "prepare/text_source.h"

namespace hctr {

/// Calls work() concurrently for each block of `source`, and sink() for each result in order. `Item`: state that a
/// thread reuses between blocks; has a member `TextBlock block`. `show`, `what`: the progress display and its label.
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
  /// The calling thread's object, created by the first call. `mine`: caches the pointer.
  T& get(T*& mine) {
    if (!mine) {
      const std::lock_guard lock(mutex_);
      mine = &all_.emplace_back();
    }
    return *mine;
  }
  /// All objects. Call after the threads have finished.
  std::deque<T>& all() { return all_; }

 private:
  std::mutex mutex_;
  std::deque<T> all_;
};

/// Counts the rows of all files; TextSource defines what a row is. All threads count plain files without quotes in
/// pieces of `piece` bytes. Each other file is counted by one thread.
int64_t count_rows(const std::vector<std::string>& files, const std::optional<std::string>& header,
                   const TextGrammar& grammar, int threads, const ShowProgress& show = {}, int64_t piece = 4 << 20);

}  // namespace hctr
