// Converts Arrow arrays to the plain values that the program reads, and back.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <vector>

#include "formats/parquet/parquet_plugin.h"
#include "plugins/parquet/arrow_decimals.h"

namespace hctr {

/// Owns the memory that ParquetValues points to.
struct ValuesOwner {
  std::shared_ptr<arrow::Array> array, items;
  std::vector<int32_t> list, text;
  std::vector<uint8_t> none_valid;  // zero validity bits for an array of type null
  std::shared_ptr<arrow::Buffer> bytes;
  ConvertedValues converted;
};

/// The type of a field; ParquetType::other for types that the program does not read.
ParquetType type_of(const arrow::DataType& type, bool& list);

/// Makes views of `array`, whose type type_of() must know. Copies offsets that are not 32 bits wide, and dictionary
/// texts. Converts decimals, dates and times to `form`.
arrow::Status describe(const std::shared_ptr<arrow::Array>& array, ParquetForm form, ParquetValues& values,
                       ValuesOwner& owner);

/// arrow_type(): the Arrow type of a column to write. arrow_array(): an array that refers to the column's values.
std::shared_ptr<arrow::DataType> arrow_type(const ParquetField&);
std::shared_ptr<arrow::Array> arrow_array(const ParquetField&, const ParquetValues&);

}  // namespace hctr
