// Which columns of Parquet files become labels, dense values and slots: from the Data layer and from _metadata.json.
#pragma once

#include "base/log.h"
#include "data/parquet/parquet_columns.h"
#include "data/parquet/parquet_metadata.h"
#include "data/sample_set.h"
#include "data/source.h"

namespace hctr {

/// `metadata`: that of the folder of the first file, or null. Errors: Error(data) when it is needed and missing, or
/// names fewer columns than the section has.
ParquetPlan parquet_plan(const DataSection&, const ParquetMetadata* metadata, const fs::path& first_file, KeyWidth,
                         const Log&);

/// Labels may lack: those that are null are kNoLabel, and where a file has none of their columns, they are not read.
void let_labels_lack(ParquetPlan&, const ParquetFileInfo&);

/// The fields of the plan's columns in a file. Errors: Error(data) for columns that are missing, not where `metadata`
/// says, or of the wrong type.
std::vector<int64_t> parquet_fields(const ParquetPlan&, const ParquetFileInfo&, const fs::path& file,
                                    const fs::path& metadata);

}  // namespace hctr
