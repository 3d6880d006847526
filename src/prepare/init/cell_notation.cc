#include "prepare/init/cell_notation.h"

#include <algorithm>
#include <string>

#include "data/bracketed_list.h"
#include "data/text_values.h"

namespace hctr {
namespace {

/// Y: year, four digits; y: two digits; m, d: one or two digits; b: name of a month; H, M, S: time; others themselves.
constexpr std::string_view kDates[] = {"Y-m-d", "Y/m/d", "Y.m.d", "d.m.Y", "d/m/Y", "m/d/Y",  "d-m-Y", "m-d-Y", "d.m.y",
                                       "m/d/y", "d/m/y", "d-m-y", "d b Y", "d-b-Y", "b d, Y", "b d Y", "d/b/Y"};
constexpr std::string_view kTimes[] = {"H:M:S", "H:M"};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kCurrencies[] = {"$",   "\u20ac", "\u00a3", "\u00a5", "\u20b9", "USD",
                                            "EUR", "GBP",    "JPY",    "CHF",    "CNY",    "INR"};
constexpr std::string_view kUnits[] = {"%",  "\u2030", "kg", "mg", "lb", "lbs", "oz", "km", "cm",  "mm",  "mi",   "ft",
                                       "px", "ms",     "kB", "KB", "MB", "GB",  "TB", "kW", "kWh", "min", "hours"};
constexpr std::string_view kGroupSigns[] = {",", ".", "'", " ", "_", "\u00a0", "\u202f", "\u2019"};

size_t digits_at_start(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

/// Removes a number of `least` to `most` digits and at most `limit`.
bool take_number(std::string_view& text, size_t least, size_t most, int from, int limit) {
  const size_t count = digits_at_start(text);
  if (count < least || count > most) return false;
  int value = 0;
  for (size_t i = 0; i < count; ++i) value = value * 10 + (text[i] - '0');
  text.remove_prefix(count);
  return value >= from && value <= limit;
}

bool take_month(std::string_view& text) {
  std::string word;
  while (word.size() < text.size() && ((text[word.size()] | 0x20) >= 'a' && (text[word.size()] | 0x20) <= 'z'))
    word += static_cast<char>(text[word.size()] | 0x20);
  text.remove_prefix(word.size());
  return word.size() >= 3 && std::find(std::begin(kMonths), std::end(kMonths), word.substr(0, 3)) != std::end(kMonths);
}

bool take(std::string_view& text, char field) {
  switch (field) {
    case 'Y':
      return take_number(text, 4, 4, 1000, 2999);
    case 'y':
      return take_number(text, 2, 2, 0, 99);
    case 'm':
      return take_number(text, 1, 2, 1, 12);
    case 'd':
      return take_number(text, 1, 2, 1, 31);
    case 'H':
      return take_number(text, 1, 2, 0, 24);
    case 'M':
      return take_number(text, 2, 2, 0, 59);
    case 'S':
      return take_number(text, 2, 2, 0, 60);
    case 'b':
      return take_month(text);
    default:
      if (!text.starts_with(field)) return false;
      text.remove_prefix(1);
      return true;
  }
}

bool take_format(std::string_view& text, std::string_view format) {
  std::string_view rest = text;
  if (!std::all_of(format.begin(), format.end(), [&](char field) { return take(rest, field); })) return false;
  text = rest;
  return true;
}

/// What may follow a time: a fraction of a second, "AM", a time zone.
bool is_end_of_time(std::string_view rest) {
  if (!rest.empty() && (rest[0] == '.' || rest[0] == ',')) rest.remove_prefix(1 + digits_at_start(rest.substr(1)));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.empty()) return true;
  if (rest[0] == '+' || rest[0] == '-')
    return rest.size() <= 6 &&
           std::all_of(rest.begin() + 1, rest.end(), [](char c) { return is_digit(c) || c == ':'; });
  for (const std::string_view word : {"Z", "UTC", "GMT", "AM", "PM", "am", "pm"})
    if (rest == word) return true;
  return false;
}

bool is_time_of_day(std::string_view text, bool with_seconds) {
  for (const std::string_view format : kTimes) {
    std::string_view rest = text;
    if (take_format(rest, format)) return is_end_of_time(rest) && (!with_seconds || format == kTimes[0]);
  }
  return false;
}

/// Removes `sign` and blanks around the rest.
bool take_sign(std::string_view& text, std::string_view sign) {
  if (text.starts_with(sign))
    text.remove_prefix(sign.size());
  else if (text.ends_with(sign))
    text.remove_suffix(sign.size());
  else
    return false;
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return true;
}

/// Digits in groups of three with `sign` between them, and perhaps a fraction.
Notation grouped_digits(std::string_view text, std::string_view sign) {
  const size_t first = digits_at_start(text);
  if (first == 0 || first > 3 || text[0] == '0') return Notation::none;
  text.remove_prefix(first);
  size_t groups = 0;
  bool zero = false;  // a group that starts with 0, as few integers of a list do
  while (text.starts_with(sign) && digits_at_start(text.substr(sign.size())) == 3) {
    zero = zero || text[sign.size()] == '0';
    text.remove_prefix(sign.size() + 3);
    ++groups;
  }
  if (groups == 0) return Notation::none;
  if (text.empty()) return zero || (sign != "," && sign != " ") ? Notation::number : Notation::ambiguous;
  const bool fraction = (text[0] == '.' || text[0] == ',') && !text.starts_with(sign) && text.size() > 1 &&
                        digits_at_start(text.substr(1)) == text.size() - 1;
  return fraction ? Notation::number : Notation::none;
}

bool has_decimal_comma(std::string_view text) {
  const size_t first = digits_at_start(text);
  return first > 0 && first + 1 < text.size() && text[first] == ',' &&
         digits_at_start(text.substr(first + 1)) == text.size() - first - 1;
}

}  // namespace

bool is_date_or_time(std::string_view text) {
  if (text.size() < 6 || text.size() > 40) return false;
  if (is_time_of_day(text, true)) return true;
  return std::any_of(std::begin(kDates), std::end(kDates), [&](std::string_view format) {
    std::string_view rest = text;
    if (!take_format(rest, format)) return false;
    if (rest.empty() || rest == "Z") return true;
    if (rest[0] != ' ' && rest[0] != 'T' && rest[0] != 't' && rest[0] != ':') return false;
    return is_time_of_day(rest.substr(1), false);
  });
}

bool has_list_in_brackets(std::string_view text) {
  return is_in_brackets(text) && text.find_first_of(",;|'\" \n\t", 1) != text.npos;
}

Notation number_notation(std::string_view text) {
  if (text.size() > 40) return Notation::none;
  bool marked = false;
  if (text.starts_with('(') && text.ends_with(')')) {  // a negative amount; lists have blanks behind their commas
    text = text.substr(1, text.size() - 2);
    marked = grouped_digits(text, ",") != Notation::none;
  }
  if (text.starts_with('-')) text.remove_prefix(1);
  for (const std::string_view sign : kCurrencies) marked = marked || take_sign(text, sign);
  for (const std::string_view unit : kUnits)
    if (!marked && text.ends_with(unit)) marked = take_sign(text, unit);
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return Notation::none;
  double number = 0;
  if (marked && read_number(text, number)) return Notation::number;
  Notation best = has_decimal_comma(text) ? Notation::ambiguous : Notation::none;
  for (const std::string_view sign : kGroupSigns) best = std::max(best, grouped_digits(text, sign));
  return marked && best != Notation::none ? Notation::number : best;
}

}  // namespace hctr
