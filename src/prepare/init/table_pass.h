// One pass over the rows of a table: collects facts about the columns, and holds out rows.
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

/// The result of the pass. `facts` and `labels` describe the training rows only. For evaluation rows, the pass only
/// checks whether they can be read in the same way.
struct TablePass {
  std::vector<std::string> columns;  ///< columns of the table, including the label's
  std::vector<ColumnFacts> facts;    ///< [columns]
  size_t label_column = 0;
  LabelFacts labels, held_out_labels;
  int64_t train_rows = 0, eval_rows = 0;
  int64_t without_label = 0, bad_rows = 0;  ///< numbers of rows that neither set contains
  std::string first_bad;
  int64_t eval_without_label = 0, eval_bad_rows = 0;  ///< the same counts for a separate evaluation file
  std::string first_bad_eval;
  /// true: the row number decides which rows are held out; false: a hash of the features
  bool held_out_by_number = false;
  std::set<std::string> label_marks;  ///< marks for missing labels
};

/// The files for training and held-out rows. Null if evaluation rows are given, because then no file is written.
struct SplitFiles {
  AtomicFile* train = nullptr;
  AtomicFile* eval = nullptr;
};

/// Adds the text of column `column` to `row_hash`, the hash of a row's features. The hash of a row starts as
/// kHoldOutSeed.
uint64_t hash_with(uint64_t row_hash, size_t column, std::string_view text);
/// Seed of row hashes. Value hashes have another seed.
inline constexpr uint64_t kHoldOutSeed = 10;

/// Decides which tenth of the rows is held out, independently of the label. A hash of the features decides, so that
/// rows with equal features are in the same set. If few rows have distinct features, a hash of the row number decides
/// instead. In such a table, a hash of the features would hold out every row of some features, and a model could learn
/// nothing about these features.
class HoldOut {
 public:
  /// Examines a row from the start of the table. Call before the first held_out().
  void look_at(uint64_t row_hash);
  /// Whether fewer than half of the examined rows have distinct features.
  bool by_number() const { return 2 * static_cast<int64_t>(seen_.size()) < looked_at_; }
  /// Call for each row with a label, in order.
  bool held_out(uint64_t row_hash);

 private:
  std::unordered_set<uint64_t> seen_;
  int64_t looked_at_ = 0;
  uint64_t number_ = 0;
};

/// Errors: Error(data) if more than one row in a thousand is bad. `first_bad` describes the first bad row.
void expect_few_bad_rows(const TablePass&);

}  // namespace hctr
