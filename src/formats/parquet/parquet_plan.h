// Which columns of Parquet files become labels, dense values and slots: from the Data layer and from _metadata.json.
#pragma once

#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"
#include "formats/parquet/parquet_columns.h"
#include "formats/parquet/parquet_metadata.h"

namespace hctr {

/// `metadata`: that of the folder of the first file, or null. Errors: Error(data) when it is needed and missing, or
/// names fewer columns than the section has.
ParquetPlan parquet_plan(const DataSection&, const ParquetMetadata* metadata, const fs::path& first_file, KeyWidth,
                         const Log&);

/// Allows missing columns and nulls where the source allows them.
void let_columns_lack(ParquetPlan&, const DataSection&, const Source&);

/// The fields of the plan's columns in a file; kNoField for those that may be missing and are. Errors: Error(data) for
/// other columns that are missing, and for columns that are not where `metadata` says, or of the wrong type.
std::vector<int64_t> parquet_fields(const ParquetPlan&, const ParquetFileInfo&, const fs::path& file,
                                    const fs::path& metadata);

}  // namespace hctr
