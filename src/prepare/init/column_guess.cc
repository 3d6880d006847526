#include "prepare/init/column_guess.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/expect.h"
#include "prepare/init/guess_words.h"
#include "prepare/init/label_guess.h"
#include "prepare/init/list_guess.h"

namespace hctr {
namespace {

constexpr int64_t kMostNumberKeys = 10'000;  // numbers with more distinct values are not used as categories
constexpr int64_t kRowsPerKey = 5;           // numbers with fewer rows per distinct value are not used as categories
// fraction of distinct values above which a column counts as unique per row
constexpr double kUnique = 0.9;
// There are two kinds of row counters. In one, more than this fraction of the numbers equal the preceding number plus
// one. The other has nearly no duplicates, and contains more than this fraction of the integers in its range.
constexpr double kCounting = 0.75;
constexpr double kTextWords = 4;  // words per value above which a column is free text

/// The words of a column's name in lower case. For user_id, userId and "User ID": user, id.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  char before = 0;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    const bool starts = std::isupper(u) && std::islower(static_cast<unsigned char>(before));
    if ((!std::isalnum(u) || starts) && !words.back().empty()) words.emplace_back();
    if (std::isalnum(u)) words.back() += static_cast<char>(std::tolower(u));
    before = c;
  }
  return words;
}

/// The word in a column's name that marks its numbers as ids; empty if no word does.
std::string word_of_ids(const std::string& name) {
  static const std::vector<std::string> known = {"id",   "ids", "uid",  "code", "zip",    "zipcode", "postcode", "user",
                                                 "item", "sku", "isbn", "key",  "device", "product", "customer", "ip"};
  for (const std::string& word : words_of(name))
    if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  return {};
}

