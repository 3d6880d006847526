// How many different keys there are: exactly as long as they are few, else an estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prepare/code_counts.h"

namespace hctr {

/// Counts exactly up to `bound` different keys. Beyond that it keeps a sketch of 2^14 registers, whose estimate has
/// a standard error of 0.8 %: P. Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation
/// algorithm", AofA 2007; estimated as in O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
/// 2017, which has no bias at any size. The result depends on the keys alone, not on their order or on how they were
/// shared among merged counts.
class DistinctCount {
 public:
  explicit DistinctCount(int64_t bound = 1 << 20) : bound_(bound) {}

  void add(int64_t key);
  void merge(DistinctCount& other);

  bool exact() const { return keys_.has_value(); }
  int64_t value() const;
  /// How often each key occurs; while exact.
  const CodeCounts& keys() const { return *keys_; }

 private:
  int64_t estimate() const;

  int64_t bound_;
  std::optional<CodeCounts> keys_{std::in_place};
  std::vector<uint8_t> registers_ = std::vector<uint8_t>(1 << 14);
};

}  // namespace hctr
