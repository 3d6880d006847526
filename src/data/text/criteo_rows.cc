#include "data/text/criteo_rows.h"

#include <charconv>

#include "base/error.h"
#include "data/text_values.h"

namespace hctr {
namespace {

constexpr int kFields = 1 + kCriteoIntegers + kCriteoCategories;

template <class T>
bool read_whole(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// Parses decimal digits, few enough not to overflow. Returns false for anything else.
bool read_digits(std::string_view text, int64_t& value) {
  if (text.size() > 18) return false;
  uint64_t number = 0;
  unsigned worst = 0;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned>(c) - '0';
    worst = digit > worst ? digit : worst;
    number = number * 10 + digit;
  }
  value = static_cast<int64_t>(number);
  return worst <= 9;
}

bool read_category(std::string_view text, uint32_t& value) {
  if (text.size() == 8) {
    const int64_t digits = eight_hex_digits(text.data());
    value = static_cast<uint32_t>(digits);
    return digits >= 0;
  }
  return text.size() < 8 && read_whole(text, value, 16);
}

std::string unexpected_field(const std::string& column, const char* expected, std::string_view found) {
  return cat("column ", column, ": expected ", expected, ", found '", found.substr(0, 40), "'");
}

}  // namespace

std::string parse_criteo_cells(std::span<const std::string_view> cells, CriteoRow& row) {
  if (cells.size() != kFields) return cat("expected ", kFields, " fields separated by tabs, found ", cells.size());
  if (cells[0] != "0" && cells[0] != "1") return unexpected_field("label", "0 or 1", cells[0]);
  row.label = cells[0] == "1" ? 1.0f : 0.0f;
  for (size_t i = 0; i < kCriteoIntegers; ++i) {
    const std::string_view cell = cells[1 + i];
    int64_t value = 0;
    if (!read_digits(cell, value) && !read_whole(cell, value, 10))
      return unexpected_field(cat("I", i + 1), "an integer or nothing", cell);
    row.integers[i] = cell.empty() ? std::nullopt : std::optional(value);
  }
  for (size_t i = 0; i < kCriteoCategories; ++i) {
    const std::string_view cell = cells[1 + kCriteoIntegers + i];
    uint32_t value = 0;
    if (!cell.empty() && !read_category(cell, value))
      return unexpected_field(cat("C", i + 1), "up to 8 hexadecimal digits or nothing", cell);
    row.categories[i] = cell.empty() ? std::nullopt : std::optional(value);
  }
  return "";
}

}  // namespace hctr
