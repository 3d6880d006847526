// Compares the types of columns whose values count as texts, those of slots and labels, in all files of a set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/data/slot_key_rules.h"
#include "formats/parquet/parquet_columns.h"

namespace hctr {

/// How keys are made of a column's values: as texts or as numbers. Equal values of two forms may have different keys.
enum class ValueForm { none, digits, truth, text, date, timestamp, clock };

class ParquetSlotTypes {
 public:
  /// The slots and labels of a file, whose columns stand at `fields`. Errors: Error(data) naming both files, the column
  /// and its types where equal values of this file and an earlier one would get different keys, or labels.
  void add(const ParquetPlan&, const ParquetFileInfo&, const std::vector<int64_t>& fields, const fs::path& file);
  /// Sets the rule of each slot without one: by the type of its column, or from `known` if no file has a value in it.
  /// Returns the rules derived from types, and the stated ones.
  std::vector<SlotKeyRule> decide(ParquetPlan&, const std::vector<SlotKeyRule>& known) const;

 private:
  struct Seen {
    ValueForm form = ValueForm::none;
    std::string place{};  // "'a.parquet' (int64)"
  };
  using Forms = std::vector<Seen>;  // the different forms of a column
  template <class Problem>
  static void add(Forms&, const ParquetField&, const fs::path& file, const std::optional<KeyRule>&, const Problem&);

  std::vector<Forms> seen_, labels_;  // forms of each slot, and of each label
};

}  // namespace hctr
