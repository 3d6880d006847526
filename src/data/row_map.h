// Sets whose rows are known by arithmetic: every record of a file is one row, with one key in each slot. Such rows need
// not be gathered before a batch is laid out: each has its place in a batch before it is read, and is written there at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hctr {

struct Place;

/// Room for rows with one key in each slot: where row 0 lies, and which one is the first to be written.
struct OneHotRows {
  float *label, *dense;            ///< [rows, label_dim], [rows, dense_dim]
  std::span<int64_t* const> keys;  ///< for each slot of the record its keys, [rows]
  int64_t row = 0;
};

/// Used by one thread.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Records [first, first + count) of a file become rows, whole or not at all. Errors: Error(data) naming file,
  /// record, offset, column and value of the first that is bad.
  virtual void parse(size_t file, int64_t first, int64_t count, const OneHotRows& to) = 0;
};

/// Side of a SampleSet. Bad records are errors here: leaving them out would move those behind them.
class RowMap {
 public:
  virtual ~RowMap() = default;
  /// Rows of a file.
  virtual int64_t records(size_t file) const = 0;
  /// In front of a record, which is its number; so that both ways of reading can go on from there.
  virtual Place place(size_t file, int64_t record) const = 0;
  /// The most rows to be parsed in one go.
  virtual int64_t stretch() const = 0;
  virtual std::unique_ptr<RowParser> row_parser() const = 0;
};

}  // namespace hctr
