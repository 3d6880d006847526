// Converts a caller's bags of keys from sample order to the slot order of a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "config/sections/config.h"
#include "core/base/thread_pool.h"
#include "formats/data/batch_layout.h"
#include "hctr/model.h"

namespace hctr {

class BagPacking {
 public:
  /// Counts the keys of samples [first, first + count). All arguments must outlive this object. Errors: Error(usage)
  /// for decreasing offsets, and for a bag with more keys than its slot accepts.
  BagPacking(ThreadPool&, const InputView&, int64_t first, int64_t count, const SparseInput&, const BatchShape::Table&);

  int64_t keys() const { return keys_; }
  /// Whether every key is in 0 ... 2^32 - 1.
  bool fits_32() const { return fits_32_; }
  /// Writes keys and offsets to a table of a batch. The batch has memory for `samples` samples. Bags past `count` are
  /// empty.
  void write(const BatchView::Table&, int64_t samples) const;

 private:
  struct Bag {
    int64_t begin, end;  // the batch keeps keys [begin, end) of the caller's keys
  };
  template <class Offset>
  void count_keys(const Offset* offsets);
  template <class Offset, class From, class To>
  void write_keys(const Offset* offsets, const From* from, To* to, int32_t* offsets_to, int64_t samples) const;
  Bag kept(int64_t begin, int64_t end) const;

  ThreadPool& threads_;
  const InputView& view_;
  const SparseInput& section_;
  const BatchShape::Table& shape_;
  int64_t first_, count_, samples_of_task_;
  int64_t keys_ = 0;
  bool fits_32_ = true;
  std::vector<int64_t> begins_;  // [tasks, slots] index in the table of the first key that the task writes for the slot
};

}  // namespace hctr
