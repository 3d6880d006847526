// Reads the rows of a table from a checkpoint in blocks, for a run with another placement.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "engine/spec/direct_keys.h"
#include "engine/table/gather_rows.h"
#include "engine/table/table.h"
#include "formats/checkpoint/state_reader.h"

namespace hctr {

/// Reads rows [first, first + count) of an array with `width` elements of T per row. Errors: those of StateReader;
/// Error(data) naming the array if its element size, row width or number of rows does not match.
template <class T>
std::vector<T> read_rows(const StateReader& table, const StateArray& array, int64_t first, int64_t count,
                         int64_t width) {
  const int64_t rows = array.shape.empty() ? 0 : array.shape[0];
  if (state_type_bytes(array.type) != static_cast<int64_t>(sizeof(T)))
    throw Error(Kind::data, cat("a checkpoint has elements of type ", array.type, " in '", array.name,
                                "', but the table has ", sizeof(T), " bytes an element"));
  if (first + count > rows)
    throw Error(Kind::data, cat("a checkpoint has ", rows, " rows in '", array.name, "', fewer rows than its table"));
  if (rows > 0 && array.elements() / rows != width)
    throw Error(Kind::data, cat("a checkpoint has rows of ", array.elements() / rows, " elements in '", array.name,
                                "', but this run has ", width));
  std::vector<T> values(static_cast<size_t>(count * width));
  table.read(array, first * width * static_cast<int64_t>(sizeof(T)), std::as_writable_bytes(std::span(values)));
  return values;
}

/// Passes whole rows to `sink`, table by table for all saved ranks. Keeps the pieces of a split row in memory until the
/// row is complete.
class SavedRows {
 public:
  using Sink = std::function<void(const RowBlock&)>;
  /// `spec`: the spec of the whole embedding in this run.
  SavedRows(const TableSpec& spec, Sink sink) : spec_(spec), sink_(std::move(sink)) {}

  /// Reads a table that EmbeddingTable::save_state() saved. `seen`: for each row from row 0 on, whether to use the row.
  /// If `seen` is empty, uses all rows. Errors: those of StateReader.
  void read(const StateReader& table, std::span<const int32_t> seen = {});
  /// Errors: Error(data) if a piece of a row is missing.
  void finish() const;

 private:
  /// `of_pieces`: the spec of the saved table. Its rows may be pieces of the rows of this run's table.
  static RowCopies read_block(const StateReader&, const TableSpec& of_pieces, const DirectKeys&, int64_t first,
                              int64_t count);
  void join(const RowCopies& cut, const TableSpec& of_pieces);

  const TableSpec& spec_;
  Sink sink_;
  // (slot, key): the pieces of the row; pieces not read yet are empty
  std::map<std::pair<int32_t, int64_t>, std::vector<RowCopies>> waiting_;
};

}  // namespace hctr
