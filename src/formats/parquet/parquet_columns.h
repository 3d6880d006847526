// The columns of Parquet files that samples are made of, and what each becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/data/column_rules.h"
#include "formats/data/record_shape.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// A column that becomes a label or a dense value.
struct ParquetNumber {
  DenseRule rule;
  bool text = false;                      ///< text is read as a number; else it is of the wrong type
  int64_t index = -1;                     ///< its index by _metadata.json; -1: not stated
  LabelColumn label{};                    ///< rules of a label; for a dense value only its notation
  std::optional<float> without_column{};  ///< value of a label whose column may be missing
};

/// A column that becomes a slot.
struct ParquetSlot {
  SlotRule rule;
  int64_t index = -1;
  int64_t offset = 0;     ///< added to values that are keys themselves
  bool optional = false;  ///< its column may be missing: it has no keys then
};

/// The field of a column that a file may lack.
inline constexpr int64_t kNoField = -1;

/// The columns that samples are made of.
struct ParquetPlan {
  RecordShape shape;
  std::vector<ParquetNumber> labels, dense;
  std::vector<ParquetSlot> slots;
  std::vector<std::string> kept;     ///< Source::keep
  bool trim = false;                 ///< blanks around texts are not part of them
  std::vector<std::string> missing;  ///< texts that count as null
  uint64_t most_key = 0;             ///< largest key of the key type
  bool sized = false;                ///< slot_size_array numbers the keys of all slots

  size_t columns() const { return labels.size() + dense.size() + slots.size() + kept.size(); }
  /// Columns in the order of reading: labels, dense values, slots, passed-on columns.
  const std::string& name(size_t column) const;
  int64_t index(size_t column) const;
  /// Whether files may lack the column.
  bool optional(size_t column) const;
  /// The problem with the type of a field for this column; empty if none.
  std::string type_problem(size_t column, const ParquetField&) const;
  /// How decimals, dates and times of a column are read.
  ParquetForm form(size_t column) const;
  /// Whether the slots of a file, whose columns are at `fields`, are integers of at most 32 bits that stay below 2^32
  /// after their offsets are added.
  bool keys_fit_u32(const ParquetFile&, const std::vector<int64_t>& fields) const;
};

}  // namespace hctr
