// The values of one column that have an id of their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prepare/code_counts.h"

namespace hctr {

/// Ids: 0 missing, 1 rare (fewer occurrences than the minimum, or none), then 2, 3, ... by falling count, equal counts
/// by rising code: a function of the counts alone.
class Vocabulary {
 public:
  /// Keeps every code that occurs at least `min_count` times. Frees the counts.
  Vocabulary(CodeCounts& counts, uint64_t min_count);

  /// Replaces each code by its id.
  void to_ids(std::span<uint64_t> codes) const;
  uint64_t id(uint64_t code) const;
  /// Ids there are: kept values, missing and rare.
  int64_t size() const { return static_cast<int64_t>(by_id_.size()); }

  int64_t distinct() const { return distinct_; }  ///< values that occur, without missing
  int64_t missing() const { return missing_; }    ///< times that the value was missing
  int64_t rare() const { return rare_; }          ///< occurrences of values that were dropped
  /// Kept codes and their counts, by id. Entries 0 and 1 have no meaning.
  const std::vector<CodeCounts::Entry>& by_id() const { return by_id_; }

 private:
  size_t place(uint64_t code) const;
  struct Entry {
    uint64_t code = 0;
    uint64_t id = 0;  // 0: the entry is free
  };
  std::vector<CodeCounts::Entry> by_id_;
  std::vector<Entry> entries_;
  int64_t distinct_ = 0, missing_ = 0, rare_ = 0;
};

}  // namespace hctr
