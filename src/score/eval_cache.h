// Evaluation batches kept in device memory, so that later evaluations need not read them again.
#pragma once

#include <optional>
#include <vector>

#include "formats/reader/reader_position.h"
#include "score/batch_ring.h"

namespace hctr {

class EvalCache {
 public:
  using Groups = std::vector<std::optional<int64_t>>;  // the group of each sample; empty unless a metric needs it

  /// Keeps up to `most` batches, each as it was uploaded.
  EvalCache(Device device, int64_t most) : device_(device), most_(most) {}

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  bool has_capacity() const { return size() < most_; }
  /// Adds a copy of the batch in `buffer`, which the stream has uploaded. `behind`: the position of the reader after
  /// it.
  void keep(StreamRef, const BatchRing&, int buffer, Groups, const ReaderPosition& behind);
  /// Copies batch `index` into `buffer` of the device, in stream order, and its StepState into that of the host.
  void restore(StreamRef, const BatchRing&, int buffer, int64_t index) const;
  const Groups& groups(int64_t index) const { return batches_[static_cast<size_t>(index)].groups; }
  /// The position of the reader after the last batch kept.
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
