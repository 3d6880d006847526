// Parquet files as a SampleSet. Row groups are divided into pieces of rows. Threads parse pieces concurrently and share
// the decoding of columns.
#pragma once

#include <memory>

#include "formats/data/format_type.h"
#include "formats/parquet/parquet_options.h"

namespace hctr {

inline constexpr DataFormat kParquetFormat{"Parquet"};
FormatType parquet_format();

/// Opens one file or the files of a list, and reads all footers. Errors: Error(io) if the plug-in or a file is missing;
/// Error(data) if a file is damaged, lacks a column or has a column of the wrong type, contradicts _metadata.json, or
/// if there are no rows.
std::unique_ptr<SampleSet> open_parquet_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
