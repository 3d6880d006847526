#include "prepare/init/column_facts.h"

#include <algorithm>
#include <cmath>

#include "data/text_grammar.h"
#include "data/text_values.h"
#include "prepare/init/cell_notation.h"

namespace hctr {
namespace {

constexpr size_t kMostSets = 1 << 16;      // values that are compared between columns
constexpr int64_t kListSample = 20'000;    // rows whose cells are taken apart as lists
constexpr int64_t kValueSample = 200'000;  // and rows whose values are looked for in lists
constexpr std::string_view kMarks[] = {"?",    "NA",   "N/A",  "n/a", "NaN",  "nan", "NAN", "null",
                                       "NULL", "Null", "None", "\\N", "#N/A", "-",   "--",  "."};

bool is_integer_text(std::string_view text) {
  int64_t value = 0;
  return read_integer(text, value) && value >= 0;
}

}  // namespace

bool is_missing_mark(std::string_view text) {
  return std::find(std::begin(kMarks), std::end(kMarks), text) != std::end(kMarks);
}

void ColumnFacts::add(std::string_view cell) {
  ++rows;
  const std::string_view text = without_blanks(cell);
  padded += text.size() != cell.size();
  if (text.empty()) {
    ++empty;
    return;
  }
  if (text.size() <= 4 && is_missing_mark(text)) {
    ++empty;
    ++marks[std::string(text)];
    return;
  }
  add_text(text);
}

void ColumnFacts::check(std::string_view cell) {
  const std::string_view text = without_blanks(cell);
  padded += text.size() != cell.size();
  if (text.empty()) return;
  if (is_missing_mark(text)) {
    ++marks[std::string(text)];
    return;
  }
  held_out_not_keys += !is_integer_text(text);
  double number = 0;
  if (read_number(text, number)) {
    held_out_fractions += number != std::floor(number);
    return;
  }
  if (held_out_words++ == 0) held_out_word = text.substr(0, 40);
}

void ColumnFacts::add_text(std::string_view text) {
  const uint64_t hash = text_hash(text, 0);
  distinct_.add(static_cast<int64_t>(hash));
  if (rows <= kValueSample && first_values_.size() < kMostSets) first_values_.insert(hash);
  double number = 0;
  if (!read_number(text, number)) {
    if (no_number.empty()) no_number = text.substr(0, 40);
    words += 1 + std::count(text.begin(), text.end(), ' ');
    times += is_date_or_time(text);
    look_at_notation(text);
    look_for_lists(text);
    return;
  }
  ++numbers;
  ++words;
  const bool whole = number == std::floor(number);
  integers += whole;
  negative += number < 0;
  leading_zeros += text.size() > 1 && text[0] == '0' && is_digit(text[1]);
  rising += number == last_ + 1;
  last_ = number;
  least = std::min(least, number);
  most = std::max(most, number);
  plain.add(number);
  logs.add(std::log1p(std::max(number, 0.0)));
  if (!no_number.empty()) look_for_lists(text);  // one value alone, where other cells hold several
}

void ColumnFacts::look_at_notation(std::string_view text) {
  if (is_in_brackets(text)) {
    ++in_brackets;
    if (has_list_in_brackets(text) && lists_in_brackets++ == 0) list_in_brackets = text.substr(0, 40);
  }
  const Notation notation = number_notation(text);
  if (notation == Notation::none) return;
  ++other_numbers;
  if (notation == Notation::number && sure_other_numbers++ == 0) other_number = text;
}

void ColumnFacts::look_for_lists(std::string_view text) {
  for (size_t s = 0; s < kListSeparators.size(); ++s) {
    const char separator = kListSeparators[s];
    ListFacts& list = lists[s];
    const int64_t separators = std::count(text.begin(), text.end(), separator);
    list.cells += separators > 0;
    list.most = std::max(list.most, separators + 1);
    if (separators > 0 && (text.front() == separator || text.back() == separator)) list.empty_start = true;
    if (rows > kListSample || list_values_[s].size() >= kMostSets) continue;
    for_each_value(text, separator, [&](std::string_view value) {
      ++list.looked_at;
      list.integers += is_integer_text(value);
      list.padded += value.front() == ' ' || value.back() == ' ';
      list_values_[s].insert(text_hash(without_blanks(value), 0));
      return true;
    });
    list.distinct = static_cast<int64_t>(list_values_[s].size());
  }
}

void ColumnFacts::add_item(std::string_view item) {
  is_list = true;
  ++items;
  ++items_of_row_;
  integer_items += is_integer_text(item);
  const uint64_t hash = text_hash(item, 0);
  distinct_.add(static_cast<int64_t>(hash));
  if (rows < kValueSample && list_values_[0].size() < kMostSets) list_values_[0].insert(hash);
}

void ColumnFacts::end_list() {
  is_list = true;
  ++rows;
  empty += items_of_row_ == 0;
  most_items = std::max(most_items, items_of_row_);
  items_of_row_ = 0;
}

double ColumnFacts::share_in(const ColumnFacts& list, size_t separator) const {
  if (first_values_.empty()) return 0;
  const auto& values = list.list_values_[list.is_list ? 0 : separator];
  int64_t found = 0;
  for (const uint64_t hash : first_values_) found += values.contains(hash);
  return static_cast<double>(found) / static_cast<double>(first_values_.size());
}

}  // namespace hctr
