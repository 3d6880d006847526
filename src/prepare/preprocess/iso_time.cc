#include "prepare/preprocess/iso_time.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "formats/data/text_values.h"

namespace hctr {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Consumes `digits` digits from the front of `text`. Returns false if the number exceeds `most`.
bool take_number(std::string_view& text, size_t digits, int most, int& value) {
  if (text.size() < digits || !std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(digits), is_digit))
    return false;
  value = 0;
  for (size_t i = 0; i < digits; ++i) value = 10 * value + (text[i] - '0');
  text.remove_prefix(digits);
  return value <= most;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// Consumes a date from the front of `text`. `days`: days since 1970.
bool take_date(std::string_view& text, double& days) {
  int year = 0, month = 0, day = 0;
  if (!take_number(text, 4, 9999, year)) return false;
  const bool signs = take(text, '-');
  if (!take_number(text, 2, 12, month) || (signs && !take(text, '-')) || !take_number(text, 2, 31, day)) return false;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  return true;
}

/// Consumes a time of day from the front of `text`. `seconds`: seconds since midnight.
bool take_time(std::string_view& text, double& seconds) {
  int hour = 0, minute = 0, second = 0;
  if (!take_number(text, 2, 24, hour)) return false;
  const bool colons = take(text, ':');
  const auto goes_on = [&] { return !text.empty() && is_digit(text[0]); };
  seconds = 3600.0 * hour;
  if (!colons && !goes_on()) return true;
  if (!take_number(text, 2, 59, minute)) return false;
  seconds += 60.0 * minute;
  if (colons ? !take(text, ':') : !goes_on()) return true;
  if (!take_number(text, 2, 60, second)) return false;
  seconds += second;
  if (!text.starts_with('.') && !text.starts_with(',')) return true;
  const auto digits = static_cast<size_t>(std::find_if_not(text.begin() + 1, text.end(), is_digit) - text.begin());
  double fraction = 0;
  if (digits < 2 || !read_number("0." + std::string(text.substr(1, digits - 1)), fraction)) return false;
  seconds += fraction;
  text.remove_prefix(digits);
  return true;
}

/// Parses a time zone, which must be the whole text.
std::optional<int> read_zone(std::string_view text) {
  while (take(text, ' ')) {
  }
  if (text == "Z" || text == "z" || text == "UTC" || text == "GMT") return 0;
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return {};
  const int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  int hours = 0, minutes = 0;
  if (!take_number(text, 2, 18, hours)) return {};
  take(text, ':');
  if (!text.empty() && !take_number(text, 2, 59, minutes)) return {};
  return text.empty() ? std::optional(sign * (60 * hours + minutes)) : std::nullopt;
}

}  // namespace

std::optional<IsoTime> read_iso_time(std::string_view text) {
  text = without_blanks(text);
  IsoTime time;
  double days = 0, seconds = 0;
  if (!take_date(text, days)) return {};
  if (!text.empty()) {
    if (!take(text, 'T') && !take(text, ' ') && !take(text, 't')) return {};
    if (!take_time(text, seconds)) return {};
    if (!text.empty() && !(time.minutes_from_utc = read_zone(text))) return {};
  }
  time.seconds = 86400.0 * days + seconds;
  return time;
}

}  // namespace hctr
