// Reading single values of a column that the Parquet plug-in hands over.
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

/// Calls visit(pointer to the values) with their type; false for booleans, text and nulls, which are not stored as
/// such.
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
/// The field as it is read in a form: decimals, dates and times have the type that values then have.
ParquetField read_as(ParquetField, ParquetForm);
/// Whether row r has a value. Null, NaN and an empty text are none, as an empty cell of a Csv is.
bool has_value(ParquetType, const ParquetValues&, int64_t r);
/// The same of item i.
bool has_item(ParquetType, const ParquetValues&, int64_t i);
/// Whether row r, or item i, is not null.
inline bool is_valid(const ParquetValues& values, int64_t r) {
  const int64_t at = values.valid_rows_at + r;
  return !values.valid_rows || ((values.valid_rows[at >> 3] >> (at & 7)) & 1);
}
inline bool is_valid_item(const ParquetValues& values, int64_t i) {
  if (!values.list) return is_valid(values, i);
  const int64_t at = values.valid_items_at + i;
  return !values.valid_items || ((values.valid_items[at >> 3] >> (at & 7)) & 1);
}
/// Item i of a column of text.
std::string_view text_at(const ParquetValues&, int64_t i);
/// A number as a double; integers beyond 2^53 are rounded.
double number_at(ParquetType, const ParquetValues&, int64_t i);
/// Floats below it in size are whole numbers that no other number is rounded to; 0 for other types.
double whole_below(ParquetType);
/// The decimal digits of an integer, written to `memory`, or the text. A whole float counts as the integer; any other,
/// and one that other integers may be rounded to, has no digits.
std::string_view digits_at(ParquetType, const ParquetValues&, int64_t i, char (&memory)[24]);

/// Appends the value of row r as a text: nothing for none, numbers with as many digits as distinguish them, true and
/// false, values of a list with '|' between them.
void append_text(ParquetType, const ParquetValues&, int64_t r, std::string& to);

/// Copies the rows of the spans, in their order, to `memory`; nothing for columns of lists, text, booleans or nulls.
std::optional<ParquetValues> gather_rows(ParquetType, ParquetValues values, std::span<const RowSpan> spans,
                                         std::vector<std::byte>& memory);
/// Rows [begin, end) of `values`.
ParquetValues part_of(ParquetType, ParquetValues values, int64_t begin, int64_t end);

}  // namespace hctr
