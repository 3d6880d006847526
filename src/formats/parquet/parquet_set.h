// Parquet files as a set of samples. Row groups are cut into pieces of rows. Threads parse pieces concurrently and
// decode columns for each other.
#pragma once

#include <memory>

#include "formats/data/format_type.h"
#include "formats/parquet/parquet_options.h"

namespace hctr {

inline constexpr DataFormat kParquetFormat{"Parquet"};
FormatType parquet_format();

/// One file or the files of a list. Looks at each file's footer. Errors: Error(io) when there is no plug-in or a file
/// is missing; Error(data) when a file is not whole, lacks a column or has one of the wrong type, when _metadata.json
/// says otherwise, or when there are no rows.
std::unique_ptr<SampleSet> open_parquet_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
