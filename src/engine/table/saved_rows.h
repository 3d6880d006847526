// The rows of a table in a checkpoint, block by block, for a run with another placement.
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

/// Rows [first, first + count) of an array, with `width` elements each of the size of T. Errors: those of StateReader;
/// Error(data) naming the array, if it has other elements, other rows or fewer of them.
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

/// Passes whole rows on, from the tables of all ranks in turn. Pieces of cut rows wait in memory for each other.
class SavedRows {
 public:
  using Sink = std::function<void(const RowBlock&)>;
  /// `spec`: of the whole embedding in this run.
  SavedRows(const TableSpec& spec, Sink sink) : spec_(spec), sink_(std::move(sink)) {}

  /// Reads a table saved by EmbeddingTable::save_state(). `seen`: for each row, from row 0, whether to use it; empty:
  /// all. Errors: those of StateReader.
  void read(const StateReader& table, std::span<const int32_t> seen = {});
  /// Errors: Error(data) when a piece of a row is missing.
  void finish() const;

 private:
  /// `of_pieces`: the spec of the saved table, which may have cut the rows of this one.
  static RowCopies read_block(const StateReader&, const TableSpec& of_pieces, const DirectKeys&, int64_t first,
                              int64_t count);
  void join(const RowCopies& cut, const TableSpec& of_pieces);

  const TableSpec& spec_;
  Sink sink_;
  // by (slot, key): its pieces, some of them empty
  std::map<std::pair<int32_t, int64_t>, std::vector<RowCopies>> waiting_;
};

}  // namespace hctr
