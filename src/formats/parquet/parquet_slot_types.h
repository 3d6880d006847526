// Compares the types of slot and label columns over all files of a set, because a type may change how values become
// keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/data/slot_key_rules.h"
#include "formats/parquet/parquet_columns.h"

namespace hctr {

/// The form of a column's values, on which their keys depend. Equal values in two forms may have different keys.
enum class ValueForm { none, digits, truth, text, date, timestamp, clock };

class ParquetSlotTypes {
 public:
  /// Adds the slots and labels of a file. `fields`: field index of each column. Errors: Error(data) naming both files,
  /// the column and its types if equal values in this file and an earlier file would get different keys or labels.
  void add(const ParquetPlan&, const ParquetFileInfo&, const std::vector<int64_t>& fields, const fs::path& file);
  /// Sets the rule of each slot without "keys". If some file has values in the column, their type determines the rule.
  /// Otherwise the rule is that in `known`, or KeyRule::number. Returns the rules of all slots except two kinds: slots
  /// whose column has no values (unless the slot has a default and no "keys"), and slots with "keys" other than hash
  /// and number (unless the column has times).
  std::vector<SlotKeyRule> decide(ParquetPlan&, const std::vector<SlotKeyRule>& known) const;

 private:
  struct Seen {
    ValueForm form = ValueForm::none;
    std::string place{};  // the origin, such as "'a.parquet' (int64)"
  };
  using Forms = std::vector<Seen>;  // the distinct forms of one column
  template <class Problem>
  static void add(Forms&, const ParquetField&, const fs::path& file, const std::optional<KeyRule>&, const Problem&);

  std::vector<Forms> seen_, labels_;  // [slots], [labels] forms of each column
};

}  // namespace hctr
