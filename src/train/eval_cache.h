// Evaluation batches that stay in the device's memory, so that an evaluation after the first need not read them.
#pragma once

#include <optional>
#include <vector>

#include "data/reader/reader_position.h"
#include "train/batch_ring.h"

namespace hctr {

class EvalCache {
 public:
  using Groups = std::vector<std::optional<int64_t>>;  // of a batch's samples, as far as metrics want them

  /// Keeps up to `most` batches, each in layout.bytes of the device.
  EvalCache(const BatchLayout& layout, Device device, int64_t most)
      : bytes_(layout.bytes), device_(device), most_(most) {}

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  bool has_room() const { return size() < most_; }
  /// Takes the batch in `slot`, which the stream has uploaded, as the next one. `behind`: where its reader stands.
  void keep(StreamRef, const BatchRing&, int slot, Groups, const ReaderPosition& behind);
  /// Brings batch `index` into `slot`, in stream order, but for the StepState, which is set on the host.
  void bring(StreamRef, const BatchRing&, int slot, int64_t index) const;
  const Groups& groups(int64_t index) const { return batches_[static_cast<size_t>(index)].groups; }
  /// Where reading goes on behind the batches that are kept.
  const ReaderPosition& behind() const { return behind_; }

 private:
  struct Batch {
    Buffer block;
    StepState state;
    Groups groups;
  };
  size_t bytes_;
  Device device_;
  int64_t most_;
  std::vector<Batch> batches_;
  ReaderPosition behind_;
};

}  // namespace hctr
