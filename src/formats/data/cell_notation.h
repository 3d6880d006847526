// Recognizes the notation of a cell: dates, numbers with separators or units that read_number() rejects, and lists in
// brackets.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// Whether the whole text is a date, a date with a time, or a time of day with seconds. The format must be known, and
/// month, day and hour in range. An IPv4 address or a version number does not match.
bool is_date_or_time(std::string_view text);

/// Whether the text has brackets that contain several values or a quoted value.
bool has_list_in_brackets(std::string_view text);

enum class Notation {
  none,       ///< not a number
  ambiguous,  ///< such as "1,234", which may be two integers
  number,     ///< such as "1,234.50", "1.234,50", "1'234", "1,005", "$ 12", "5 %", "3 kg"
};
/// Classifies a text that read_number() rejects.
Notation number_notation(std::string_view text);

/// The unit after a number: " years" in "30 years". All suffixes for thousands, millions and billions, such as "K" in
/// "1.5K", yield the same unit. Empty if the text does not start with a number or has no unit.
std::string_view unit_behind(std::string_view text);

/// Whether the decimal point of a number may be a thousands separator, as in "1.234".
bool has_point_of_thousands(std::string_view text);

/// If the text is a date, or a number in another notation, returns "; " and a hint on how to store it as a number; else
/// empty. `options`: names the options that could read the text.
std::string number_hint(std::string_view text,
                        const char* options = "\"number_format\" and \"unit\" of the column say otherwise");

}  // namespace hctr
