// Maps the frequent values of one column to ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prepare/code_counts.h"

namespace hctr {

/// Ids: 0 means missing; 1 means rare (below the minimum number of occurrences, or not counted at all). Ids 2, 3, ...
/// have descending counts; equal counts are ordered by ascending code. Ids depend on the counts only.
class Vocabulary {
 public:
  /// Keeps all codes with at least `min_count` occurrences. Frees the counts.
  Vocabulary(CodeCounts& counts, uint64_t min_count);
  struct Totals {
    int64_t distinct = 0, missing = 0, rare = 0;
  };
  /// Restores a saved vocabulary. `codes`: the kept codes in the order of their ids, from id 2. Their counts are
  /// unknown and set to 0.
  Vocabulary(std::span<const uint64_t> codes, const Totals&);

  /// Replaces each code by its id.
  void to_ids(std::span<uint64_t> codes) const;
  uint64_t id(uint64_t code) const;
  /// The number of ids, including missing and rare.
  int64_t size() const { return static_cast<int64_t>(by_id_.size()); }

  int64_t distinct() const { return distinct_; }  ///< number of distinct values except missing
  int64_t missing() const { return missing_; }    ///< number of missing values
  int64_t rare() const { return rare_; }          ///< occurrences of dropped values
  /// [id] kept codes and their counts. Entries 0 and 1 are unused.
  const std::vector<CodeCounts::Entry>& by_id() const { return by_id_; }

 private:
  void index();
  size_t place(uint64_t code) const;
  struct Entry {
    uint64_t code = 0;
    uint64_t id = 0;  // 0: free entry
  };
  std::vector<CodeCounts::Entry> by_id_;
  std::vector<Entry> entries_;
  int64_t distinct_ = 0, missing_ = 0, rare_ = 0;
};

}  // namespace hctr
