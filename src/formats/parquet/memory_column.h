// Reads columns of in-memory Arrow tables.
#pragma once

#include "formats/parquet/arrow_c_data.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Describes a column of this type. The result points to texts of the schema, which must outlive it.
ParquetField memory_field(const ArrowSchema&);
/// A reader of rows [first, first + rows) of a column. Schema and array must outlive the reader; the caller deletes it.
ParquetColumn* new_memory_column(const ArrowSchema&, const ArrowArray&, int64_t first, int64_t rows, ParquetForm);
/// Frees the `owner` of values that a memory column returned.
void drop_memory_values(void* owner);

}  // namespace hctr
