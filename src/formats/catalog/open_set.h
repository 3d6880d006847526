// Opens data of any format, from files or from a table in memory.
#pragma once

#include <memory>

#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"

namespace hctr {

/// The samples of a source as the section describes them. A table in memory takes the place of Parquet files, or of
/// Csv files: then a value makes the keys and dense values that its text would make. Errors: those of the format;
/// Error(config) for a table and a section of another format.
std::unique_ptr<SampleSet> open_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
