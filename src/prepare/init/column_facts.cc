#include "prepare/init/column_facts.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "formats/data/cell_notation.h"
#include "formats/data/text_grammar.h"
#include "formats/data/text_values.h"

namespace hctr {
namespace {

constexpr size_t kMostSets = 1 << 16;      // maximum number of distinct values kept for comparing columns
constexpr int64_t kListSample = 20'000;    // number of rows whose cells are split as lists
constexpr int64_t kValueSample = 200'000;  // number of rows whose values are looked up in lists
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
  if (in_brackets > 0 || is_in_brackets(text))
    for (size_t form = kFirstInBrackets; form < kListForms; ++form) read_in_brackets(form, text);
  double number = 0;
  if (read_number(text, number)) {
    held_out_fractions += number != std::floor(number);
    notation.add_plain(text, number, true);
    return;
  }
  notation.add_other(text, true);
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
    notation.add_other(text, false);
    look_for_lists(text);
    return;
  }
  ++numbers;
  ++words;
  const bool whole = number == std::floor(number);
  integers += whole;
  negative += number < 0;
  leading_zeros += text.size() > 1 && text[0] == '0' && is_digit(text[1]);
  if (text.find('.') == text.npos)
    large_plain += std::fabs(number) >= 1000;
  else if (++points, has_point_of_thousands(text.substr(number < 0)) && group_points++ == 0)
    group_point = text;
  rising += number == last_ + 1;
  last_ = number;
  least = std::min(least, number);
  most = std::max(most, number);
  plain.add(number);
  notation.add_plain(text, number, false);
  if (!no_number.empty()) look_for_lists(text);  // if the column contains lists, this number is a list of one value
}

void ColumnFacts::look_at_notation(std::string_view text) {
  if (is_in_brackets(text)) {
    ++in_brackets;
    lists_in_brackets += has_list_in_brackets(text);
  }
  const Notation written = number_notation(text);
  if (written == Notation::none) {
    if (odd_value.empty()) odd_value = text.substr(0, 40);
    const std::string_view behind = unit_behind(text);
    if (behind.empty() || (with_units > 0 && behind != unit)) return;
    if (with_units++ == 0) unit = behind, with_unit = text.substr(0, 40);
    return;
  }
  ++other_numbers;
  if (written == Notation::number && sure_other_numbers++ == 0) other_number = text;
}

void ColumnFacts::look_for_lists(std::string_view text) {
  for (size_t s = 0; s < kListSeparators.size(); ++s) {
    const char separator = kListSeparators[s];
    ListFacts& list = lists[s];
    const int64_t separators = std::count(text.begin(), text.end(), separator);
    list.cells += separators > 0;
    list.most = std::max(list.most, separators + 1);
    if (separators > 0 && (text.front() == separator || text.back() == separator)) list.empty_start = true;
    if (rows > kListSample) continue;
    for_each_value(text, separator, [&](std::string_view value) {
      list.padded += value.front() == ' ' || value.back() == ' ';
      add_list_value(s, value);
      return true;
    });
  }
  if (in_brackets > 0) look_in_brackets(text);
}

void ColumnFacts::add_list_value(size_t form, std::string_view value) {
  if (list_values_[form].size() >= kMostSets) return;
  ListFacts& list = lists[form];
  ++list.looked_at;
  list.integers += is_integer_text(value);
  list_values_[form].insert(text_hash(without_blanks(value), 0));
  list.distinct = static_cast<int64_t>(list_values_[form].size());
}

/// Whether a list reader for `form` accepts the text. Counts rejected texts.
bool ColumnFacts::read_in_brackets(size_t form, std::string_view text) {
  if (in_brackets_list_.read(text, kSeparatorsInBrackets[form - kFirstInBrackets])) return true;
  if (lists[form].refused++ == 0)
    lists[form].refused_cell = cat("'", text.substr(0, 40), "': ", in_brackets_list_.problem());
  return false;
}

void ColumnFacts::look_in_brackets(std::string_view text) {
  for (size_t form = kFirstInBrackets; form < kListForms; ++form) {
    if (!read_in_brackets(form, text)) continue;
    ListFacts& list = lists[form];
    const auto values = static_cast<int64_t>(in_brackets_list_.values().size());
    list.cells += values > 1;
    list.most = std::max(list.most, values);
    for (const std::string_view value : in_brackets_list_.values())
      if (value.size() <= 4 && is_missing_mark(value))
        marks_in_lists.emplace(value);
      else if (rows <= kListSample)
        add_list_value(form, value);
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

double ColumnFacts::share_in(const ColumnFacts& list, size_t form) const {
  if (first_values_.empty()) return 0;
  const auto& values = list.list_values_[list.is_list ? 0 : form];
  int64_t found = 0;
  for (const uint64_t hash : first_values_) found += values.contains(hash);
  return static_cast<double>(found) / static_cast<double>(first_values_.size());
}

}  // namespace hctr
