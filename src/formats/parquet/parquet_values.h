// Reads single values of a column that the Parquet plug-in returned.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/half.h"
#include "formats/data/rank_slice.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Calls visit(typed pointer to the values) for numeric types. Returns false for booleans, text and nulls.
template <class Visit>
bool with_values(ParquetType type, const void* values, const Visit& visit) {
  switch (type) {
    case ParquetType::i8:
      visit(static_cast<const int8_t*>(values));
      return true;
    case ParquetType::i16:
      visit(static_cast<const int16_t*>(values));
      return true;
    case ParquetType::i32:
      visit(static_cast<const int32_t*>(values));
      return true;
    case ParquetType::i64:
      visit(static_cast<const int64_t*>(values));
      return true;
    case ParquetType::u8:
      visit(static_cast<const uint8_t*>(values));
      return true;
    case ParquetType::u16:
      visit(static_cast<const uint16_t*>(values));
      return true;
    case ParquetType::u32:
      visit(static_cast<const uint32_t*>(values));
      return true;
    case ParquetType::u64:
      visit(static_cast<const uint64_t*>(values));
      return true;
    case ParquetType::f16:
      visit(static_cast<const Half*>(values));
      return true;
    case ParquetType::f32:
      visit(static_cast<const float*>(values));
      return true;
    case ParquetType::f64:
      visit(static_cast<const double*>(values));
      return true;
    default:
      return false;
  }
  return false;
}

bool is_float(ParquetType);
/// The field as it is read in the given form: with the value type of the form. Changes only decimals, dates and times.
ParquetField read_as(ParquetField, ParquetForm);
/// Whether row r has a value. Null, NaN and an empty text are treated as missing, like an empty CSV cell.
bool has_value(ParquetType, const ParquetValues&, int64_t r);
/// Whether item i has a value, by the rule of has_value().
bool has_item(ParquetType, const ParquetValues&, int64_t i);
/// Whether row r is not null.
inline bool is_valid(const ParquetValues& values, int64_t r) {
  const int64_t at = values.valid_rows_at + r;
  return !values.valid_rows || ((values.valid_rows[at >> 3] >> (at & 7)) & 1);
}
/// Whether item i is not null.
inline bool is_valid_item(const ParquetValues& values, int64_t i) {
  if (!values.list) return is_valid(values, i);
  const int64_t at = values.valid_items_at + i;
  return !values.valid_items || ((values.valid_items[at >> 3] >> (at & 7)) & 1);
}
/// Item i of a text column.
std::string_view text_at(const ParquetValues&, int64_t i);
/// Item i as a double. Integers beyond 2^53 are rounded.
double number_at(ParquetType, const ParquetValues&, int64_t i);
/// The exclusive bound below which a float type represents every integer exactly; 0 for other types.
double whole_below(ParquetType);
/// Item i as text. For text: the text itself. For an integer: its decimal digits, written to `memory`. For a boolean:
/// "1" or "0". For a float: the digits if it is an integer with magnitude below whole_below(), else empty.
std::string_view digits_at(ParquetType, const ParquetValues&, int64_t i, char (&memory)[24]);

/// Appends the value of row r as text: an empty text if missing; numbers with enough digits to distinguish them; "true"
/// and "false"; list items separated by '|'.
void append_text(ParquetType, const ParquetValues&, int64_t r, std::string& to);

/// Copies the rows of the spans to `memory`. Returns nothing for columns of lists, text, booleans or nulls, which are
/// not supported.
std::optional<ParquetValues> gather_rows(ParquetType, ParquetValues values, std::span<const RowSpan> spans,
                                         std::vector<std::byte>& memory);
/// Rows [begin, end) of `values`.
ParquetValues part_of(ParquetType, ParquetValues values, int64_t begin, int64_t end);

}  // namespace hctr
