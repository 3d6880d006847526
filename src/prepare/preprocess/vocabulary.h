// Maps the frequent values of one column to ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prepare/code_counts.h"

namespace hctr {

/// Ids: 0 missing, 1 rare (fewer occurrences than the minimum, or none), then 2, 3, ... by descending count, and by
/// ascending code for equal counts. Ids depend on the counts only.
class Vocabulary {
 public:
  /// Keeps every code with at least `min_count` occurrences. Frees the counts.
  Vocabulary(CodeCounts& counts, uint64_t min_count);
  struct Totals {
    int64_t distinct = 0, missing = 0, rare = 0;
  };
  /// A saved vocabulary: the kept codes by id, from 2 on. Their counts are unknown: 0.
  Vocabulary(std::span<const uint64_t> codes, const Totals&);

  /// Replaces each code by its id.
  void to_ids(std::span<uint64_t> codes) const;
  uint64_t id(uint64_t code) const;
  /// Returns the number of ids: kept values, missing and rare.
  int64_t size() const { return static_cast<int64_t>(by_id_.size()); }

  int64_t distinct() const { return distinct_; }  ///< number of distinct values, without missing
  int64_t missing() const { return missing_; }    ///< number of missing values
  int64_t rare() const { return rare_; }          ///< occurrences of dropped values
  /// Kept codes and their counts, by id. Entries 0 and 1 are unused.
  const std::vector<CodeCounts::Entry>& by_id() const { return by_id_; }

 private:
  void index();
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
