// Parquet files through Arrow C++.
#pragma once

#include "formats/parquet/parquet_plugin.h"

namespace hctr {

const char* open_arrow_file(const char* path, int64_t piece_rows, ParquetFile** file);

const char* create_arrow_writer(const ParquetField* fields, int64_t count, int64_t threads, ParquetSink sink,
                                ParquetWriter** writer);

}  // namespace hctr
