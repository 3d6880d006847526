// Rows of a table that is spread over ranks: brought together in order, and picked out again.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "embedding/placement.h"
#include "embedding/table.h"

namespace hctr {

/// Rows in memory of their own; what RowBlock points to.
struct RowCopies {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots, last_steps;
  std::vector<uint32_t> last_seen, occurrences;
  std::vector<float> vectors;
  std::vector<float> states[ops::kMostStates];
  size_t next = 0;  // the first that is not taken yet

  bool empty() const { return next >= keys.size(); }
  /// Adds row i of a block whose vectors and states have so many elements.
  void add(const RowBlock&, size_t i, const TableSpec&);
  /// Adds piece p of row i of a block of whole rows, for a table of their pieces.
  void add_piece(const RowBlock&, size_t i, size_t p, const TableSpec&);
  RowBlock block() const;
};

/// As text for other ranks, and back.
std::string to_bytes(const RowBlock&);
RowCopies from_bytes(std::string_view);

/// Merges the rows of all ranks, each giving its own in the order of (slot, key), on rank 0. A block a rank is all that
/// is kept in memory.
class RowGathering {
 public:
  /// `sink` is called on rank 0.
  RowGathering(Communicator&, const TableSpec&, const std::function<void(const RowBlock&)>& sink);
  /// Returns when the rows are merged or on rank 0.
  void add(const RowBlock&);
  /// This rank has no more. Returns when all rows are merged.
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

/// Gives what `others` gives, with `mine` in its place, all in the order of (slot, key): where both have a row, mine.
void merge_rows(const RowBlock& mine,
                const std::function<void(const std::function<void(const RowBlock&)>& sink)>& others, const TableSpec&,
                const std::function<void(const RowBlock&)>& sink);

/// On the way to a file: the pieces of a row, which come side by side and in their order, as one row.
class PieceJoining {
 public:
  /// `pieces`: of the table whose rows come.
  PieceJoining(const TableSpec& pieces, const std::function<void(const RowBlock&)>& sink)
      : spec_(pieces), sink_(sink) {}
  void add(const RowBlock&);

 private:
  const TableSpec& spec_;
  const std::function<void(const RowBlock&)>& sink_;
  RowCopies waiting_;  // for the rest of the last row
};

/// Those rows of a block, or pieces of them, that a rank owns, into its table.
void import_owned_rows(const Placement&, int64_t rank, const RowBlock&, EmbeddingTable&);

}  // namespace hctr
