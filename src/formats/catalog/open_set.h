// Opens data of any format, from files or from a table in memory.
#pragma once

#include <memory>

#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"

namespace hctr {

/// Opens the data set of a source. A table in memory may replace the files of the formats Parquet and Csv. If it
/// replaces CSV files, each of its values yields the same keys and dense values as the value's text in a CSV file.
/// Errors: those of the format; Error(config) for a table with another format.
std::unique_ptr<SampleSet> open_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
