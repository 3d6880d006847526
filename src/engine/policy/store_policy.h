// What a table decides about its rows: which keys get one, which rows go, and what happens when the table is full.
#pragma once

#include <cstdint>
#include <string>

#include "engine/spec/setting_words.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// The rows of a table, the shared one included.
struct RowCounts {
  int64_t in_memory = 0, on_disk = 0;
  int64_t all() const { return in_memory + on_disk; }
};

/// Decides from numbers alone: it reads and moves no row, and does not know where rows are. The table asks before and
/// after a batch, and does what it says.
class StorePolicy {
 public:
  /// `most_batch_keys`: of one batch, ever. `on_disk`: rows may be on a disk. `label`: of the table, in messages.
  StorePolicy(const TableSpec&, int64_t most_batch_keys, bool on_disk, std::string label, const SettingWords&);

  const RowPolicy& rules() const { return rules_; }
  /// Rows that are kept, without the shared one; 0: memory is the limit.
  int64_t limit() const { return limit_; }
  /// The most rows that exist at any moment.
  int64_t most_rows() const { return most_rows_; }
  /// Whether rows leave where the limit is exceeded; else that is an error.
  bool rows_may_leave() const { return rules_.when_full != WhenFull::error; }

  // Before a batch of so many keys.
  /// The most rows after it: `at_most`, or fewer where each batch before it was cut down to the limit.
  int64_t most_after(int64_t at_most, int64_t batch_keys) const;
  /// Notes the most rows that there can be after it.
  void expect(int64_t at_most) { near_limit_ = beyond(at_most); }
  /// Rows last seen before the returned step have expired at this step; 0: none leave at this step.
  int64_t expired_before(int64_t step) const { return rules_.expired_before(step); }
  /// Whether a table that was full takes new keys again.
  bool reopens(int64_t rows) const { return rows < limit_; }

  // After it.
  /// Whether it may have exceeded the limit: only then its rows need to be counted.
  bool near_limit() const { return near_limit_; }
  bool exceeded(int64_t rows) const { return near_limit_ && beyond(rows); }
  /// Whether these are more rows than the limit allows, whatever the policy.
  bool beyond(int64_t rows) const { return limit_ > 0 && rows > most_kept(); }
  /// Errors: Error(data) when they are. And: when a batch has more different keys than the limit, so that no other row
  /// could leave for them.
  void check(int64_t rows) const;
  void check_batch(int64_t different_keys) const;

  /// Rows that an eviction removes: down to 15/16 of the limit, or to `staying`, the rows of the batch, if these are
  /// more. `admitted`: candidates that leave anyway.
  int64_t rows_to_evict(const RowCounts&, int64_t admitted, int64_t staying) const;
  /// New rows of a batch that a full table refuses.
  int64_t rows_to_refuse(const RowCounts& rows) const { return rows.all() - most_kept(); }

 private:
  /// Rows that are kept, including the shared one.
  int64_t most_kept() const { return limit_ + rules_.shares_row(); }

  const RowPolicy rules_;
  const int64_t limit_, most_rows_;
  const std::string label_, setting_;
  const SettingWords& words_;
  bool near_limit_ = false;
};

}  // namespace hctr
