// Derives the specs of the tables inside an embedding from the spec of the whole table.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/placement/placement.h"
#include "engine/spec/table_spec.h"

namespace hctr {

/// The part of the batches of all ranks that a rank owns.
struct OwnedBatches {
  std::vector<int32_t> slots;  ///< slot of each column of a batch, numbered as in the placement
  int64_t samples = 0, key_capacity = 0, eval_samples = 0, eval_key_capacity = 0;
};

/// The table of the rows that a rank owns. It sums its own keys for the samples of all ranks; the rank of the sample,
/// which knows the whole bag, applies the weights of a mean. Errors: Error(bug) when rows are cut although they cannot
/// be.
TableSpec owner_spec(const TableSpec& whole, const Placement&, const OwnedBatches&);

/// The table of the replicated slots. Errors: Error(bug) when the keys of the table are not known.
TableSpec replicated_slots_spec(const TableSpec& whole, const Placement&);

/// The table of the replicated hot rows: their keys are set between steps, at most `most_rows`.
TableSpec frequent_rows_spec(const TableSpec& whole, int64_t most_rows);

/// The whole table, which counts the occurrences of its keys if hot keys are to be found.
TableSpec counting_spec(const TableSpec& whole);

/// The candidates of a table with min_count: a store of rows without elements.
TableSpec candidate_spec(const TableSpec& whole);

}  // namespace hctr
