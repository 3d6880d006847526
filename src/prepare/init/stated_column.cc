#include "prepare/init/stated_column.h"

#include <algorithm>

#include "config/problems.h"
#include "core/base/expect.h"
#include "prepare/init/guess_words.h"
#include "prepare/init/list_guess.h"

namespace hctr {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Sets a column to the kind that the user states.
class Stater {
 public:
  Stater(const std::string& name, const ColumnFacts& facts, const StatedKind& stated,
         const std::optional<NumberFormat>& format)
      : facts_(facts),
        format_(format),
        option_(cat(stated.list       ? "--list"
                    : stated.category ? "--category"
                                      : "--number",
                    " ", name)),
        missing_(facts.empty > 0 ? cat("; ", percent(share(facts.empty, facts.rows)), " missing") : "") {
    guess_.name = name;
    guess_.missing = facts.empty > 0;
    guess_.has_points = facts.points > 0;
  }

  ColumnGuess as(const StatedKind& stated) {
    if (!facts_.unread_type.empty()) refuse(cat("columns of the type ", facts_.unread_type, " are not read"));
    if (facts_.values() == 0) refuse("no row has a value");
    if (facts_.is_list && !stated.list) refuse("the column contains lists; name it in --list");
    if (stated.list) as_list();
    if (stated.category) as_category();
    if (stated.number) as_number(stated.category);
    return guess_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw Error(Kind::usage, cat(option_, ": ", why)); }

  void as_category() {
    if (facts_.fractions && (facts_.integers < facts_.values() || facts_.held_out_fractions > 0 ||
                             std::max(facts_.most, -facts_.least) >= facts_.whole_below))
      refuse("the column contains floats that are not all integers, or too large to be exact; store integers or texts");
    guess_.kind = GuessedKind::category;
    guess_.integers = are_key_numbers(facts_);
    guess_.why = cat("category, by --category: ", facts_.distinct(), " different values", missing_);
  }

  void as_number(bool category_too) {
    const bool grouped = format_ == NumberFormat::points_comma && !facts_.fractions;
    if (facts_.notation.any_other() || (grouped && facts_.notation.any_point_of_thousands())) {
      const NotationFacts::Choice choice = facts_.notation.choose(format_);
      if (choice.kind == NotationFacts::Choice::Kind::ambiguous) refuse(cat(choice.question, "; set --number-format"));
      if (choice.kind == NotationFacts::Choice::Kind::one) guess_.notation = choice.notation;
    }
    const int64_t words = facts_.values() - facts_.numbers + facts_.held_out_words;
    if (words > 0 && !guess_.notation.given())
      refuse(cat(words, words == 1 ? " value is not a number" : " values are not numbers", ", the first is '",
                 facts_.no_number.empty() ? facts_.held_out_word : facts_.no_number, "'"));
    guess_.kind = category_too ? GuessedKind::number_and_category : GuessedKind::number;
    const NumberFacts plain = facts_.plain_numbers();
    const NumberFacts numbers =
        guess_.notation.given() ? facts_.notation.numbers_in(*guess_.notation.format, plain) : plain;
    guess_.log = numbers.skewed();
    guess_.why = cat(category_too ? "number and category, by --number and --category: " : "number, by --number: ",
                     digits(numbers.least), " to ", digits(numbers.most), guess_.log ? ", by its logarithm" : "",
                     words_of(guess_.notation), missing_);
  }

  void as_list() {
    if (facts_.is_list) {
      guess_ = guess_column(guess_.name, facts_);
      return;
    }
    const size_t form = are_lists_in_brackets(facts_) ? form_in_brackets(facts_) : likeliest_separator();
    if (const std::string why = refused_words(facts_.lists[form]); !why.empty()) refuse(why);
    set_list(facts_, form, guess_);
    guess_.why += missing_;
  }

  /// The list form that the values suggest. Without a clear suggestion, returns the separator that occurs in the most
  /// cells.
  size_t likeliest_separator() const {
    if (const std::optional<size_t> sure = list_separator(facts_)) return *sure;
    const auto end = facts_.lists.begin() + kListSeparators.size();
    const auto most = std::max_element(facts_.lists.begin(), end,
                                       [](const ListFacts& a, const ListFacts& b) { return a.cells < b.cells; });
    if (most->cells == 0) refuse(cat("no cell contains several values separated by | ; , / ^ ~ # or blanks"));
    return static_cast<size_t>(most - facts_.lists.begin());
  }

  const ColumnFacts& facts_;
  const std::optional<NumberFormat>& format_;
  const std::string option_, missing_;
  ColumnGuess guess_;
};

}  // namespace

StatedKind stated_kind(const std::string& name, const InitOptions& options) {
  return {.category = has(options.categories, name),
          .number = has(options.numbers, name),
          .list = has(options.lists, name)};
}

ColumnGuess stated_column(const std::string& name, const ColumnFacts& facts, const StatedKind& stated,
                          const std::optional<NumberFormat>& format) {
  return Stater(name, facts, stated, format).as(stated);
}

void expect_stated_columns(const InitOptions& options, const std::vector<std::string>& columns) {
  const std::pair<const char*, const std::vector<std::string>*> stated[] = {{"--leave-out", &options.leave_out},
                                                                            {"--category", &options.categories},
                                                                            {"--number", &options.numbers},
                                                                            {"--list", &options.lists}};
  for (const auto& [option, names] : stated)
    for (const std::string& name : *names) {
      const auto fail = [&, option = option](const std::string& why) {
        throw Error(Kind::usage, cat(option, " ", name, ": ", why));
      };
      if (!has(columns, name)) fail(cat("the table has no such column", did_you_mean(name, columns, 3)));
      if (std::count(columns.begin(), columns.end(), name) > 1) fail("several columns have this name");
      if (name == options.label && names != &options.leave_out) fail("the column is the label");
      if (names != &options.leave_out && has(options.leave_out, name)) fail("the column is also in --leave-out");
      if (names != &options.lists && has(options.lists, name)) fail("the column is also in --list");
    }
}

}  // namespace hctr
