// Chooses the number of batches that look-ahead is ahead of the step.
#pragma once

#include <cstdint>

namespace hctr {

/// Adapts the look-ahead depth to the page cache. If a page is evicted from the cache before the step, the step reads
/// its bytes from disk a second time. If bytes read a second time exceed the fraction `kMostLost` of all bytes,
/// the depth decreases by one, down to 0. Later the larger depth is tried again. Each failed try doubles the wait
/// before the next try.
class LookAheadDepth {
 public:
  static constexpr double kMostLost = 0.25;
  static constexpr int kBatches = 16;                       // batches per decision
  static constexpr int64_t kLeastBytes = int64_t{1} << 16;  // a decision needs this many bytes
  static constexpr int kLeastWait = 4, kMostWait = 64;      // wait before the next try, as a multiple of kBatches

  /// `most`: the number of batches that are known ahead of the step.
  explicit LookAheadDepth(int most) : most_(most), depth_(most) {}
  int depth() const { return depth_; }
  /// Call for each batch. `ahead`: bytes read from disk, not from the cache, for upcoming batches. `again`: bytes read
  /// from disk during the previous step's wait, for rows that look-ahead had already read.
  void note(int64_t ahead, int64_t again);

 private:
  void decide();

  int most_, depth_;
  int batches_ = 0;
  int64_t ahead_ = 0, again_ = 0;
  int wait_ = kLeastWait;  // required wait before the next try
  int waited_ = 0;
  bool trying_ = false;  // whether the last decision increased the depth
};

}  // namespace hctr
