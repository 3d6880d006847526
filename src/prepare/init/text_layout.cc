#include "prepare/init/text_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "config/problems.h"
#include "data/text_values.h"
#include "prepare/init/column_facts.h"
#include "prepare/init/label_guess.h"

namespace hctr {
namespace {

constexpr size_t kRecordsLookedAt = 500;
constexpr const char* kDelimiters[] = {"\t", ",", ";", "|", "::", "\x01", " "};

using Record = std::vector<std::string>;

TextGrammar grammar_of(const std::string& delimiter, char quote, bool trim) {
  return {.delimiter = delimiter[0],
          .quote = delimiter.size() > 1 ? '\0' : quote,
          .trim = trim,
          .more = delimiter.substr(1)};
}

/// The first records of a text, and whether their quotes make sense.
struct FirstRecords {
  std::vector<Record> records;
  bool right = true;
};

FirstRecords first_records(std::string_view start, const TextGrammar& grammar) {
  FirstRecords found;
  RecordSplitter splitter(grammar);
  const char *p = start.data(), *const end = p + start.size();
  while (p < end && found.records.size() < kRecordsLookedAt) {
    p = splitter.split(p, end);
    if (is_blank(splitter.cells())) continue;
    found.right = found.right && splitter.problem().empty();
    found.records.emplace_back(splitter.cells().begin(), splitter.cells().end());
  }
  return found;
}

/// How well a delimiter explains the records: the number of cells that most of them have, and how many have it.
struct Fit {
  std::string delimiter;
  char quote = '"';
  size_t cells = 0;
  double share = 0;
  bool names_label = false;

  bool operator<(const Fit& other) const {
    const auto rank = [](const Fit& fit) {
      return std::tuple(fit.names_label, fit.share >= 0.95, fit.share >= 0.5, fit.cells);
    };
    return rank(*this) < rank(other);
  }
};

Fit fit_of(std::string_view start, const std::string& delimiter, char quote, const std::string& label) {
  const FirstRecords found = first_records(start, grammar_of(delimiter, quote, true));
  std::map<size_t, size_t> widths;
  for (const Record& record : found.records) ++widths[record.size()];
  Fit fit{.delimiter = delimiter, .quote = quote};
  if (found.records.empty() || !found.right) return fit;
  const auto most =
      std::max_element(widths.begin(), widths.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  fit.cells = most->first;
  fit.share = static_cast<double>(most->second) / static_cast<double>(found.records.size());
  const Record& first = found.records[0];
  fit.names_label = first.size() > 1 && std::find(first.begin(), first.end(), label) != first.end();
  if (fit.cells < 2) fit.share = 0;
  return fit;
}

bool is_numeric(const std::string& cell) {
  double number = 0;
  return cell.empty() || read_number(cell, number);
}

/// Whether --label may be a column's number.
bool is_column_number(const std::string& label, size_t columns) {
  int64_t number = 0;
  return read_integer(label, number) && number >= 1 && number <= static_cast<int64_t>(columns);
}

/// Names are different texts and no numbers. A label that names one of them is as good a sign, unless it may be a
/// number of a column.
bool looks_like_header(const Record& first, const std::string& label) {
  const bool named = std::find(first.begin(), first.end(), label) != first.end();
  if (named && !is_numeric(label)) return true;
  if (!named && is_column_number(label, first.size())) return false;
  const bool different = std::set<std::string>(first.begin(), first.end()).size() == first.size();
  return different && std::none_of(first.begin(), first.end(), is_numeric);
}

/// Errors: Error(usage) where a label that is a column's number makes a row of what looks like names: no cell of the
/// first record is a number, and all others of some column are.
void expect_no_names(const std::vector<Record>& records, const std::string& label) {
  const Record& first = records[0];
  if (!is_column_number(label, first.size()) || std::any_of(first.begin(), first.end(), is_numeric)) return;
  for (size_t c = 0; c < first.size(); ++c) {
    size_t numbers = 0, others = 0;
    for (size_t r = 1; r < records.size(); ++r) {
      if (c >= records[r].size() || records[r][c].empty() || is_missing_mark(records[r][c])) continue;
      ++(is_numeric(records[r][c]) ? numbers : others);
    }
    if (numbers == 0 || others > 0 || is_missing_mark(first[c])) continue;
    int64_t column = 0;
    read_integer(label, column);
    throw Error(Kind::usage,
                cat("--label ", label, ": the first line has names above numbers; name the column: --label ",
                    quoted_word(first[static_cast<size_t>(column - 1)])));
  }
}

void expect_text(std::string_view start) {
  if (start.starts_with("PK\x03\x04"))
    throw Error(Kind::data, "it is a spreadsheet or another zip file; save the table as CSV, or unpack it");
  if (start.find('\n') == start.npos && start.find('\r') < start.size() - 1)
    throw Error(Kind::data,
                "its lines end with a carriage return alone, as on an old Macintosh, which is not read; "
                "write line feeds: tr '\\r' '\\n' < OLD > NEW");
  const size_t zero = start.find('\0');
  if (zero == start.npos) return;
  const bool wide = start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF");
  throw Error(Kind::data, cat("it is no text of separated values: ",
                              wide ? "it is UTF-16; save it as UTF-8" : cat("byte ", zero, " is zero")));
}

}  // namespace

void expect_label(const std::string& label, const std::vector<std::string>& columns, bool numbered) {
  const auto count = std::count(columns.begin(), columns.end(), label);
  if (count == 1) return;
  if (count > 1) throw Error(Kind::usage, cat("--label ", label, ": ", count, " columns have this name"));
  if (numbered)
    throw Error(Kind::usage, cat("--label ", label, ": the file has no header, so columns go by their numbers, 1 to ",
                                 columns.size(), "; for the last one: --label ", columns.size()));
  std::string all;
  for (const std::string& column : columns) all += cat(all.empty() ? "" : ", ", "'", column, "'");
  throw Error(Kind::usage, cat("there is no column '", label, "' for --label", did_you_mean(label, columns, 3),
                               "; there are ", all.substr(0, 1000)));
}

TextLayout guess_layout(std::string_view start, const std::string& label) {
  expect_text(start);
  if (start.starts_with("\xEF\xBB\xBF")) start.remove_prefix(3);
  Fit best;
  for (const char* delimiter : kDelimiters) {
    Fit fit = fit_of(start, delimiter, '"', label);
    if (fit.share == 0) fit = fit_of(start, delimiter, '\0', label);
    if (best < fit) best = fit;
  }
  const FirstRecords plain =
      first_records(start, grammar_of(best.delimiter.empty() ? "," : best.delimiter, best.quote, false));
  if (plain.records.empty()) throw Error(Kind::data, "it is empty");
  if (best.delimiter.empty() || best.share == 0)
    throw Error(Kind::data, cat("no separator makes rows of equally many cells, two at least; its first line is '",
                                std::string(start.substr(0, std::min(start.find('\n'), size_t{80}))), "'"));
  const FirstRecords trimmed = first_records(start, grammar_of(best.delimiter, best.quote, true));
  TextLayout layout{.delimiter = best.delimiter,
                    .grammar = grammar_of(best.delimiter, best.quote, plain.records != trimmed.records)};
  const Record& first = trimmed.records[0];
  layout.header = looks_like_header(first, label);
  if (!layout.header) expect_no_names(trimmed.records, label);
  if (layout.header)
    layout.columns = first;
  else
    for (size_t i = 1; i <= first.size(); ++i) layout.columns.push_back(std::to_string(i));
  expect_label(label, layout.columns, !layout.header);
  return layout;
}

}  // namespace hctr
