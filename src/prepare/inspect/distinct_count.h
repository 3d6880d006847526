// Counts distinct keys, exactly up to a bound and by an estimate beyond it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prepare/code_counts.h"

namespace hctr {

/// Counts exactly up to `bound` distinct keys. Above `bound`, uses a sketch of 2^14 registers, whose estimate has a
/// standard error of 0.8 %: P. Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation
/// algorithm", AofA 2007. The estimator is from O. Ertl, "New cardinality estimation algorithms for HyperLogLog
/// sketches", 2017, and is unbiased at any size. The result depends only on the set of keys. The order of the keys, and
/// their distribution over merged counters, have no effect.
class DistinctCount {
 public:
  explicit DistinctCount(int64_t bound = 1 << 20) : bound_(bound) {}

  void add(int64_t key);
  void merge(DistinctCount& other);

  bool exact() const { return keys_.has_value(); }
  int64_t value() const;
  /// The count of each key. Valid while counting is exact.
  const CodeCounts& keys() const { return *keys_; }

 private:
  int64_t estimate() const;

  int64_t bound_;
  std::optional<CodeCounts> keys_{std::in_place};
  std::vector<uint8_t> registers_ = std::vector<uint8_t>(1 << 14);
};

}  // namespace hctr
