// Caches evaluation batches in device memory, so that later evaluations need not read them again.
#pragma once

#include <optional>
#include <vector>

#include "formats/reader/reader_position.h"
#include "score/batch_ring.h"

namespace hctr {

class EvalCache {
 public:
  using Groups = std::vector<std::optional<int64_t>>;  // group of each sample; empty if no metric needs groups

  /// Caches at most `most` batches, in the form in which BatchRing uploads them: with packed keys.
  EvalCache(Device device, int64_t most) : device_(device), most_(most) {}

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  bool has_capacity() const { return size() < most_; }
  /// Adds a copy of the batch in `buffer`, whose upload was queued on the stream. `behind`: the reader's position after
  /// the batch.
  void keep(StreamRef, const BatchRing&, int buffer, Groups, const ReaderPosition& behind);
  /// Queues the copy of cached batch `index` to the device memory of `buffer`. Copies its StepState to the host memory
  /// of `buffer`.
  void restore(StreamRef, const BatchRing&, int buffer, int64_t index) const;
  const Groups& groups(int64_t index) const { return batches_[static_cast<size_t>(index)].groups; }
  /// The reader's position after the last cached batch.
  const ReaderPosition& behind() const { return behind_; }

 private:
  struct Batch {
    Buffer block;
    StepState state;
    Groups groups;
  };
  Device device_;
  int64_t most_;
  std::vector<Batch> batches_;
  ReaderPosition behind_;
};

}  // namespace hctr
