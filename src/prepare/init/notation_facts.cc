#include "prepare/init/notation_facts.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/data/cell_notation.h"
#include "formats/data/text_values.h"

namespace hctr {
namespace {

constexpr size_t kLongestUnit = 12, kLongestNumber = 60;
constexpr size_t kPointsComma = static_cast<size_t>(NumberFormat::points_comma);

constexpr uint32_t bit_of(size_t format) { return 1u << format; }
constexpr uint32_t bit_of(NumberFormat format) { return bit_of(static_cast<size_t>(format)); }

uint32_t formats_with_decimal_point() {
  uint32_t bits = 0;
  for (size_t f = 0; f < kNumberFormats; ++f)
    if (has_decimal_point(static_cast<NumberFormat>(f))) bits |= bit_of(f);
  return bits;
}

bool is_of_number(char c) { return std::string_view("+-() \t").find(c) != std::string_view::npos; }

std::string_view bare_unit(std::string_view text) {
  while (!text.empty() && is_of_number(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_of_number(text.back())) text.remove_suffix(1);
  for (const std::string_view minus : {"\u2212", "\u00a0", "\u202f"}) {
    if (text.starts_with(minus)) text.remove_prefix(minus.size());
    if (text.ends_with(minus)) text.remove_suffix(minus.size());
  }
  return text;
}

/// The text before or after the digits, such as "$" or "kg". If there is text on both sides, returns the whole text.
std::string_view unit_of(std::string_view text) {
  const auto first = static_cast<size_t>(std::find_if(text.begin(), text.end(), is_digit) - text.begin());
  if (first == text.size()) return text;
  const size_t last = text.find_last_of("0123456789");
  std::string_view before = bare_unit(text.substr(0, first));
  // a decimal point or comma before the first digit belongs to the number
  if (before == "." || before == ",") before = {};
  const std::string_view behind = bare_unit(text.substr(last + 1));
  return before.empty() ? behind : behind.empty() ? before : text;
}

}  // namespace

void NumberFacts::add(double number) {
  ++values;
  integers += number == std::floor(number);
  negative += number < 0;
  least = std::min(least, number);
  most = std::max(most, number);
  moments.add(number);
}

bool NumberFacts::skewed() const {
  constexpr double kSkewed = 1.5;
  return negative * 1000 < values && moments.skewness() > kSkewed;
}

void NotationFacts::add_plain(std::string_view text, double number, bool held_out) {
  if (viable_ == 0) return;
  ++plains_;
  if (text.find('.') == text.npos) {
    if (!held_out && reads(kPointsComma)) by_thousands_.add(number);
  } else if (has_point_of_thousands(text.substr(number < 0))) {
    if (thousands_++ == 0 && doubtful_.empty()) doubtful_ = text;
    viable_ &= formats_with_decimal_point() | bit_of(NumberFormat::points_comma);
    if (!held_out && reads(kPointsComma)) by_thousands_.add(number * 1000);
  } else {
    viable_ &= formats_with_decimal_point();
  }
}

void NotationFacts::add_other(std::string_view text, bool held_out) {
  if (viable_ == 0) return;
  const std::string_view unit = text.size() > kLongestNumber ? text : unit_of(text);
  if (others_++ == 0 && unit.size() <= kLongestUnit) unit_ = unit;
  if (unit != unit_) {
    viable_ = 0;
    return;
  }
  double before = 0;
  bool any = false;
  for (size_t f = 0; f < kNumberFormats; ++f) {
    if (!reads(f)) continue;
    double number = 0;
    if (!read_number({static_cast<NumberFormat>(f), unit_}, text, number)) {
      viable_ &= ~bit_of(f);
      continue;
    }
    if (any && number != before && doubtful_.empty()) doubtful_ = text;
    before = number;
    any = true;
    hashes_[f] = mix64(hashes_[f] ^ std::bit_cast<uint64_t>(number));
    if (!held_out) numbers_[f].add(number);
  }
  sure_ = sure_ || number_notation(text) == Notation::number;
}

bool NotationFacts::differ(size_t format, size_t other) const {
  return hashes_[format] != hashes_[other] || (thousands_ > 0 && (format == kPointsComma) != (other == kPointsComma));
}

std::string NotationFacts::question(size_t format, size_t other) const {
  std::string text = cat("'", doubtful_, "' is ");
  for (const size_t f : {format, other}) {
    double number = 0;
    read_number({static_cast<NumberFormat>(f), unit_}, doubtful_, number);
    text += cat(f == format ? "" : " and ", Json(number).text(), " as ", word_of(static_cast<NumberFormat>(f)));
  }
  return text;
}

NotationFacts::Choice NotationFacts::choose(const std::optional<NumberFormat>& stated) const {
  uint32_t viable = plains_ > 0 && !unit_.empty() ? 0 : viable_;
  if (stated) viable &= bit_of(*stated);
  Choice choice;
  if (viable == 0) return choice;
  const auto first = static_cast<size_t>(std::countr_zero(viable));
  choice.kind = Choice::Kind::one;
  choice.notation = {static_cast<NumberFormat>(first), unit_};
  for (size_t f = first + 1; f < kNumberFormats; ++f)
    if ((viable & bit_of(f)) != 0 && differ(first, f)) {
      choice.kind = Choice::Kind::ambiguous;
      choice.question = question(first, f);
      break;
    }
  return choice;
}

NumberFacts NotationFacts::numbers_in(NumberFormat format, const NumberFacts& plain) const {
  NumberFacts all = format == NumberFormat::points_comma ? by_thousands_ : plain;
  const NumberFacts& other = numbers_[static_cast<size_t>(format)];
  all.values += other.values;
  all.integers += other.integers;
  all.negative += other.negative;
  all.least = std::min(all.least, other.least);
  all.most = std::max(all.most, other.most);
  all.moments.merge(other.moments);
  return all;
}

}  // namespace hctr
