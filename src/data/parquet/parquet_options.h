// The object "parquet" of a Data layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/column_section.h"

namespace hctr {

/// Columns of Parquet files, where _metadata.json does not name them, and what nulls are.
struct ParquetOptions {
  std::vector<LabelColumn> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  std::optional<double> default_dense;
  std::optional<std::string> default_key;
  int64_t hash_seed = 0;
};
Schema<ParquetOptions> parquet_options_schema();

}  // namespace hctr
