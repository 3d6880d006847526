// Assigns the rows of an EmbeddingSet's tables to ranks.
#pragma once

#include <vector>

#include "engine/placement/placement.h"
#include "hctr/embedding.h"

namespace hctr {

/// The placement of one table's rows.
struct TablePlace {
  EmbeddingPlacement::Where where = EmbeddingPlacement::Where::whole;  ///< never `automatic`
  int owner = 0;                                                       ///< owner rank of a whole table

  bool spread() const { return where == EmbeddingPlacement::Where::spread; }
  bool replicated() const { return where == EmbeddingPlacement::Where::replicated; }
  /// Whether `rank` has rows of the table.
  bool on(int rank) const { return where != EmbeddingPlacement::Where::whole || rank == owner; }
  /// Converts to a Placement, for a table whose rows do not depend on slots. A replicated table has the placement of a
  /// single rank.
  Placement of_keys(int ranks) const;
  bool operator==(const TablePlace&) const = default;
};

/// Returns the place of each table. Errors: Error(usage) naming the table whose placement is invalid.
std::vector<TablePlace> places_of(const EmbeddingOptions&, int ranks);

}  // namespace hctr
