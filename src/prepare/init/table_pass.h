// One pass over the rows of a table: facts about its columns, and the held-out rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/files.h"
#include "prepare/init/column_facts.h"
#include "prepare/init/label_guess.h"

namespace hctr {

/// Result of the pass. Columns and label are facts of the training rows; the pass only checks that evaluation rows can
/// be read the same way.
struct TablePass {
  std::vector<std::string> columns;  ///< columns of the table, including the label's
  std::vector<ColumnFacts> facts;    ///< [columns]
  size_t label_column = 0;
  LabelFacts labels, held_out_labels;
  int64_t train_rows = 0, eval_rows = 0;
  int64_t without_label = 0, bad_rows = 0;  ///< rows that are in neither
  std::string first_bad;
  int64_t eval_without_label = 0, eval_bad_rows = 0;  ///< the same of a file of rows to evaluate on
  std::string first_bad_eval;
  bool held_out_by_number = false;    ///< whether the row's number decides; otherwise a hash of the features does
  std::set<std::string> label_marks;  ///< texts of labels that mean none
};

/// Where rows go; null if evaluation rows are given, and nothing is written.
struct SplitFiles {
  AtomicFile* train = nullptr;
  AtomicFile* eval = nullptr;
};

/// Adds the text of column `column` to the hash of a row's features, which begins with kHoldOutSeed.
uint64_t hash_with(uint64_t row_hash, size_t column, std::string_view text);
/// Seed of the hashes of rows, which are not those of values.
inline constexpr uint64_t kHoldOutSeed = 10;

/// Decides which rows are held out: a tenth. The label does not affect it. A hash of the features decides, so that rows
/// with equal features stay on one side. If few rows have distinct features, a hash of the row's number decides, since
/// a model could learn nothing about held-out features.
class HoldOut {
 public:
  /// A row of the table's start; called before the first held_out().
  void look_at(uint64_t row_hash);
  /// Whether fewer than half of the examined rows have distinct features.
  bool by_number() const { return 2 * static_cast<int64_t>(seen_.size()) < looked_at_; }
  /// Called for each row with a label, in order.
  bool held_out(uint64_t row_hash);

 private:
  std::unordered_set<uint64_t> seen_;
  int64_t looked_at_ = 0;
  uint64_t number_ = 0;
};

/// Errors: Error(data) when more than one in a thousand rows is bad: `first_bad` describes the first.
void expect_few_bad_rows(const TablePass&);

}  // namespace hctr
