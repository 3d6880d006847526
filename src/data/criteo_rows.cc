#include "data/criteo_rows.h"

#include <charconv>

#include "base/error.h"

namespace hctr {
namespace {

constexpr int kFields = 1 + kCriteoIntegers + kCriteoCategories;

template <class T>
bool read_number(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

std::string unexpected(const std::string& column, const char* expected, std::string_view found) {
  return cat("column ", column, ": expected ", expected, ", found '", found.substr(0, 40), "'");
}

}  // namespace

std::string parse_criteo_row(std::string_view line, CriteoRow& row) {
  std::array<std::string_view, kFields> fields;
  int count = 0;
  for (std::string_view rest = line;; ++count) {
    const size_t tab = rest.find('\t');
    if (count < kFields) fields[static_cast<size_t>(count)] = rest.substr(0, tab);
    if (tab == rest.npos) break;
    rest.remove_prefix(tab + 1);
  }
  if (++count != kFields) return cat("expected ", kFields, " fields separated by tabs, found ", count);

  if (fields[0] != "0" && fields[0] != "1") return unexpected("label", "0 or 1", fields[0]);
  row.label = fields[0] == "1" ? 1.0f : 0.0f;
  for (size_t i = 0; i < kCriteoIntegers; ++i) {
    const std::string_view field = fields[1 + i];
    int64_t value = 0;
    if (!field.empty() && !read_number(field, value, 10)) return unexpected(cat("I", i + 1), "an integer or nothing", field);
    row.integers[i] = field.empty() ? std::nullopt : std::optional(value);
  }
  for (size_t i = 0; i < kCriteoCategories; ++i) {
    const std::string_view field = fields[1 + kCriteoIntegers + i];
    uint32_t value = 0;
    if (!field.empty() && (field.size() > 8 || !read_number(field, value, 16)))
      return unexpected(cat("C", i + 1), "up to 8 hexadecimal digits or nothing", field);
    row.categories[i] = field.empty() ? std::nullopt : std::optional(value);
  }
  return "";
}

}  // namespace hctr
