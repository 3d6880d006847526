// Converts Arrow's decimals, dates and times to numbers and texts.
#pragma once

#include <arrow/api.h>

#include <string>
#include <vector>

#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// The type of a decimal, a date or a time; ParquetType::other for all other types.
ParquetType converted_type(const arrow::DataType&);

/// Converts an array of decimals, dates or times to a form. Nulls become arbitrary values.
///   number   doubles: the double nearest to a decimal; of a date or time, the seconds since 1970-01-01 00:00 UTC or
///            since midnight
///   integer  64-bit integers, for decimals without fractional digits; Invalid if a decimal does not fit
///   value    texts that are equal if the values are equal: decimals without trailing zeros, times without zone
///   text     decimals with all fractional digits, times followed by Z if they have a zone
/// Dates and times are written as 2024-01-31, 2024-01-31 07:05:00.25 and 07:05:00.25.
struct ConvertedValues {
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<int32_t> ends;  ///< text offsets: 0, then the end of each text
  std::string text;
};
arrow::Status convert(const arrow::Array&, ParquetForm, ConvertedValues&);

}  // namespace hctr
