// Gathers the rows of a sharded table on rank 0 in order, and imports each row on its owner.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "engine/placement/placement.h"
#include "engine/table/table.h"

namespace hctr {

/// Rows that own their memory. block() returns views of that memory.
struct RowCopies {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots, last_steps;
  std::vector<uint32_t> last_seen, occurrences;
  std::vector<float> vectors;
  std::vector<float> states[ops::kMostStates];
  size_t next = 0;  // index of the first row that is not consumed

  bool empty() const { return next >= keys.size(); }
  /// Adds row i of a block. The spec defines the widths of vectors and states.
  void add(const RowBlock&, size_t i, const TableSpec&);
  /// Adds piece p of row i of a block. The block has whole rows; the spec describes the table of pieces.
  void add_piece(const RowBlock&, size_t i, size_t p, const TableSpec&);
  RowBlock block() const;
};

/// Serialize rows to send them to other ranks.
std::string to_bytes(const RowBlock&);
RowCopies from_bytes(std::string_view);

/// Merges the rows of all ranks on rank 0. Each rank passes its own rows to add(), sorted by (slot, key). Rank 0 holds
/// one block per rank in memory.
class RowGathering {
 public:
  /// `sink` is called on rank 0 only.
  RowGathering(Communicator&, const TableSpec&, const std::function<void(const RowBlock&)>& sink);
  /// On rank 0, returns when the rows are merged. On another rank, returns when rank 0 has received the rows.
  void add(const RowBlock&);
  /// Signals that this rank has no more rows. Returns when all rows are merged.
  void finish();

 private:
  struct FromRank {
    RowCopies rows;
    bool finished = false;
  };
  enum class Turn { mine, others, over };
  Turn answer(const std::string& mine);
  void fill();
  void merge();
  bool before(const RowCopies& a, const RowCopies& b) const;

  Communicator& comm_;
  const TableSpec& spec_;
  const std::function<void(const RowBlock&)>& sink_;
  std::vector<FromRank> ranks_;  // [rank]; used on rank 0
};

/// Merges `mine` with the rows that `others` emits, and passes the result to `sink`. Both inputs are sorted by (slot,
/// key). A row that is in both inputs is taken from `mine`.
void merge_rows(const RowBlock& mine,
                const std::function<void(const std::function<void(const RowBlock&)>& sink)>& others, const TableSpec&,
                const std::function<void(const RowBlock&)>& sink);

/// Joins pieces to whole rows. The pieces of a row must be consecutive and in order.
class PieceJoining {
 public:
  /// `pieces`: the spec of the table of pieces.
  PieceJoining(const TableSpec& pieces, const std::function<void(const RowBlock&)>& sink)
      : spec_(pieces), sink_(sink) {}
  void add(const RowBlock&);

 private:
  const TableSpec& spec_;
  const std::function<void(const RowBlock&)>& sink_;
  RowCopies waiting_;  // pieces of an incomplete row
};

/// Imports into `table` those rows of a block, or pieces of rows, that `rank` owns.
void import_owned_rows(const Placement&, int64_t rank, const RowBlock&, EmbeddingTable&);

}  // namespace hctr
