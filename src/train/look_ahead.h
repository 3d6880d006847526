// Reads rows from disk ahead of the steps that need them.
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

/// A thread that passes on the keys of upcoming batches, so that their rows are read from disk during earlier steps.
/// LookAheadDepth limits the number of batches. Look-ahead skips batches if memory is short, and batches whose steps
/// have already begun. Steps of skipped batches wait for their rows.
class LookAhead {
 public:
  /// Keeps at most `batches` upcoming batches. Until stop(), threads of all ranks of `group` call `ask` with keys.
  LookAhead(LookAheadGroup::Ask ask, size_t batches, std::shared_ptr<LookAheadGroup> group);
  ~LookAhead() { stop(); }
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  /// Copies the keys of a batch, without blocking. Any thread may call this. Does nothing after stop().
  void add(const BatchView&) noexcept;
  /// Call when the step of the batch with this first sample begins. Look-ahead then skips this batch and earlier
  /// batches. `so_far`: totals of this rank's tables.
  void begin_step(int64_t first_sample, const DiskRows::Fetched& so_far);
  /// The number of batches that look-ahead is ahead of the step.
  int depth() const;
  /// Ends the thread.
  void stop();

 private:
  /// The keys of a batch, by sparse input.
  using Keys = std::vector<std::vector<ops::RowOwner>>;
  struct Batch {
    int64_t first_sample;
    Keys keys;
    bool asked = false;
  };
  void run() noexcept;
  /// The next batch to ask for, or null. The caller must hold the lock.
  Batch* next();

  std::shared_ptr<LookAheadGroup> group_;
  std::shared_ptr<LookAheadGroup::Member> member_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Batch> batches_;  // batches whose steps have not begun, in order
  LookAheadDepth depth_;
  DiskRows::Fetched noted_;
  bool stopped_ = false;
  std::thread thread_;  // declared last, because the thread uses the other members
};

}  // namespace hctr
