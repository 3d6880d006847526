// The notation of a cell: dates, numbers with separators that the readers do not read, lists in brackets.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// Whether all of the text is a date, a date with a time, or a time of day with seconds, in a known format and within
/// the ranges of months, days and hours. An IPv4 address or a version is none.
bool is_date_or_time(std::string_view text);

/// Whether there is more than one value, or a quoted one, in brackets.
bool has_list_in_brackets(std::string_view text);

enum class Notation {
  none,       ///< no such number
  ambiguous,  ///< "1,234", which may be two integers
  number,     ///< "1,234.50", "1.234,50", "1'234", "1,005", "$ 12", "5 %", "3 kg"
};
/// The kind of number in a text whose notation read_number() does not read.
Notation number_notation(std::string_view text);

/// The suffix of a number: " years" of "30 years"; suffixes for thousands and millions, as "K" of "1.5K", are equal.
/// Empty: the text does not begin with a number, or is one.
std::string_view unit_behind(std::string_view text);

/// Whether a number's point may be a thousands separator: "1.234".
bool has_point_of_thousands(std::string_view text);

/// How to read a text as a number, after "; ", if it is a date or a number in another notation. `options`: names of the
/// options that read it.
std::string number_hint(std::string_view text,
                        const char* options = "\"number_format\" and \"unit\" of the column say otherwise");

}  // namespace hctr
