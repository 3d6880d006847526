// The rows of a table in a checkpoint, block by block, for a run that places them otherwise.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/state_reader.h"
#include "embedding/direct_keys.h"
#include "embedding/gather_rows.h"
#include "embedding/table.h"

namespace hctr {

/// Passes whole rows on, from the tables of all ranks one after another. Where rows were cut, their pieces wait in
/// memory for each other.
class SavedRows {
 public:
  using Sink = std::function<void(const RowBlock&)>;
  /// `spec`: of the whole embedding in this run.
  SavedRows(const TableSpec& spec, Sink sink) : spec_(spec), sink_(std::move(sink)) {}

  /// Reads the table that EmbeddingTable::save_state() has saved. `seen`: of each row, from row 0, whether it is taken;
  /// empty: all. Errors: those of StateReader.
  void read(const StateReader& table, std::span<const int32_t> seen = {});
  /// Errors: Error(data) when a piece of a row is missing.
  void finish() const;

 private:
  RowCopies read_block(const StateReader&, const DirectKeys&, int64_t first, int64_t count) const;
  void join(const RowCopies& cut, const TableSpec& of_pieces);

  const TableSpec& spec_;
  Sink sink_;
  std::map<std::pair<int32_t, int64_t>, std::vector<RowCopies>> waiting_;  // by (slot, key): its pieces, some empty
};

}  // namespace hctr
