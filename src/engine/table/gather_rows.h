// Rows of a sharded table: gathered in order on rank 0, and imported by their owners.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "engine/placement/placement.h"
#include "engine/table/table.h"

namespace hctr {

/// Rows that own their memory, which block() points to.
struct RowCopies {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots, last_steps;
  std::vector<uint32_t> last_seen, occurrences;
  std::vector<float> vectors;
  std::vector<float> states[ops::kMostStates];
  size_t next = 0;  // the first row that is not consumed yet

  bool empty() const { return next >= keys.size(); }
  /// Adds row i of a block whose vectors and states have the given numbers of elements.
  void add(const RowBlock&, size_t i, const TableSpec&);
  /// Adds piece p of row i of a block of whole rows, for a table of their pieces.
  void add_piece(const RowBlock&, size_t i, size_t p, const TableSpec&);
  RowBlock block() const;
};

/// Serialization, for other ranks.
std::string to_bytes(const RowBlock&);
RowCopies from_bytes(std::string_view);

/// Merges the rows of all ranks on rank 0; each rank adds its own in the order of (slot, key). Memory: one block per
/// rank.
class RowGathering {
 public:
  /// `sink` is called on rank 0.
  RowGathering(Communicator&, const TableSpec&, const std::function<void(const RowBlock&)>& sink);
  /// Returns when the rows have been merged, or received by rank 0.
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
  std::vector<FromRank> ranks_;  // on rank 0
};

/// Merges `mine` with the rows that `others` emits, both in the order of (slot, key), into `sink`. If both have a row,
/// the one of `mine` is used.
void merge_rows(const RowBlock& mine,
                const std::function<void(const std::function<void(const RowBlock&)>& sink)>& others, const TableSpec&,
                const std::function<void(const RowBlock&)>& sink);

/// Joins the pieces of rows, which must be consecutive and in order, to whole rows.
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

/// Imports the rows of a block, or pieces of them, that a rank owns into its table.
void import_owned_rows(const Placement&, int64_t rank, const RowBlock&, EmbeddingTable&);

}  // namespace hctr
