#include "prepare/init/list_guess.h"

#include <algorithm>

#include "core/base/expect.h"
#include "prepare/init/guess_words.h"

namespace hctr {
namespace {

constexpr double kListCells = 0.05;  // minimum fraction of cells with several values in a list column

}  // namespace

std::optional<size_t> list_separator(const ColumnFacts& facts) {
  for (size_t s = 0; s < kListSeparators.size(); ++s) {
    const ListFacts& list = facts.lists[s];
    if (share(list.cells, facts.values()) < kListCells || list.looked_at == 0) continue;
    const double different = share(list.distinct, list.looked_at);
    const bool integers = list.integers == list.looked_at;
    const char separator = kListSeparators[s];
    const bool sure = separator == '|' || separator == ';' || separator == '^' || separator == '~';
    // Repeated values alone do not prove a list: words of free text also repeat, and so do the parts of place names or
    // paths. Therefore values between blanks are a list only if they are integers. For other ambiguous separators, the
    // number of distinct values must be at most half the number of distinct cells.
    if (separator == ' ' && !integers) continue;
    if (different > (sure ? 0.8 : 0.5)) continue;
    if (!sure && !integers && 2 * list.distinct > std::min<int64_t>(facts.distinct(), list.looked_at)) continue;
    return s;
  }
  return {};
}

size_t form_in_brackets(const ColumnFacts& facts) {
  const auto first = facts.lists.begin() + kFirstInBrackets;
  const auto best = std::max_element(first, facts.lists.end(),
                                     [](const ListFacts& a, const ListFacts& b) { return a.cells < b.cells; });
  return static_cast<size_t>(best - facts.lists.begin());
}

bool are_other_numbers(const ColumnFacts& facts) {
  return facts.sure_other_numbers > 0 && share(facts.numbers + facts.other_numbers, facts.values()) >= 0.95;
}

bool are_lists_in_brackets(const ColumnFacts& facts) {
  // are_other_numbers() excludes columns of negative amounts, which are numbers in brackets
  return share(facts.in_brackets, facts.values()) >= 0.5 &&
         share(facts.lists_in_brackets, facts.values()) >= kListCells && !are_other_numbers(facts);
}

void set_list(const ColumnFacts& facts, size_t form, ColumnGuess& guess) {
  const ListFacts& list = facts.lists[form];
  guess.kind = GuessedKind::list;
  guess.form = form;
  guess.brackets = form >= kFirstInBrackets;
  guess.separator = guess.brackets ? kSeparatorsInBrackets[form - kFirstInBrackets] : kListSeparators[form];
  guess.most_items = list.most;
  guess.integers = list.integers == list.looked_at;
  const std::string how = guess.brackets ? "in brackets"
                                         : cat("'", std::string(1, guess.separator), "' in ",
                                               percent(share(list.cells, facts.values())), " of the cells");
  guess.why = cat("list of categories: ", how, ", up to ", list.most, " values, ", list.distinct, " different ones");
}

bool has_decimal_commas(const ColumnFacts& facts) {
  constexpr auto comma = std::find(kListSeparators.begin(), kListSeparators.end(), ',') - kListSeparators.begin();
  const ListFacts& commas = facts.lists[comma];
  return commas.cells > 0 && commas.most == 2 && commas.integers == commas.looked_at &&
         facts.numbers + commas.cells == facts.values();
}

std::string refused_words(const ListFacts& list) {
  if (list.refused == 0) return {};
  return cat("lists in brackets, but ", list.refused, list.refused == 1 ? " value is" : " values are",
             " not a list, first ", list.refused_cell);
}

}  // namespace hctr
