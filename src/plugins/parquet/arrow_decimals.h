// Converts Arrow's decimals, dates and times to numbers and texts.
#pragma once

#include <arrow/api.h>

#include <string>
#include <vector>

#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// The type of a decimal, a date or a time; ParquetType::other for all other types.
ParquetType converted_type(const arrow::DataType&);

/// The values of an array of such a type, in the form asked for; what nulls become does not matter.
///   number   doubles: the one nearest to a decimal; of dates and times seconds, since 1970-01-01 00:00 UTC or midnight
///   integer  of decimals without places behind the point; Invalid where one does not fit 64 bits
///   value    texts that are equal where values are: decimals without zeros at their end, times without zone
///   text     decimals with all places, times with a Z behind them where they have a zone
/// Dates and times are written as 2024-01-31, 2024-01-31 07:05:00.25 and 07:05:00.25.
struct ConvertedValues {
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<int32_t> ends;  ///< text offsets: 0, then the end of each text
  std::string text;
};
arrow::Status convert(const arrow::Array&, ParquetForm, ConvertedValues&);

}  // namespace hctr
