// One pass over the rows of a table: what its columns hold, and which rows are held out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "prepare/init/column_facts.h"
#include "prepare/init/label_guess.h"

namespace hctr {

/// What is known after the pass. Columns and label are those of the rows to train on; of those to evaluate on it is
/// only known whether they can be read like these.
struct TablePass {
  std::vector<std::string> columns;  ///< of the table, the label's among them
  std::vector<ColumnFacts> facts;    ///< [columns]
  size_t label_column = 0;
  LabelFacts labels, held_out_labels;
  int64_t train_rows = 0, eval_rows = 0;
  int64_t without_label = 0, bad_rows = 0;  ///< rows that are in neither
  std::string first_bad;
  int64_t eval_without_label = 0, eval_bad_rows = 0;  ///< the same of a file of rows to evaluate on
  std::string first_bad_eval;
  std::set<std::string> label_marks;  ///< texts of labels that mean none
};

/// Where rows go; null where evaluation rows are given, and nothing is written.
struct SplitFiles {
  AtomicFile* train = nullptr;
  AtomicFile* eval = nullptr;
};

/// Whether the row of this hash is held out: every tenth hash is. Equal rows have equal hashes, so they stay together.
bool is_held_out(uint64_t row_hash);
/// Seed of the hashes of rows, which are not those of values.
inline constexpr uint64_t kHoldOutSeed = 10;

/// Errors: Error(data) when more than one of a thousand rows is bad: `first_bad` says what is wrong with the first.
void expect_few_bad_rows(const TablePass&);

}  // namespace hctr
