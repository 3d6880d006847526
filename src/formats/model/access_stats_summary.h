// Summarizes the access statistics of a saved table: how often and how recently keys occur, and which keys are most
// frequent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/model/access_stats_file.h"

namespace hctr {

class AccessStatsSummary {
 public:
  /// `top`: number of most frequent keys to keep.
  explicit AccessStatsSummary(int64_t top) : top_(top) {}
  void add(const AccessStatsHead&, std::span<const formats::RowAccess>);

  /// A histogram bin: number of rows whose value is in [from, to).
  struct Bin {
    int64_t from, to, rows;
  };
  int64_t rows() const { return rows_; }
  int64_t occurrences() const { return occurrences_; }
  int64_t most_occurrences() const { return most_; }
  /// Histogram of occurrences per row: 0, 1, 2 to 3, 4 to 7, and so on.
  std::vector<Bin> by_occurrences() const { return bins(by_occurrences_); }
  /// Histogram of steps since a row's key last occurred: 0 (in the last step), 1, 2 to 3, and so on.
  std::vector<Bin> by_steps_unseen() const { return bins(by_steps_unseen_); }
  /// The most frequent keys, by descending occurrences; ties by slot and key.
  std::vector<formats::RowAccess> hottest() const;

 private:
  static std::vector<Bin> bins(const std::vector<int64_t>& rows_by_width);

  int64_t top_;
  int64_t rows_ = 0, occurrences_ = 0, most_ = 0;
  std::vector<int64_t> by_occurrences_, by_steps_unseen_;  // [bit width of the value] number of rows
  std::vector<formats::RowAccess> hottest_;                // a heap; the front is the least frequent row
};

}  // namespace hctr
