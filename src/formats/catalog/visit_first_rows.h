// Reads the first rows of a set before training.
#pragma once

#include <functional>
#include <optional>

#include "formats/data/column_section.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_set.h"

namespace hctr {

/// The columns that the section's format states. Points into the section.
std::optional<StatedColumns> columns_of(DataSection&);

/// A copy of the section for reading labels and dense values alone: no keys.
DataSection without_slots(const DataSection&);

struct FirstRowsRead {
  int64_t rows = 0;
  bool whole = false;  ///< these are all rows of the set
};
/// Reads the first rows of each file, kFirstRows in all at most. visit(block, rows) returns false to end. `exact`: with
/// dense values before they are rounded.
FirstRowsRead visit_first_rows(SampleSet&, const std::function<bool(const SampleBlock&, int64_t rows)>& visit,
                               bool exact = false);

}  // namespace hctr
