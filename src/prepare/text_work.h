// A text read from front to back by many threads: blocks worked on side by side, results taken in order, progress
// shown.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "base/ordered_workers.h"
#include "base/progress.h"
#include "prepare/text_source.h"

namespace hctr {

/// Sends every block of `source` through `work`, in parallel, and its result through `take`, in order. `Item` is what a
/// thread keeps from block to block; it has a member `TextBlock block`.
template <class Item, class Result>
void for_each_block(TextSource& source, int threads, const std::string& what, const std::function<Result(Item&)>& work,
                    const std::function<void(Result&)>& take) {
  struct Done {
    Result result;
    int64_t bytes, rows;
  };
  Progress progress(what, "bytes", source.bytes());
  OrderedWorkers<Item, Done> workers(
      threads, [&](Item& item) { return source.next(item.block); },
      [&](Item& item) {
        Result result = work(item);
        return Done{std::move(result), item.block.bytes_done, item.block.first_row};
      });
  while (std::optional<Done> done = workers.next()) {
    take(done->result);
    progress.update(done->bytes, with_unit_prefix(static_cast<double>(done->rows)) + " rows");
  }
  progress.finish();
}

/// What each thread made for itself while it worked.
template <class T>
class PerThread {
 public:
  /// The caller's own, which `mine` points to from then on; made at its first call.
  T& get(T*& mine) {
    if (!mine) {
      const std::lock_guard lock(mutex_);
      mine = &all_.emplace_back();
    }
    return *mine;
  }
  /// For when the threads are done.
  std::deque<T>& all() { return all_; }

 private:
  std::mutex mutex_;
  std::deque<T> all_;
};

/// Rows in all files, as TextSource finds them. Plain files are counted piece by piece, `piece` bytes each, by all
/// threads; packed ones each by one.
int64_t count_rows(const std::vector<std::string>& files, const std::optional<std::string>& header, int threads,
                   int64_t piece = 4 << 20);

}  // namespace hctr
