#include "formats/data/number_notation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/expect.h"
#include "formats/data/text_values.h"

namespace hctr {
namespace {

constexpr std::string_view kBlankSigns[] = {" ", "\t", "\u00a0", "\u202f", "\u2009"};
constexpr std::string_view kApostrophes[] = {"'", "\u2019"};
constexpr std::string_view kMinusSigns[] = {"-", "\u2212"};

struct Digits {
  char group = 0, decimal = '.';
  bool indian = false;
};
constexpr std::array<Digits, kNumberFormats> kDigits = {{{0, '.'},
                                                         {0, ','},
                                                         {',', '.'},
                                                         {'.', ','},
                                                         {' ', '.'},
                                                         {' ', ','},
                                                         {'\'', '.'},
                                                         {'\'', ','},
                                                         {'_', '.'},
                                                         {'_', ','},
                                                         {',', '.', true}}};
const Digits& digits_of(NumberFormat format) { return kDigits[static_cast<size_t>(format)]; }

size_t count_digits(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

template <size_t n>
size_t length_of_one(const std::string_view (&signs)[n], std::string_view text) {
  for (const std::string_view sign : signs)
    if (text.starts_with(sign)) return sign.size();
  return 0;
}

/// The length in bytes of the thousands separator at the start of `text`; 0 if there is none.
size_t length_of_group_sign(std::string_view text, char sign) {
  if (sign == ' ') return length_of_one(kBlankSigns, text);
  if (sign == '\'') return length_of_one(kApostrophes, text);
  return sign != 0 && text.starts_with(sign) ? 1 : 0;
}

std::string_view without_any_blanks(std::string_view text) {
  while (const size_t length = length_of_one(kBlankSigns, text)) text.remove_prefix(length);
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view blank : kBlankSigns)
      if (text.ends_with(blank)) text.remove_suffix(blank.size()), again = true;
  }
  return text;
}

/// Removes the unit, and a sign or a pair of brackets. Returns false if the unit is missing or there are several signs.
bool take_marks(std::string_view& text, const std::string& unit, bool& negative) {
  int signs = 0;
  for (bool found = unit.empty();;) {
    text = without_any_blanks(text);
    if (!found && text.starts_with(unit)) {
      text.remove_prefix(unit.size());
      found = true;
    } else if (!found && text.ends_with(unit)) {
      text.remove_suffix(unit.size());
      found = true;
    } else if (text.size() > 2 && text.front() == '(' && text.back() == ')') {
      text = text.substr(1, text.size() - 2);
      negative = ++signs > 0;
    } else if (const size_t minus = length_of_one(kMinusSigns, text); minus > 0 || text.starts_with('+')) {
      text.remove_prefix(std::max<size_t>(minus, 1));
      negative = minus > 0;
      ++signs;
    } else if (text.size() > 1 && text.back() == '-') {
      text.remove_suffix(1);
      negative = ++signs > 0;
    } else {
      return found && signs <= 1;
    }
  }
}

/// Converts a number to the plain notation: with a decimal point and without thousands separators.
class PlainNumber {
 public:
  /// Returns false if the text has another notation.
  bool read(std::string_view text, const Digits& digits) {
    if (text.size() > text_.size() - kSpare) return false;
    if (!read_whole_part(text, digits)) return false;
    size_t behind = 0;
    if (text.starts_with(digits.decimal)) {
      text_[size_++] = '.';
      text.remove_prefix(1);
      behind = count_digits(text);
      add(text, behind);
    }
    if (whole_ + behind == 0) return false;
    if (text.empty()) return true;
    if ((text[0] | 0x20) != 'e') return false;
    const size_t sign = text.size() > 1 && (text[1] == '-' || text[1] == '+');
    if (text.size() == 1 + sign || count_digits(text.substr(1 + sign)) != text.size() - 1 - sign) return false;
    exponent_ = true;
    add(text, text.size());
    return true;
  }
  /// Sets `value` to the number divided by 10^places.
  bool value(int places, double& value) {
    if (places > 0 && !exponent_) {
      text_[size_++] = 'e';
      text_[size_++] = '-';
      text_[size_++] = static_cast<char>('0' + places);
      places = 0;
    }
    if (!read_number(std::string_view(text_.data(), size_), value)) return false;
    if (places > 0) value /= std::pow(10.0, places);
    return true;
  }

 private:
  static constexpr size_t kSpare = 4;

  void add(std::string_view& text, size_t count) {
    std::copy_n(text.begin(), count, text_.begin() + static_cast<ptrdiff_t>(size_));
    size_ += count;
    text.remove_prefix(count);
  }

