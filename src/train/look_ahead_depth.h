// How many batches look-ahead is ahead of the step.
#pragma once

#include <cstdint>

namespace hctr {

/// Goes by what the system's cache keeps. Bytes that were read ahead and that the step must read once more have cost
/// the disk twice: when more than `kMostLost` of the bytes are such, look-ahead goes one batch less far, down to none.
/// Later it tries the next batch again, and each time that this fails it waits twice as long.
class LookAheadDepth {
 public:
  static constexpr double kMostLost = 0.25;
  static constexpr int kBatches = 16;                       // that it looks at before it decides
  static constexpr int64_t kLeastBytes = int64_t{1} << 16;  // for all of these; fewer say nothing
  static constexpr int kLeastWait = 4, kMostWait = 64;      // before it tries again, in as many times kBatches

  /// `most`: batches that are known ahead of the step.
  explicit LookAheadDepth(int most) : most_(most), depth_(most) {}
  int depth() const { return depth_; }
  /// For each batch. `ahead`: bytes that came from the disk, not from the cache, for batches to come; `again`: likewise
  /// while the step before waited, for rows that had been asked for.
  void note(int64_t ahead, int64_t again);

 private:
  void decide();

  int most_, depth_;
  int batches_ = 0;
  int64_t ahead_ = 0, again_ = 0;
  int wait_ = kLeastWait;  // before the next try
  int waited_ = 0;
  bool trying_ = false;  // the last decision was to go further
};

}  // namespace hctr
