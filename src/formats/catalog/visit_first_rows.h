// Reads the first rows of a data set before training.
#pragma once

#include <functional>
#include <optional>

#include "formats/data/column_section.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_set.h"

namespace hctr {

/// The column lists in the section's "csv" or "parquet" object; empty if the section's format has no named columns. The
/// result points into the section.
std::optional<StatedColumns> columns_of(DataSection&);

/// A copy of the section without slots, for reading only labels and dense values.
DataSection without_slots(const DataSection&);

struct FirstRowsRead {
  int64_t rows = 0;
  bool whole = false;  ///< `rows` is the whole set
};
/// Reads the first rows of each file, at most kFirstRows in total. Stops when visit(block, rows) returns false.
/// `exact`: blocks also contain dense values before rounding to float.
FirstRowsRead visit_first_rows(SampleSet&, const std::function<bool(const SampleBlock&, int64_t rows)>& visit,
                               bool exact = false);

}  // namespace hctr