bool named_as_time(const std::string& name) {
  static const std::vector<std::string> known = {"time", "timestamp", "date",    "datetime",
                                                 "ts",   "created",   "updated", "at"};
  const std::vector<std::string> words = words_of(name);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

/// "seconds" or "milliseconds" if all numbers are times from 1980 to 2060 in this unit; else empty.
std::string unit_of_time(const ColumnFacts& facts) {
  constexpr double from = 3.2e8, to = 2.84e9;
  for (const auto& [unit, factor] : {std::pair{"seconds", 1.0}, {"milliseconds", 1e3}})
    if (facts.least >= from * factor && facts.most <= to * factor) return unit;
  return {};
}

/// Guesses the kind of one column. Each step returns whether it has decided.
class Guesser {
 public:
  Guesser(const std::string& name, const ColumnFacts& facts, const std::optional<NumberFormat>& format)
      : facts_(facts), format_(format), ids_(word_of_ids(name)) {
    guess_.name = name;
    guess_.has_points = facts.points > 0;
    guess_.missing = facts.empty > 0;
    named_as_time_ = named_as_time(name);
    distinct_ = facts.distinct();
    unique_ = share(distinct_, facts.values());
  }

  ColumnGuess guess() {
    const bool decided = not_read() || column_of_lists() || nothing_to_learn() || all_numbers() || time_as_text() ||
                         list_in_brackets() || numbers_in_other_notation() || list_in_cells() || one_rows_own();
    if (!decided) category(cat(distinct_, " different values", but_numbers()));
    if (facts_.empty > 0 && guess_.kind != GuessedKind::left_out)
      guess_.why += cat("; ", percent(share(facts_.empty, facts_.rows)), " missing");
    return guess_;
  }

 private:
  bool decide(GuessedKind kind, const std::string& why) {
    guess_.kind = kind;
    guess_.why = why;
    return true;
  }
  bool leave_out(const std::string& why) { return decide(GuessedKind::left_out, "omitted: " + why); }
  bool category(const std::string& why) {
    guess_.integers = are_key_numbers(facts_);
    return decide(GuessedKind::category, "category: " + why);
  }

  bool not_read() {
    return !facts_.unread_type.empty() && leave_out(cat("columns of the type ", facts_.unread_type, " are not read"));
  }

  bool column_of_lists() {
    if (!facts_.is_list) return false;
    if (facts_.items == 0) return leave_out("all lists are empty");
    if (facts_.fractions && (facts_.integer_items < facts_.items || facts_.held_out_fractions > 0))
      return leave_out("lists of fractions; fractions cannot be keys");
    guess_.most_items = facts_.most_items;
    guess_.integers = facts_.integer_items == facts_.items;
    return decide(GuessedKind::list,
                  cat("list of categories: up to ", facts_.most_items, " in a row, ", distinct_, " different ones"));
  }

  bool nothing_to_learn() {
    if (facts_.values() == 0) return leave_out("no row has a value");
    if (distinct_ > 1) return false;
    if (facts_.empty == 0 || facts_.fractions) return leave_out("all rows have the same value");
    return category("a single value, and missing values");
  }

  bool all_numbers() {
    if (facts_.numbers < facts_.values() || facts_.held_out_words > 0) return false;
    const bool whole = facts_.integers == facts_.values();
    if (facts_.instants) return time("seconds");
    if (const std::string unit = whole ? unit_of_time(facts_) : "";
        !unit.empty() && (named_as_time_ || distinct_ > kMostNumberKeys))
      return time(unit);
    const bool ids = whole && !ids_.empty() && distinct_ > 2;
    if (facts_.fractions && (!ids || facts_.held_out_fractions > 0))
      return whole && counts_rows() ? leave_out("id: integers that number the rows") : number();
    if (facts_.fractions && std::max(facts_.most, -facts_.least) >= facts_.whole_below)
      return leave_out(cat("ids by '", ids_,
                           "' in the name, but floating-point numbers may have merged several ids: integers from ",
                           digits(facts_.whole_below), " on are rounded; store ids as integers or text"));
    if (whole && facts_.leading_zeros > 0)
      return unique_ > kUnique ? leave_out("id: digits with leading zeros, nearly all distinct")
                               : category(cat("digits with leading zeros, ", distinct_, " different ones"));
    if (whole && counts_rows()) return leave_out("id: integers that number the rows");
    if (ids)
      return unique_ > kUnique ? leave_out(cat("id: nearly all distinct, and the name contains '", ids_, "'"))
                               : category(cat("integers used as ids (the name contains '", ids_, "'); ", distinct_,
                                              " distinct ones"));
    return number();
  }

  bool time(const std::string& unit) {
    return decide(GuessedKind::time,
                  cat("time: ", unit, " since 1970, used as a number; hour or weekday need separate columns"));
  }

  /// Whether points may be thousands separators, as in 12, 950, 1.005: all numbers with a point have three digits
  /// behind it, and all numbers without a point are below 1000. If points were decimal points, large numbers without a
  /// point would be likely.
  bool may_have_points_of_thousands() const {
    return !facts_.fractions && facts_.group_points == facts_.points && facts_.points >= 5 &&
           share(facts_.points, facts_.values()) >= 0.05 && facts_.points < facts_.numbers && facts_.large_plain == 0;
  }

  bool number() {
    const bool texts = !facts_.fractions && facts_.notation.any_point_of_thousands();
    if (texts && format_ == NumberFormat::points_comma)
      if (const auto choice = facts_.notation.choose(format_); choice.kind == NotationFacts::Choice::Kind::one)
        return number_as(choice.notation);
    if (may_have_points_of_thousands() && !(format_ && has_decimal_point(*format_)))
      return leave_out(cat("numbers such as '", facts_.group_point,
                           "', in which the point may separate thousands or a fraction; use --number if the point "
                           "separates a fraction, otherwise --number-format 1.234,5"));
    return number_as({});
  }

  bool number_as(const NumberNotation& notation) {
    guess_.notation = notation;
    const NumberFacts plain = facts_.plain_numbers();
    const NumberFacts numbers = notation.given() ? facts_.notation.numbers_in(*notation.format, plain) : plain;
    guess_.log = numbers.skewed();
    const bool whole = numbers.integers == numbers.values;
    const bool few = !facts_.fractions && distinct_ <= (whole ? kMostNumberKeys : kMostNumberKeys / 100) &&
                     distinct_ * kRowsPerKey <= facts_.values();
    const std::string how =
        cat(guess_.log ? ", by its logarithm: most values are small, some are large" : "", words_of(notation));
    const std::string range = cat(digits(numbers.least), " to ", digits(numbers.most));
    if (few && (distinct_ > 2 || facts_.empty > 0))
      return decide(GuessedKind::number_and_category,
                    cat("number and category: ", distinct_, " different values, ", range, how));
    return decide(GuessedKind::number, cat("number: ", range, how));
  }

  /// Whether the column is a row counter: 1, 2, 3, ... in row order, or each integer of a range once, in any order. A
  /// tenth of the integers may be missing, because these rows are held out.
  bool counts_rows() const {
    const double range = facts_.most - facts_.least + 1;
    return facts_.values() >= 20 && unique_ > kCounting &&
           (share(facts_.rising, facts_.values()) > kCounting ||
            (unique_ > 0.97 && static_cast<double>(distinct_) > kCounting * range));
  }

  bool list_in_cells() {
    if (has_decimal_commas(facts_) && facts_.notation.choose(format_).kind == NotationFacts::Choice::Kind::one)
      return leave_out(cat("'", facts_.no_number, "' may be a number with a decimal comma or a list of two numbers: ",
                           stated("--number"), " or ", stated("--list"), " says which"));
    if (has_decimal_commas(facts_)) return leave_out(which_format(facts_.notation.choose(format_)));
    const std::optional<size_t> s = list_separator(facts_);
    if (!s) return false;
    set_list(facts_, *s, guess_);
    return true;
  }

  bool time_as_text() {
    if (share(facts_.times, facts_.values()) < 0.95) return false;
    return leave_out(
        "a date or time as text, which is not supported; store a number, such as seconds since 1970, or the hour "
        "and weekday as separate columns");
  }

  bool list_in_brackets() {
    if (!are_lists_in_brackets(facts_)) return false;
    const size_t form = form_in_brackets(facts_);
    if (const std::string why = refused_words(facts_.lists[form]); !why.empty()) return leave_out(why);
    set_list(facts_, form, guess_);
    return true;
  }

  bool numbers_in_other_notation() {
    using Kind = NotationFacts::Choice::Kind;
    if (!facts_.notation.any_other()) return false;
    const NotationFacts::Choice choice = facts_.notation.choose(format_);
    const bool sure = facts_.notation.sure() || (format_ && *format_ != NumberFormat::plain);
    if (choice.kind == Kind::ambiguous && sure) return leave_out(which_format(choice));
    if (choice.kind == Kind::one && sure) {
      const NumberFacts numbers = facts_.notation.numbers_in(*choice.notation.format, facts_.plain_numbers());
      // whole numbers in a column with an id name are ids
      if (!ids_.empty() && numbers.integers == numbers.values) return false;
      return number_as(choice.notation);
    }
    if (!are_other_numbers(facts_)) return false;
    return leave_out(cat("numbers written as '", facts_.other_number, "', but not all in the same format",
                         format_ ? cat(", as ", word_of(*format_), " says") : "",
                         ": write all numbers in the same format and with the same unit, or as plain numbers such "
                         "as 1234.5"));
  }

  std::string stated(const char* option) const { return cat(option, " ", quoted_word(guess_.name)); }
  static std::string which_format(const NotationFacts::Choice& choice) {
    return choice.question.empty() ? "numbers with a comma, but not all in the same format"
                                   : cat("numbers or pairs of numbers: ", choice.question, "; set --number-format");
  }

  bool one_rows_own() {
    const double words = share(facts_.words, facts_.values());
    if (words >= kTextWords && unique_ > 0.5)
      return leave_out(cat("text: ", std::round(words), " words a row, ", percent(unique_), " different"));
    if (facts_.values() >= 20 && unique_ > kUnique && all_with_unit())
      return leave_out(cat("numbers written as '", facts_.with_unit, "', with '", facts_.unit, "' after them; ",
                           stated("--number"), " reads them as numbers"));
    if (facts_.values() >= 20 && unique_ > kUnique)
      return leave_out(cat("id: ", percent(unique_), " of the values are distinct", but_numbers()));
    return false;
  }

  /// Whether at least 95 % of the values are numbers with the same unit, such as "30 years".
  bool all_with_unit() const { return share(facts_.with_units, facts_.values()) >= 0.95; }

  /// A remark for the user if most values are numbers, but some are not: these may be mistakes.
  std::string but_numbers() const {
    if (all_with_unit())
      return cat("; ", stated("--number"), " has numbers such as '", facts_.with_unit, "' read as numbers");
    if (facts_.sure_other_numbers > 0 && 2 * (facts_.numbers + facts_.other_numbers) >= facts_.values() &&
        !facts_.odd_value.empty())
      return cat("; ", facts_.numbers + facts_.other_numbers, " of ", facts_.values(),
                 " values are numbers, some written as '", facts_.other_number, "', but not '", facts_.odd_value, "'");
    if (2 * facts_.numbers < facts_.values() || (facts_.no_number.empty() && facts_.held_out_word.empty())) return {};
    return cat("; ", facts_.numbers, " of ", facts_.values(), " values are numbers, but not '",
               facts_.no_number.empty() ? facts_.held_out_word + "' of an evaluation row" : facts_.no_number + "'");
  }

  const ColumnFacts& facts_;
  const std::optional<NumberFormat>& format_;
  const std::string ids_;
  bool named_as_time_ = false;
  int64_t distinct_ = 0;
  double unique_ = 0;
  ColumnGuess guess_;
};

}  // namespace

ColumnGuess guess_column(const std::string& name, const ColumnFacts& facts, const std::optional<NumberFormat>& format) {
  return Guesser(name, facts, format).guess();
}

}  // namespace hctr
