// Sets whose rows are known by arithmetic: every record of a file is one row, with one key in each slot. The place of
// such a row in its batch is known before it is read, so it is parsed straight into the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hctr {

struct FilePosition;

/// Output columns for rows with one key in each slot. Row 0 of each pointer is row 0 of the batch.
struct OneHotRows {
  float *label, *dense;              ///< [rows, label_dim], [rows, dense_dim]
  std::span<std::byte* const> keys;  ///< [slots of the record] their keys, [rows] each
  int64_t row = 0;                   ///< the first row to be written
  bool narrow = false;               ///< keys are uint32_t, which they are known to fit; else int64_t
};

/// Used by one thread.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Writes records [first, first + count) of a file as rows. Errors: Error(data) naming file, record, offset, column
  /// and value of the first bad record; the written rows are then undefined.
  virtual void parse(size_t file, int64_t first, int64_t count, const OneHotRows& to) = 0;
};

/// An optional interface of a SampleSet. Bad records are errors here: leaving one out would move the rows after it.
class RowMap {
 public:
  virtual ~RowMap() = default;
  /// Rows of a file.
  virtual int64_t records(size_t file) const = 0;
  /// The position in front of a record. Reading by chunks can start there too.
  virtual FilePosition position(size_t file, int64_t record) const = 0;
  /// The most rows that one call of RowParser::parse() may ask for.
  virtual int64_t max_rows() const = 0;
  /// Whether every key fits 32 bits.
  virtual bool narrow() const = 0;
  virtual std::unique_ptr<RowParser> row_parser() const = 0;
};

}  // namespace hctr
