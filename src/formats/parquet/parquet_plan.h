// Decides which Parquet columns become labels, dense values and slots, from the Data layer and _metadata.json.
#pragma once

#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"
#include "formats/parquet/parquet_columns.h"
#include "formats/parquet/parquet_metadata.h"

namespace hctr {

/// `metadata`: _metadata.json in the first file's folder, or null. Errors: Error(data) if the metadata is needed but
/// missing, or names fewer columns than the section has.
ParquetPlan parquet_plan(const DataSection&, const ParquetMetadata* metadata, const fs::path& first_file, KeyWidth,
                         const Log&);

/// Marks columns as optional and allows nulls, as far as the source permits.
void let_columns_lack(ParquetPlan&, const DataSection&, const Source&);

/// The field index of each column of the plan in a file; kNoField for a missing optional column. Errors: Error(data)
/// for a missing required column, a column at another index than `metadata` states, or a column of the wrong type.
std::vector<int64_t> parquet_fields(const ParquetPlan&, const ParquetFileInfo&, const fs::path& file,
                                    const fs::path& metadata);

}  // namespace hctr
