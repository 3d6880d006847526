#include "formats/data/cell_notation.h"

#include <algorithm>
#include <string>

#include "core/base/expect.h"
#include "formats/data/bracketed_list.h"
#include "formats/data/text_values.h"

namespace hctr {
namespace {

/// Date formats. Y: four-digit year; y: two-digit year; m, d: one or two digits; b: month name; H, M, S: time. Other
/// characters match literally.
constexpr std::string_view kDates[] = {"Y-m-d", "Y/m/d", "Y.m.d", "d.m.Y", "d/m/Y", "m/d/Y",  "d-m-Y", "m-d-Y", "d.m.y",
                                       "m/d/y", "d/m/y", "d-m-y", "d b Y", "d-b-Y", "b d, Y", "b d Y", "d/b/Y"};
constexpr std::string_view kTimes[] = {"H:M:S", "H:M"};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kCurrencies[] = {"USD", "EUR", "GBP", "JPY", "CHF", "CNY",     "INR",     "RUB", "SEK",
                                            "NOK", "DKK", "PLN", "BRL", "AUD", "CAD",     "KRW",     "TRY", "kr",
                                            "kr.", "Rs",  "Rs.", "Ft",  "Fr.", "z\u0142", "K\u010d", "lei", "Kr"};
constexpr std::string_view kUnits[] = {"%",  "\u2030", "kg", "mg", "lb", "lbs", "oz", "km", "cm",  "mm",  "mi",   "ft",
                                       "px", "ms",     "kB", "KB", "MB", "GB",  "TB", "kW", "kWh", "min", "hours"};
constexpr std::string_view kGroupSigns[] = {",", ".", "'", " ", "_", "\u00a0", "\u202f", "\u2009", "\u2019"};

size_t digits_at_start(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

/// Removes a number with `least` to `most` digits from the start of `text`. Returns false if the number is not in
/// [from, limit].
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

/// Whether `rest` is a valid end of a time: empty, a fraction of a second, "AM" or "PM", or a time zone.
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

/// Removes `sign` from the start or end of the text, then removes blanks at both ends. Returns false if there is no
/// sign.
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

/// The length in bytes of a currency sign at the start of `text`: '$' or a Unicode currency sign; 0 for other texts.
size_t currency_sign(std::string_view text) {
  if (text.starts_with('$')) return 1;
  for (const std::string_view sign : {"\u00a2", "\u00a3", "\u00a4", "\u00a5"})
    if (text.starts_with(sign)) return sign.size();
  return text.size() >= 3 && text.starts_with("\xE2\x82") && static_cast<unsigned char>(text[2]) >= 0xa0 ? 3 : 0;
}

/// Removes a currency sign, optionally with up to three letters as in "US$" and "R$", or a currency code.
bool take_currency(std::string_view& text) {
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t sign = currency_sign(text.substr(at));
    if (sign == 0) continue;
    std::string_view before = text.substr(0, at), behind = text.substr(at + sign);
    while (!before.empty() && is_letter(before.back()) && at - before.size() < 3) before.remove_suffix(1);
    while (before.ends_with(' ')) before.remove_suffix(1);
    while (behind.starts_with(' ')) behind.remove_prefix(1);
    if (!before.empty() && before != "-" && !behind.empty()) return false;
    if (before == "-" && !behind.empty())
      text = behind;
    else
      text = before.empty() ? behind : before;
    return true;
  }
  return std::any_of(std::begin(kCurrencies), std::end(kCurrencies),
                     [&](std::string_view code) { return take_sign(text, code); });
}

/// Removes an ASCII or Unicode minus sign.
bool take_minus(std::string_view& text) {
  for (const std::string_view sign : {"-", "\u2212"})
    if (text.starts_with(sign)) {
      text.remove_prefix(sign.size());
      return true;
    }
  return false;
}

/// Whether the digits are grouped as in India, for example 12,34,567.
bool has_indian_groups(std::string_view text) {
  const size_t first = digits_at_start(text);
  if (first == 0 || first > 2) return false;
  text.remove_prefix(first);
  size_t pairs = 0;
  for (; text.starts_with(',') && digits_at_start(text.substr(1)) == 2; ++pairs) text.remove_prefix(3);
  if (pairs == 0 || !text.starts_with(',') || digits_at_start(text.substr(1)) != 3) return false;
  text.remove_prefix(4);
  return text.empty() || (text[0] == '.' && digits_at_start(text.substr(1)) == text.size() - 1);
}

/// Classifies digits in groups of three separated by `sign`, with an optional fraction.
Notation grouped_digits(std::string_view text, std::string_view sign) {
  const size_t first = digits_at_start(text);
  if (first == 0 || first > 3 || text[0] == '0') return Notation::none;
  text.remove_prefix(first);
  size_t groups = 0;
  bool zero = false;  // some group starts with 0, which integers in a list rarely do
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

std::string_view unit_behind(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789.,+- '");
  if (end == 0 || end == text.npos || text.size() - end > 12) return {};
  const std::string_view number = without_blanks(text.substr(0, end)), unit = text.substr(end);
  double value = 0;
  if (!read_number(number, value) && number_notation(number) == Notation::none) return {};
  if (unit.find_first_of("0123456789 \"';|/:()[]{}<>#_") != unit.npos) return {};
  constexpr std::string_view scales[] = {"K", "k", "M", "m", "B", "T", "bn", "mn", "Mio", "Mrd"};
  return std::find(std::begin(scales), std::end(scales), unit) == std::end(scales) ? unit : scales[0];
}

bool has_point_of_thousands(std::string_view text) {
  const size_t first = digits_at_start(text);
  return first > 0 && first <= 3 && text[0] != '0' && text.size() == first + 4 && text[first] == '.' &&
         digits_at_start(text.substr(first + 1)) == 3;
}

Notation number_notation(std::string_view text) {
  if (text.size() > 40) return Notation::none;
  bool marked = false;
  if (text.starts_with('(') && text.ends_with(')')) {  // accounting notation of a negative amount, such as (1,234)
    text = text.substr(1, text.size() - 2);
    marked = grouped_digits(text, ",") != Notation::none;
  }
  bool minus = take_minus(text);
  // SAP writes negative numbers as 5.20-
  if (!minus && text.size() > 1 && text.ends_with('-') && is_digit(text[text.size() - 2])) {
    text.remove_suffix(1);
    marked = true;
  }
  marked = take_currency(text) || marked;
  for (const std::string_view unit : kUnits)
    if (!marked && text.ends_with(unit)) marked = take_sign(text, unit);
  minus = take_minus(text) || minus;
  if (text.empty() || !is_digit(text.front())) return Notation::none;
  double number = 0;
  // Without its sign or unit, the text is a plain number. (The caller has tried read_number() with sign and unit.)
  if (read_number(text, number)) return Notation::number;
  Notation best = has_decimal_comma(text) ? Notation::ambiguous : Notation::none;
  if (has_indian_groups(text)) best = Notation::number;
  for (const std::string_view sign : kGroupSigns) best = std::max(best, grouped_digits(text, sign));
  return (marked || minus) && best != Notation::none ? Notation::number : best;
}

std::string number_hint(std::string_view text, const char* options) {
  if (is_date_or_time(text))
    return "; dates and times must be numbers: use seconds since 1970, or the hour and weekday as columns";
  if (number_notation(text) != Notation::none)
    return cat(
        "; expected a number with a decimal point and without units, currency signs and thousands separators, such "
        "as 1234.5, unless ",
        options);
  return {};
}

}  // namespace hctr