  bool read_whole_part(std::string_view& text, const Digits& digits) {
    whole_ = count_digits(text);
    const bool may_go_on = whole_ > 0 && whole_ <= (digits.indian ? 2u : 3u) && text[0] != '0';
    add(text, whole_);
    while (const size_t sign = length_of_group_sign(text, digits.group)) {
      const size_t count = count_digits(text.substr(sign));
      const bool last = length_of_group_sign(text.substr(sign + count), digits.group) == 0;
      if (!may_go_on || count != (digits.indian && !last ? 2u : 3u)) return false;
      text.remove_prefix(sign);
      add(text, count);
    }
    return true;
  }

  std::array<char, 128> text_{};
  size_t size_ = 0, whole_ = 0;
  bool exponent_ = false;
};

int places_of_unit(const std::string& unit) { return unit == "%" ? 2 : unit == "\u2030" ? 3 : 0; }

}  // namespace

const std::vector<std::pair<std::string, NumberFormat>>& EnumWords<NumberFormat>::table() {
  static const std::vector<std::pair<std::string, NumberFormat>> words = {{"1234.5", NumberFormat::plain},
                                                                          {"1234,5", NumberFormat::comma},
                                                                          {"1,234.5", NumberFormat::commas_point},
                                                                          {"1.234,5", NumberFormat::points_comma},
                                                                          {"1 234.5", NumberFormat::blanks_point},
                                                                          {"1 234,5", NumberFormat::blanks_comma},
                                                                          {"1'234.5", NumberFormat::apostrophes_point},
                                                                          {"1'234,5", NumberFormat::apostrophes_comma},
                                                                          {"1_234.5", NumberFormat::underscores_point},
                                                                          {"1_234,5", NumberFormat::underscores_comma},
                                                                          {"12,34,567.5", NumberFormat::indian}};
  return words;
}

const std::string& word_of(NumberFormat format) {
  return EnumWords<NumberFormat>::table()[static_cast<size_t>(format)].first;
}
NumberFormat number_format_of(const std::string& word) {
  std::vector<std::string> words;
  for (const auto& [known, format] : EnumWords<NumberFormat>::table()) {
    if (known == word) return format;
    words.push_back("'" + known + "'");
  }
  throw Error(Kind::usage, cat("--number-format '", word, "': expected ", one_of(words)));
}
bool has_decimal_point(NumberFormat format) { return digits_of(format).decimal == '.'; }

bool read_number(const NumberNotation& notation, std::string_view text, double& value) {
  if (notation.unit.empty()) {
    const bool alike = has_decimal_point(notation.format.value_or(NumberFormat::plain));
    if ((alike || text.find('.') == text.npos) && read_number(text, value)) return true;
    if (notation.plain()) return false;
  }
  bool negative = false;
  if (!take_marks(text, notation.unit, negative)) return false;
  PlainNumber number;
  if (!number.read(text, digits_of(notation.format.value_or(NumberFormat::plain)))) return false;
  if (!number.value(places_of_unit(notation.unit), value)) return false;
  if (negative) value = -value;
  return true;
}

std::string describe(const NumberNotation& notation) {
  if (notation.plain()) return "a number";
  return cat("a number as ", word_of(notation.format.value_or(NumberFormat::plain)),
             notation.unit.empty() ? "" : cat(" with '", notation.unit, "'"));
}

const char* const kNumberFormatHelp =
    "the format of numbers in texts, written as an example number: \"1,234.5\" has commas as thousands separators, "
    "\"1234,5\" a decimal comma. Values may omit the separators; (12) and 12- mean -12. Default: the section's "
    "number_format, else \"1234.5\"";
const char* const kUnitHelp =
    "the prefix or suffix of each number in texts, such as \"$\", \"EUR\" or \"kg\"; with \"%\" 12.5% means 0.125; "
    "a value without the unit is a bad record";

void check_notation(const NumberNotation& notation, const std::string& pointer, Problems& problems) {
  const std::string_view unit = notation.unit;
  if (unit.empty()) return;
  if (without_any_blanks(unit) != unit)
    problems.error(pointer + "/unit", "remove the blanks around the unit: blanks in values are optional");
  else if (is_digit(unit.front()) || std::string_view("+-.,'_()").find(unit.front()) != std::string_view::npos)
    problems.error(pointer + "/unit", cat("\"", unit, "\" may be part of a number"));
}

}  // namespace hctr
