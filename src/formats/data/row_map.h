// Direct access to the rows of a set in which every record is one row with one key per slot. The position of such a row
// in its batch is known in advance, so parsers write directly to the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hctr {

struct FilePosition;

/// Output columns for rows with one key per slot. In each column, row 0 is row 0 of the batch.
struct OneHotRows {
  float *label, *dense;              ///< [rows, label_dim], [rows, dense_dim]
  std::span<std::byte* const> keys;  ///< [slots of the record] for each slot, a pointer to its keys [rows]
  int64_t row = 0;                   ///< index of the first row to write
  bool narrow = false;               ///< true: keys are uint32_t, requires RowMap::narrow(); false: int64_t
};

/// Parses rows into a batch. Each thread has its own RowParser.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Writes records [first, first + count) of a file as rows. Errors: Error(data) naming file, record, offset, column
  /// and value of the first bad record. The output rows are undefined after an error.
  virtual void parse(size_t file, int64_t first, int64_t count, const OneHotRows& to) = 0;
};

/// An optional interface of a SampleSet. A bad record is an error, because skipping it would shift all later rows.
class RowMap {
 public:
  virtual ~RowMap() = default;
  /// Number of rows in a file.
  virtual int64_t records(size_t file) const = 0;
  /// The file position before a record. A Cutter can start at this position, too.
  virtual FilePosition position(size_t file, int64_t record) const = 0;
  /// Maximum rows per call of RowParser::parse().
  virtual int64_t max_rows() const = 0;
  /// Whether all keys fit 32 bits.
  virtual bool narrow() const = 0;
  virtual std::unique_ptr<RowParser> row_parser() const = 0;
};

}  // namespace hctr
