// An embedding can consist of several tables. These functions derive the spec of each table from the spec of the whole
// table.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/placement/placement.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// The batches that an owner rank receives: the columns that it owns, for the samples of all ranks.
struct OwnedBatches {
  std::vector<int32_t> slots;  ///< the slot of each column of a batch, numbered as in the placement
  int64_t samples = 0, key_capacity = 0, eval_samples = 0, eval_key_capacity = 0;
};

/// The table of the rows that a rank owns. Whatever the combiner, this table sums the vectors of its own keys, for the
/// samples of all ranks. The rank of a sample divides the sum for Combiner::mean and Combiner::sqrtn, because only that
/// rank knows the whole bag. Errors: Error(bug) if rows are split although whole.may_be_cut() is false.
TableSpec owner_spec(const TableSpec& whole, const Placement&, const OwnedBatches&);

/// The table of the replicated slots. Errors: Error(bug) if the keys of the table are unknown.
TableSpec replicated_slots_spec(const TableSpec& whole, const Placement&);

/// The table of the replicated hot rows. Keys are assigned between steps, at most `most_rows`.
TableSpec frequent_rows_spec(const TableSpec& whole, int64_t most_rows);

/// The whole table. If hot keys must be found, it counts the occurrences of keys.
TableSpec counting_spec(const TableSpec& whole);

/// The store of candidates of a table with min_count. Its rows have no elements.
TableSpec candidate_spec(const TableSpec& whole);

}  // namespace hctr
