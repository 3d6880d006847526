// The policy of a table for its rows: which keys get a row, which rows are removed, and what happens when the table is
// full.
#pragma once

#include <cstdint>
#include <string>

#include "engine/spec/setting_words.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// The numbers of rows of a table, including the shared row.
struct RowCounts {
  int64_t in_memory = 0, on_disk = 0;
  int64_t all() const { return in_memory + on_disk; }
};

/// Decides from row counts alone: StorePolicy neither reads nor moves rows. The table calls the policy before and after
/// each batch, and carries out the decisions.
class StorePolicy {
 public:
  /// `most_batch_keys`: maximum keys of any batch. `on_disk`: rows may be on disk. `label`: the table's name in
  /// messages.
  StorePolicy(const TableSpec&, int64_t most_batch_keys, bool on_disk, std::string label, const SettingWords&);

  const RowPolicy& rules() const { return rules_; }
  /// The row limit without the shared row; 0: only memory limits the rows.
  int64_t limit() const { return limit_; }
  /// The maximum number of rows that exist at any time.
  int64_t most_rows() const { return most_rows_; }
  /// Whether rows are removed when the limit is exceeded. If false, exceeding the limit is an error.
  bool rows_may_leave() const { return rules_.when_full != WhenFull::error; }

  // Called before each batch:

  /// The maximum number of rows after a batch of `batch_keys` keys. `at_most`: the maximum if no row is removed. If a
  /// full table removes rows, the result is at most the limit plus `batch_keys`.
  int64_t most_after(int64_t at_most, int64_t batch_keys) const;
  /// Records the maximum rows that can exist after the batch.
  void expect(int64_t at_most) { near_limit_ = beyond(at_most); }
  /// Rows last seen before the returned step expire at `step`; 0: no row expires at `step`.
  int64_t expired_before(int64_t step) const { return rules_.expired_before(step); }
  /// Whether a table that was full accepts new keys again when it has `rows` rows.
  bool reopens(int64_t rows) const { return rows < limit_; }

  // Called after each batch:

  /// Whether the batch may have exceeded the limit. If false, the rows need not be counted.
  bool near_limit() const { return near_limit_; }
  bool exceeded(int64_t rows) const { return near_limit_ && beyond(rows); }
  /// Whether `rows` exceeds the limit, for any policy.
  bool beyond(int64_t rows) const { return limit_ > 0 && rows > most_kept(); }
  /// check(): Error(data) if `rows` exceeds the limit. check_batch(): Error(data) if a batch has more distinct keys
  /// than the limit, because evicting all other rows would not suffice.
  void check(int64_t rows) const;
  void check_batch(int64_t different_keys) const;

  /// How many rows an eviction removes. The eviction leaves 15/16 of the limit, or `staying` rows (the rows of the
  /// batch) if these are more. `admitted`: candidates for admission that are removed anyway.
  int64_t rows_to_evict(const RowCounts&, int64_t admitted, int64_t staying) const;
  /// How many new rows of a batch a full table refuses.
  int64_t rows_to_refuse(const RowCounts& rows) const { return rows.all() - most_kept(); }

 private:
  /// Maximum rows to keep, including the shared row.
  int64_t most_kept() const { return limit_ + rules_.shares_row(); }

  const RowPolicy rules_;
  const int64_t limit_, most_rows_;
  const std::string label_, setting_;
  const SettingWords& words_;
  bool near_limit_ = false;
};

}  // namespace hctr
