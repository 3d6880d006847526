#include "prepare/init/label_guess.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "core/base/expect.h"
#include "formats/data/text_values.h"
#include "prepare/init/column_facts.h"
#include "prepare/init/guess_words.h"

namespace hctr {
namespace {

bool all_numbers(const LabelFacts& facts) { return facts.numbers == facts.rows; }

double number_of(const std::string& text, const NumberNotation& notation) {
  double number = 0;
  return read_number(notation, text, number) ? number : std::nan("");
}

/// The notation of a label's numbers. None if all numbers are plain, or if the values are not numbers. Errors:
/// Error(usage) if there are more than two distinct values, and if two notations read these values as different
/// numbers.
NumberNotation notation_of(const std::string& column, const LabelFacts& facts,
                           const std::optional<NumberFormat>& format) {
  if (all_numbers(facts)) return {};
  const NotationFacts::Choice choice = facts.notation.choose(format);
  if (choice.kind == NotationFacts::Choice::Kind::ambiguous && facts.counts.size() > 2)
    throw Error(Kind::usage, cat("label '", column, "': ", choice.question, "; set --number-format"));
  return choice.kind == NotationFacts::Choice::Kind::one ? choice.notation : NumberNotation();
}

/// The values with their counts: "'no' (90 rows), 'yes' (10)".
std::string listed(const LabelFacts& facts) {
  std::string text;
  size_t count = 0;
  for (const auto& [value, rows] : facts.counts) {
    if (++count > 10) return text + ", ...";
    text += cat(text.empty() ? "" : ", ", "'", value.substr(0, 40), "' (", rows, count == 1 ? " rows)" : ")");
  }
  return text;
}

/// The threshold that splits the rows most evenly: one part has labels below it, the other has labels of at least the
/// threshold. If there are too many distinct numbers, returns the mean of all numbers.
std::string middle_of(const LabelFacts& facts, const NumberNotation& notation) {
  if (facts.counts.size() > LabelFacts::kMostLabels && notation.given())
    return cat(facts.notation.numbers_in(*notation.format, {}).moments.mean());
  if (facts.counts.size() > LabelFacts::kMostLabels) return cat(facts.sum / static_cast<double>(facts.rows));
  std::map<double, std::pair<std::string, int64_t>> by_number;
  for (const auto& [text, rows] : facts.counts) {
    auto& [first, count] = by_number[number_of(text, notation)];
    first = text;
    count += rows;
  }
  std::string best;
  double distance = 2;
  int64_t above = facts.rows;
  for (const auto& [number, value] : by_number) {
    const double away = std::fabs(static_cast<double>(above) / static_cast<double>(facts.rows) - 0.5);
    if (away < distance) {
      distance = away;
      best = value.first;
    }
    above -= value.second;
  }
  return best;
}

/// Finds the value in the data that --positive means. The spelling of a number may differ in the data, such as 1.0 for
/// 1.
std::optional<std::string> find_value(const LabelFacts& facts, const std::string& positive,
                                      const NumberNotation& notation) {
  if (facts.counts.contains(positive)) return positive;
  const double number = number_of(positive, notation);
  for (const auto& [text, rows] : facts.counts)
    if (number_of(text, notation) == number) return text;
  return {};
}

std::string in_percent(double share) { return cat(std::round(share * 1000) / 10, " %"); }

}  // namespace

std::string quoted_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("._/-+,:").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

void LabelFacts::add(std::string_view text) {
  ++rows;
  double number = 0;
  if (read_number(text, number)) {
    ++numbers;
    sum += number;
    notation.add_plain(text, number, false);
  } else {
    notation.add_other(text, false);
  }
  const auto found = counts.find(std::string(text));
  if (found != counts.end())
    ++found->second;
  else if (counts.size() <= kMostLabels)
    counts.emplace(text, 1);
}

bool is_missing_label(std::string_view text, const std::optional<std::string>& positive) {
  return text.empty() || (is_missing_mark(text) && text != positive.value_or(""));
}

bool LabelChoice::is_positive(const std::string& label) const {
  if (text) return label == *text;
  return number_of(label, notation) >= at_least.value_or(0.5);
}

Json LabelChoice::json() const {
  if (text) return Json(Json::Object{{"column", column}, {"positive", *text}});
  if (!at_least && !notation.given()) return Json(column);
  Json json(Json::Object{{"column", column}});
  if (at_least) json.set("positive", Json(Json::Object{{"at_least", *at_least}}));
  if (notation.format) json.set("number_format", word_of(*notation.format));
  if (!notation.unit.empty()) json.set("unit", notation.unit);
  return json;
}

namespace {

/// The error for a label that needs --positive. Its message contains commands with this option.
Error ask_for_positive(const std::string& label, const LabelFacts& facts, const NumberNotation& notation,
                       const std::string& command, bool numbers) {
  const auto with = [&](const std::string& value) { return cat(command, " --positive ", quoted_word(value)); };
  if (facts.counts.size() == 2)
    return Error(Kind::usage,
                 cat(label, " has two values, ", listed(facts), ": state which value is positive\n  ",
                     with(facts.counts.begin()->first), "\n  ", with(std::next(facts.counts.begin())->first)));
  if (numbers)
    return Error(Kind::usage, cat(label, " has the numbers ", listed(facts),
                                  ": state the lowest positive number, such as\n  ", with(middle_of(facts, notation))));
  const auto most = std::max_element(facts.counts.begin(), facts.counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return Error(Kind::usage,
               cat(label, " has more than two values, ", listed(facts),
                   ": state which value is positive (all others are then negative), such as\n  ", with(most->first)));
}

/// Applies --positive to a choice. Errors: Error(usage) for a value that the data do not have.
void apply_positive(const std::string& positive, const std::string& label, const LabelFacts& facts, bool numbers,
                    LabelChoice& choice) {
  const NumberNotation notation = choice.notation;
  const std::optional<std::string> value = find_value(facts, positive, notation);
  const double number = number_of(positive, notation);
  if (numbers && std::isnan(number))
    throw Error(Kind::usage, cat("--positive ", quoted_word(positive), ": ", label, " has numbers, ", listed(facts),
                                 "; state the lowest positive number"));
  // Numbers of at least `positive` are positive. Exception: if there are two numbers and `positive` is the smaller one,
  // only that number is positive.
  const bool largest = numbers && std::all_of(facts.counts.begin(), facts.counts.end(), [&](const auto& other) {
                         return number_of(other.first, notation) <= number;
                       });
  if (numbers && (facts.counts.size() != 2 || largest)) {
    choice.at_least = number;
    choice.why = cat("positive from ", positive, " on");
  } else if (value) {
    choice.text = value;
    choice.notation = {};
    choice.why = cat("positive if it is '", *value, "'");
  } else {
    throw Error(Kind::usage, cat("--positive ", quoted_word(positive), ": ", label,
                                 " has no such value; the "
                                 "values are ",
                                 listed(facts)));
  }
}

}  // namespace

LabelChoice choose_label(const std::string& column, const LabelFacts& facts, const std::optional<std::string>& positive,
                         const std::string& command, const std::optional<NumberFormat>& format) {
  const std::string label = cat("label '", column, "'");
  if (facts.rows == 0) throw Error(Kind::data, cat(label, ": no row has a value"));
  if (facts.counts.size() == 1)
    throw Error(Kind::data, cat(label, ": all rows have the value ", listed(facts), ", so there is nothing to learn"));
  const NumberNotation notation = notation_of(column, facts, format);
  const bool numbers = all_numbers(facts) || notation.given();
  const bool zero_or_one = numbers && std::all_of(facts.counts.begin(), facts.counts.end(), [&](const auto& value) {
                             const double number = number_of(value.first, notation);
                             return number == 0 || number == 1;
                           });
  LabelChoice choice{.column = column, .notation = notation};
  if (positive)
    apply_positive(*positive, label, facts, numbers, choice);
  else if (zero_or_one)
    choice.why = "the numbers 0 and 1";
  else
    throw ask_for_positive(label, facts, notation, command, numbers);
  int64_t positives = 0, known = 0;
  for (const auto& [value, rows] : facts.counts) {
    known += rows;
    if (choice.is_positive(value)) positives += rows;
  }
  if (positives == 0 || positives == known)
    throw Error(Kind::usage, cat("--positive ", quoted_word(positive.value_or("")), ": then ",
                                 positives == 0 ? "no" : "every", " row is positive; ", label, " has ", listed(facts)));
  choice.why += words_of(choice.notation);
  choice.why +=
      cat(", ", in_percent(static_cast<double>(positives) / static_cast<double>(known)), " of the rows are positive");
  return choice;
}

}  // namespace hctr
