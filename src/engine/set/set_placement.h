// Which ranks own the rows of an EmbeddingSet's tables.
#pragma once

#include <vector>

#include "engine/placement/placement.h"
#include "hctr/embedding.h"

namespace hctr {

/// The location of one table's rows.
struct TablePlace {
  EmbeddingPlacement::Where where = EmbeddingPlacement::Where::whole;  ///< never automatic
  int owner = 0;                                                       ///< of a whole table

  bool spread() const { return where == EmbeddingPlacement::Where::spread; }
  bool replicated() const { return where == EmbeddingPlacement::Where::replicated; }
  /// Whether the rank has rows of it.
  bool on(int rank) const { return where != EmbeddingPlacement::Where::whole || rank == owner; }
  /// The same as a Placement, for a table whose rows belong to keys alone. A replicated table has the placement of a
  /// single rank.
  Placement of_keys(int ranks) const;
  bool operator==(const TablePlace&) const = default;
};

/// The place of each table. Errors: Error(usage) naming the table whose placement does not fit.
std::vector<TablePlace> places_of(const EmbeddingOptions&, int ranks);

}  // namespace hctr
