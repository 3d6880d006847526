#include "formats/parquet/parquet_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

namespace hctr {
namespace {

bool bit(const uint8_t* bits, int64_t at) { return (bits[at >> 3] >> (at & 7)) & 1; }

/// Whether item i is neither an empty text nor NaN.
bool says_something(ParquetType type, const ParquetValues& values, int64_t i) {
  if (values.text) return values.text[i] < values.text[i + 1];
  return !is_float(type) || !std::isnan(number_at(type, values, i));
}

}  // namespace

bool is_float(ParquetType type) {
  return type == ParquetType::f16 || type == ParquetType::f32 || type == ParquetType::f64;
}

ParquetField read_as(ParquetField field, ParquetForm form) {
  switch (field.type) {
    case ParquetType::decimal:
    case ParquetType::whole_decimal:
    case ParquetType::date:
    case ParquetType::timestamp:
    case ParquetType::clock:
      field.formatted = form == ParquetForm::value || form == ParquetForm::text;
      field.type = field.formatted               ? ParquetType::text
                   : form == ParquetForm::number ? ParquetType::f64
                                                 : ParquetType::i64;
      break;
    default:
      break;
  }
  return field;
}

bool has_value(ParquetType type, const ParquetValues& values, int64_t r) {
  return is_valid(values, r) && (values.list || says_something(type, values, r));
}

bool has_item(ParquetType type, const ParquetValues& values, int64_t i) {
  return is_valid_item(values, i) && says_something(type, values, i);
}

std::string_view text_at(const ParquetValues& values, int64_t item) {
  return {static_cast<const char*>(values.values) + values.text[item],
          static_cast<size_t>(values.text[item + 1] - values.text[item])};
}

double number_at(ParquetType type, const ParquetValues& values, int64_t item) {
  if (type == ParquetType::boolean) return bit(static_cast<const uint8_t*>(values.values), values.bits_at + item);
  double number = 0;
  with_values(type, values.values, [&](const auto* from) {
    if constexpr (std::is_same_v<decltype(from), const Half*>)
      number = static_cast<double>(static_cast<float>(from[item]));
    else
      number = static_cast<double>(from[item]);
  });
  return number;
}

double whole_below(ParquetType type) {
  return type == ParquetType::f64   ? 9007199254740992.0  // 2^53
         : type == ParquetType::f32 ? 16777216.0          // 2^24
         : type == ParquetType::f16 ? 2048.0
                                    : 0;
}

std::string_view digits_at(ParquetType type, const ParquetValues& values, int64_t item, char (&memory)[24]) {
  if (type == ParquetType::text) return text_at(values, item);
  if (type == ParquetType::boolean)
    return bit(static_cast<const uint8_t*>(values.values), values.bits_at + item) ? "1" : "0";
  char* end = memory;
  if (is_float(type)) {
    const double number = number_at(type, values, item);
    if (number != std::floor(number) || !(std::fabs(number) < whole_below(type))) return {};
    end = std::to_chars(memory, memory + sizeof memory, static_cast<int64_t>(number)).ptr;
    return {memory, static_cast<size_t>(end - memory)};
  }
  with_values(type, values.values, [&](const auto* from) {
    using T = std::remove_cvref_t<decltype(*from)>;
    if constexpr (std::is_integral_v<T>) end = std::to_chars(memory, memory + sizeof memory, +from[item]).ptr;
  });
  return {memory, static_cast<size_t>(end - memory)};
}

void append_text(ParquetType type, const ParquetValues& values, int64_t r, std::string& to) {
  if (!has_value(type, values, r)) return;
  const int64_t begin = values.list ? values.list[r] : r, end = values.list ? values.list[r + 1] : r + 1;
  char memory[32];
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) to += '|';
    if (!has_item(type, values, i)) continue;
    if (type == ParquetType::text)
      to += text_at(values, i);
    else if (type == ParquetType::boolean)
      to += number_at(type, values, i) == 0 ? "false" : "true";
    else
      with_values(type, values.values, [&](const auto* from) {
        char* last = memory;
        if constexpr (std::is_same_v<decltype(from), const Half*>)
          last = std::to_chars(memory, memory + sizeof memory, static_cast<float>(from[i])).ptr;
        else
          last = std::to_chars(memory, memory + sizeof memory, +from[i]).ptr;
        to.append(memory, last);
      });
  }
}

std::optional<ParquetValues> gather_rows(ParquetType type, ParquetValues values, std::span<const RowSpan> spans,
                                         std::vector<std::byte>& memory) {
  if (values.list || values.valid_rows) return std::nullopt;
  const bool numbers = with_values(type, values.values, [&](const auto* from) {
    using T = std::remove_cvref_t<decltype(*from)>;
    const auto most = static_cast<size_t>(values.rows) * sizeof(T);
    if (memory.size() < most) memory.resize(most);
    auto* const begin = reinterpret_cast<T*>(memory.data());
    auto* to = begin;
    for (const RowSpan& span : spans) to = std::copy(from + span.begin, from + span.end, to);
    values.values = begin;
    values.rows = to - begin;
  });
  return numbers ? std::optional(values) : std::nullopt;
}

ParquetValues part_of(ParquetType type, ParquetValues values, int64_t begin, int64_t end) {
  values.rows = end - begin;
  values.valid_rows_at += begin;
  if (values.list) {
    values.list += begin;
  } else if (values.text) {
    values.text += begin;
  } else if (!with_values(type, values.values, [&](const auto* from) { values.values = from + begin; })) {
    values.bits_at += begin;
  }
  return values;
}

}  // namespace hctr
