// Turns values of Parquet columns into a sample block.
#pragma once

#include <functional>

#include "data/column_rules.h"
#include "data/parquet/parquet_plugin.h"
#include "data/record_shape.h"
#include "data/sample_block.h"
#include "data/sample_set.h"

namespace hctr {

/// A column that becomes a label or a dense value.
struct ParquetNumber {
  DenseRule rule;
  bool text = false;   ///< text is read as a number; else it is of the wrong type
  int64_t index = -1;  ///< its index by _metadata.json; -1: not stated
};

/// A column that becomes a slot.
struct ParquetSlot {
  SlotRule rule;
  int64_t index = -1;
  int64_t offset = 0;  ///< added to values that are keys themselves
};

/// The columns that samples are made of.
struct ParquetPlan {
  RecordShape shape;
  std::vector<ParquetNumber> labels, dense;
  std::vector<ParquetSlot> slots;
  uint64_t most_key = 0;  ///< of the key type

  size_t columns() const { return labels.size() + dense.size() + slots.size(); }
  /// Columns in the order of reading: labels, dense values, slots.
  const std::string& name(size_t column) const;
  int64_t index(size_t column) const;
  /// What is wrong with the type of a field for this column; empty when nothing is.
  std::string type_problem(size_t column, const ParquetField&) const;
  /// Whether the slots of a file, whose columns stand at `fields`, are integers of at most 32 bits that stay below 2^32
  /// with what is added to them.
  bool keys_fit_u32(const ParquetFileInfo&, const std::vector<int64_t>& fields) const;
};

/// Rows [begin, end) of `values`.
ParquetValues part_of(ParquetType, ParquetValues values, int64_t begin, int64_t end);

/// Fills rows [0, rows) of a block with one column after the other, in the order of the plan; each column from its
/// first row on, in one part or several. Bad rows are left out at the end.
class ParquetRows {
 public:
  explicit ParquetRows(const ParquetPlan& plan) : plan_(plan) {}

  void start(int64_t rows, SampleBlock& block);
  void add(size_t column, const ParquetField&, const ParquetValues&);
  /// Ends the block. where(row) names a row. The first of the bad ones is that with the lowest number.
  BadRecords finish(const std::function<std::string(int64_t row)>& where);

 private:
  template <class Describe>
  void bad(int64_t row, const ParquetField*, const Describe& describe);
  void add_numbers(const ParquetNumber&, const ParquetField&, const ParquetValues&, float* to, int64_t stride);
  void add_slot(size_t slot, const ParquetField&, const ParquetValues&);
  template <class T>
  bool add_plain_keys(const ParquetSlot&, const T* values, int64_t rows);
  void check_limits(size_t slot, const ParquetField&);
  void check_inputs();
  void leave_out_bad_rows();

  const ParquetPlan& plan_;
  SampleBlock* block_ = nullptr;
  int64_t rows_ = 0, keys_ = 0;  // keys_: in the block so far
  int64_t added_ = 0;            // rows of the current column
  bool many_ = false;            // a slot has other than one key somewhere
  std::vector<uint8_t> bad_;
  int64_t bad_count_ = 0, first_bad_ = 0;
  std::string first_problem_;
};

}  // namespace hctr
