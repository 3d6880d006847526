// A summary of the access statistics of a saved table: how often its keys occur, which occur most, and how long ago.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/model/access_stats_file.h"

namespace hctr {

class AccessStatsSummary {
 public:
  /// `top`: how many of the hottest keys to keep.
  explicit AccessStatsSummary(int64_t top) : top_(top) {}
  void add(const AccessStatsHead&, std::span<const formats::RowAccess>);

  /// Rows whose number is in [from, to).
  struct Bin {
    int64_t from, to, rows;
  };
  int64_t rows() const { return rows_; }
  int64_t occurrences() const { return occurrences_; }
  int64_t most_occurrences() const { return most_; }
  /// Rows by their occurrences: 0, 1, 2 to 3, 4 to 7, and so on up to the largest count.
  std::vector<Bin> by_occurrences() const { return bins(by_occurrences_); }
  /// Rows by the steps since their key last occurred: 0 in the last step, 1, 2 to 3, and so on.
  std::vector<Bin> by_steps_unseen() const { return bins(by_steps_unseen_); }
  /// Sorted by occurrences, descending; ties by slot and key.
  std::vector<formats::RowAccess> hottest() const;

 private:
  static std::vector<Bin> bins(const std::vector<int64_t>& rows_by_width);

  int64_t top_;
  int64_t rows_ = 0, occurrences_ = 0, most_ = 0;
  std::vector<int64_t> by_occurrences_, by_steps_unseen_;  // rows by the bit width of the number
  std::vector<formats::RowAccess> hottest_;                // a heap with the least frequent row at the front
};

}  // namespace hctr
