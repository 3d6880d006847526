// How many batches look-ahead is ahead of the step.
#pragma once

#include <cstdint>

namespace hctr {

/// Adapts to what the page cache keeps. Bytes that were read ahead but must be read again by the step have cost the
/// disk twice. When they exceed `kMostLost` of the bytes, look-ahead reduces its depth by one, down to 0. Later it
/// tries the larger depth again; each failed try doubles the wait before the next.
class LookAheadDepth {
 public:
  static constexpr double kMostLost = 0.25;
  static constexpr int kBatches = 16;                       // batches per decision
  static constexpr int64_t kLeastBytes = int64_t{1} << 16;  // bytes needed for a decision; fewer say nothing
  static constexpr int kLeastWait = 4, kMostWait = 64;      // wait before the next try, as a multiple of kBatches

  /// `most`: batches known ahead of the step.
  explicit LookAheadDepth(int most) : most_(most), depth_(most) {}
  int depth() const { return depth_; }
  /// Call for each batch. `ahead`: bytes read from disk, not from the cache, for upcoming batches; `again`: bytes read
  /// from disk while the previous step waited, for rows that had been asked for.
  void note(int64_t ahead, int64_t again);

 private:
  void decide();

  int most_, depth_;
  int batches_ = 0;
  int64_t ahead_ = 0, again_ = 0;
  int wait_ = kLeastWait;  // remaining wait before the next try
  int waited_ = 0;
  bool trying_ = false;  // the last decision increased the depth
};

}  // namespace hctr
