// The columns of Parquet files that are read, and the labels, dense values and slots that they become.
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
  /// Whether a text column is parsed as numbers. If false, a text column is an error.
  bool text = false;
  int64_t index = -1;                     ///< column index in _metadata.json; -1: not stated
  LabelColumn label{};                    ///< the rules of a label; a dense value uses only their number notation
  std::optional<float> without_column{};  ///< label value if the column is missing; empty: the column is required
};

/// A column that becomes a slot.
struct ParquetSlot {
  SlotRule rule;
  int64_t index = -1;
  int64_t offset = 0;     ///< added to values that are keys themselves (KeyRule::number)
  bool optional = false;  ///< the column may be missing; the slot then has no keys
};

/// The field index of an optional column that a file lacks.
inline constexpr int64_t kNoField = -1;

/// All columns that are read.
struct ParquetPlan {
  RecordShape shape;
  std::vector<ParquetNumber> labels, dense;
  std::vector<ParquetSlot> slots;
  std::vector<std::string> kept;     ///< names of the columns of Source::keep
  bool trim = false;                 ///< strip blanks around texts
  std::vector<std::string> missing;  ///< texts that are read as null
  uint64_t most_key = 0;             ///< largest allowed key
  bool sized = false;                ///< slot_size_array gives each slot a key range

  size_t columns() const { return labels.size() + dense.size() + slots.size() + kept.size(); }
  /// The name of a column. Columns are in reading order: labels, dense values, slots, kept columns.
  const std::string& name(size_t column) const;
  int64_t index(size_t column) const;
  /// Whether files may lack the column.
  bool optional(size_t column) const;
  /// Why a field's type does not suit the column; empty if it does.
  std::string type_problem(size_t column, const ParquetField&) const;
  /// The form in which decimals, dates and times of the column are read.
  ParquetForm form(size_t column) const;
  /// Whether all keys of a file fit 32 bits: all slots are integers of at most 32 bits, and stay below 2^32 after their
  /// offsets are added. `fields`: field index of each column.
  bool keys_fit_u32(const ParquetFile&, const std::vector<int64_t>& fields) const;
};

}  // namespace hctr
