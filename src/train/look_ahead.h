// Rows on a disk, ahead of the steps that need them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/disk/disk_rows.h"
#include "formats/data/batch_layout.h"
#include "train/look_ahead_depth.h"
#include "train/look_ahead_group.h"

namespace hctr {

/// A thread that passes on the keys of batches that come, so that their rows are read from the disk while the steps
/// before are computed: as many batches ahead as LookAheadDepth says, at most as many as the reader has filled. Where
/// memory is short it leaves a batch out, and where it is late all that have begun: their steps wait for their rows.
class LookAhead {
 public:
  /// Knows at most so many batches ahead of a step. `ask` gets keys by threads of all ranks of `group`, until stop().
  LookAhead(LookAheadGroup::Ask ask, size_t batches, std::shared_ptr<LookAheadGroup> group);
  ~LookAhead() { stop(); }
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  /// Any thread: copies the keys of a batch, and does not wait. Does nothing after stop().
  void add(const BatchView&) noexcept;
  /// The step of the batch with this first sample begins: it is too late to ask for it, and those before it. `so_far`:
  /// of the tables of this rank.
  void begin_step(int64_t first_sample, const DiskRows::Fetched& so_far);
  /// Batches ahead of the step.
  int depth() const;
  /// Ends the thread.
  void stop();

 private:
  /// The keys of a batch in each sparse input.
  using Keys = std::vector<std::vector<ops::RowOwner>>;
  struct Batch {
    int64_t first_sample;
    Keys keys;
    bool asked = false;
  };
  void run() noexcept;
  /// The first batch that is to be asked for now; null: none. The lock is held.
  Batch* next();

  std::shared_ptr<LookAheadGroup> group_;
  std::shared_ptr<LookAheadGroup::Member> member_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Batch> batches_;  // whose steps have not begun, in their order
  LookAheadDepth depth_;
  DiskRows::Fetched noted_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace hctr
