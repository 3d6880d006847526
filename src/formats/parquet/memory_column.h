// Columns of tables in memory.
#pragma once

#include "formats/parquet/arrow_c_data.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// A column of this type. Its texts are those of the schema, which outlives it.
ParquetField memory_field(const ArrowSchema&);
/// Rows [first, first + rows) of a column. Schema and array outlive it. The caller deletes it.
ParquetColumn* new_memory_column(const ArrowSchema&, const ArrowArray&, int64_t first, int64_t rows, ParquetForm);
/// Releases the owner of values that such a column has made.
void drop_memory_values(void* owner);

}  // namespace hctr
