// Notations of numbers in texts: thousands separators, decimal separators, units.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/schema.h"

namespace hctr {

/// Thousands and decimal separators of a number. In a config, an example number names the format.
enum class NumberFormat {
  plain,              ///< 1234.5
  comma,              ///< 1234,5
  commas_point,       ///< 1,234.5
  points_comma,       ///< 1.234,5
  blanks_point,       ///< 1 234.5
  blanks_comma,       ///< 1 234,5
  apostrophes_point,  ///< 1'234.5
  apostrophes_comma,  ///< 1'234,5
  underscores_point,  ///< 1_234.5
  underscores_comma,  ///< 1_234,5
  indian,             ///< 12,34,567.5
};
inline constexpr int kNumberFormats = 11;

template <>
struct EnumWords<NumberFormat> {
  static const std::vector<std::pair<std::string, NumberFormat>>& table();
};
/// The format's name in configs, such as "1.234,5".
const std::string& word_of(NumberFormat);
/// The format named by a --number-format argument. Errors: Error(usage).
NumberFormat number_format_of(const std::string& word);
/// Whether the decimal separator is a point.
bool has_decimal_point(NumberFormat);

/// The notation of numbers in a column.
struct NumberNotation {
  std::optional<NumberFormat> format;  ///< empty: the format of the source
  std::string unit{};                  ///< prefix or suffix of each number; "%" and per mille scale the number

  bool given() const { return format.has_value() || !unit.empty(); }
  /// Whether the notation is empty, so that read_number() without a notation gives the same result.
  bool plain() const { return !given(); }
  /// A copy of this notation. If `format` is empty, the copy has the format of the source.
  NumberNotation within(const std::optional<NumberFormat>& source) const { return {format ? format : source, unit}; }
};

/// Sets `value` to the double nearest to the number. A number must have the unit. Thousands separators are optional; if
/// present, they separate groups of three digits (Indian format: of two digits, but three at the end). Blanks around
/// signs are skipped. With an explicit notation, (12) and 12- mean -12. Returns false if the text is not such a number,
/// or not a finite float.
bool read_number(const NumberNotation&, std::string_view text, double& value);

/// Describes the notation for messages: "a number", or "a number as 1.234,5 with '%'".
std::string describe(const NumberNotation&);

/// The manual's texts on "number_format" and "unit" of a column.
extern const char* const kNumberFormatHelp;
extern const char* const kUnitHelp;
/// Reports a unit that could be part of a number.
void check_notation(const NumberNotation&, const std::string& pointer, Problems&);

}  // namespace hctr
