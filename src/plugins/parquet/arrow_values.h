// Arrow's arrays as the plain values that the program reads, and back.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <vector>

#include "formats/parquet/parquet_plugin.h"
#include "plugins/parquet/arrow_decimals.h"

namespace hctr {

/// Keeps the pointers of ParquetValues valid.
struct ValuesOwner {
  std::shared_ptr<arrow::Array> array, items;
  std::vector<int32_t> list, text;
  std::vector<uint8_t> none_valid;  // bits of an array of type null
  std::shared_ptr<arrow::Buffer> bytes;
  ConvertedValues converted;
};

/// The type of a field; ParquetType::other for what the program does not read.
ParquetType type_of(const arrow::DataType& type, bool& list);

/// Views of `array`, whose type type_of() knows. Copies offsets where they are not 32 bits wide, and texts that a
/// dictionary holds; decimals, dates and times are converted to `form`.
arrow::Status describe(const std::shared_ptr<arrow::Array>& array, ParquetForm form, ParquetValues& values,
                       ValuesOwner& owner);

/// The type of a column to be written, and its values as an array that refers to them.
std::shared_ptr<arrow::DataType> arrow_type(const ParquetField&);
std::shared_ptr<arrow::Array> arrow_array(const ParquetField&, const ParquetValues&);

}  // namespace hctr
