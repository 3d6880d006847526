// Writes selected rows of Parquet columns to a file with the same columns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/parquet/parquet_output.h"

namespace hctr {

/// Collects unchanged rows of one column.
class ParquetColumnRows {
 public:
  explicit ParquetColumnRows(const ParquetField& field) : field_(field) { clear(); }

  void add(const ParquetValues&, int64_t row);
  void clear();
  /// Views of the collected rows, valid until the next call.
  ParquetValues values() const;
  size_t bytes() const { return values_.size(); }

 private:
  /// Adds an item. If `valid` is false, adds a null and ignores `ParquetValues`, which may then have another type.
  void add_item(const ParquetValues&, int64_t item, bool valid);

  ParquetField field_;
  int64_t rows_ = 0, items_ = 0;
  std::vector<uint8_t> valid_rows_, valid_items_;  // bitmaps: which rows and which items have a value
  std::vector<int32_t> list_, text_;
  std::vector<uint8_t> values_;  // values of the items; booleans are bits
};

/// A Parquet file with the given fields. Errors of all members: Error(io).
class ParquetSplitWriter {
 public:
  ParquetSplitWriter(AtomicFile&, const std::vector<ParquetField>&);

  /// Adds row `row` of the given columns.
  void add(const std::vector<ParquetValues>& columns, int64_t row);
  /// Writes the remaining rows and the footer.
  void finish();

 private:
  void write_group();

  std::vector<std::string> names_;
  std::vector<ParquetColumnRows> columns_;
  int64_t rows_ = 0;
  std::unique_ptr<ParquetOutput> output_;
};

}  // namespace hctr
