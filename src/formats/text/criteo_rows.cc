#include "formats/text/criteo_rows.h"

#include <cmath>

#include "core/base/expect.h"
#include "formats/data/text_values.h"

namespace hctr {
namespace {

constexpr int kFields = 1 + kCriteoIntegers + kCriteoCategories;

/// Parses up to 18 decimal digits, which cannot overflow. Returns false for other texts.
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
  uint64_t bits = 0;
  if (text.size() >= 8 || !read_hex(text, bits)) return false;
  value = static_cast<uint32_t>(bits);
  return true;
}

std::string unexpected_field(const std::string& column, const char* expected, std::string_view found) {
  return cat("column ", column, ": expected ", expected, ", found '", found.substr(0, 40), "'");
}

}  // namespace

bool read_click(std::string_view text, float& label) {
  double number = 0;
  if (text != "0" && text != "1" && (!read_number(text, number) || (number != 0 && number != 1))) return false;
  label = text == "1" || number == 1 ? 1.0f : 0.0f;
  return true;
}

bool read_whole_number(std::string_view text, int64_t& value) {
  if (text.empty()) return false;
  if (read_digits(text, value) || read_integer(text, value)) return true;
  double number = 0;
  constexpr double kExact = 0x1p53;  // beyond 2^53 a double may represent several integers
  if (!read_number(text, number) || number != std::floor(number) || std::fabs(number) > kExact) return false;
  value = static_cast<int64_t>(number);
  return true;
}

std::string parse_criteo_cells(std::span<const std::string_view> cells, CriteoRow& row) {
  if (cells.size() != kFields) return cat("expected ", kFields, " fields separated by tabs, found ", cells.size());
  if (!read_click(cells[0], row.label)) return unexpected_field("label", "0 or 1", cells[0]);
  for (size_t i = 0; i < kCriteoIntegers; ++i) {
    const std::string_view cell = cells[1 + i];
    int64_t value = 0;
    if (!read_digits(cell, value) && !cell.empty() && !read_whole_number(cell, value))
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
