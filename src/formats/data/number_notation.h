// Notations of numbers in texts: signs between thousands, the decimal sign, units.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/schema.h"

namespace hctr {

/// How the digits of a number are written. The words of configs are examples.
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
/// "1.234,5": the word of a config.
const std::string& word_of(NumberFormat);
/// The format of a word, as --number-format of the programs takes it. Errors: Error(usage).
NumberFormat number_format_of(const std::string& word);
/// Whether a point stands before the fraction.
bool has_decimal_point(NumberFormat);

/// Config settings for the numbers of a column.
struct NumberNotation {
  std::optional<NumberFormat> format;  ///< none: that of the source
  std::string unit{};                  ///< stands before or after each number; "%" and per mille scale it

  bool given() const { return format.has_value() || !unit.empty(); }
  /// Whether read_number() without a notation reads the same.
  bool plain() const { return !given(); }
  /// The same if the source states the notation of its numbers.
  NumberNotation within(const std::optional<NumberFormat>& source) const { return {format ? format : source, unit}; }
};

/// The double nearest to the number. Each value has the unit. Its digits have no other separator, and exactly three
/// digits between two separators; separators may be omitted. Blanks around signs are skipped; with an explicit
/// notation, (12) and 12- are -12. False when the text is not such a number, or no finite float.
bool read_number(const NumberNotation&, std::string_view text, double& value);

/// "a number", or "a number as 1.234,5 with '%'", for messages.
std::string describe(const NumberNotation&);

/// The manual's sentences on "number_format" of a column, and on "unit".
extern const char* const kNumberFormatHelp;
extern const char* const kUnitHelp;
/// Reports a unit that is part of a number.
void check_notation(const NumberNotation&, const std::string& pointer, Problems&);

}  // namespace hctr
