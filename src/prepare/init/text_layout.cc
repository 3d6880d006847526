#include "prepare/init/text_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/foreign_content.h"
#include "formats/data/text_values.h"
#include "formats/text/dialect_hint.h"
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

/// The first records of a text, and whether their quotes are consistent.
struct FirstRecords {
  std::vector<Record> records;
  bool right = true;
  bool backslashes = false;  // whether a record with inconsistent quotes escapes quotes with backslashes
};

FirstRecords first_records(std::string_view start, const TextGrammar& grammar) {
  FirstRecords found;
  RecordSplitter splitter(grammar);
  const char *p = start.data(), *const end = p + start.size();
  while (p < end && found.records.size() < kRecordsLookedAt) {
    const char* const record = p;
    p = splitter.split(p, end);
    if (is_blank(splitter.cells())) continue;
    const bool right = splitter.problem().empty();
    found.right = found.right && right;
    found.backslashes = found.backslashes || (!right && has_backslash_escapes({record, p}, grammar));
    found.records.emplace_back(splitter.cells().begin(), splitter.cells().end());
  }
  return found;
}

/// How well a delimiter fits the records: the most frequent number of cells, and the fraction of records with this
/// number.
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

/// Whether `label` may be the number of a column.
bool is_column_number(const std::string& label, size_t columns) {
  int64_t number = 0;
  return read_integer(label, number) && number >= 1 && number <= static_cast<int64_t>(columns);
}

/// Whether the first record is a header: its cells must be distinct and not numbers. A cell that equals the label also
/// proves a header, except if the label may be a column number.
bool looks_like_header(const Record& first, const std::string& label) {
  const bool named = std::find(first.begin(), first.end(), label) != first.end();
  if (named && !is_numeric(label)) return true;
  if (!named && is_column_number(label, first.size())) return false;
  const bool different = std::set<std::string>(first.begin(), first.end()).size() == first.size();
  return different && std::none_of(first.begin(), first.end(), is_numeric);
}

/// Errors: Error(usage) if `label` is a column number and the first record is probably a header. This is assumed if no
/// cell of the first record is a number, but all other values of some column are numbers.
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
    throw Error(Kind::usage, cat("--label ", label, ": the first line contains column names; name the column: --label ",
                                 quoted_word(first[static_cast<size_t>(column - 1)])));
  }
}

void expect_text(std::string_view start) {
  if (const std::string why = why_no_rows(start); !why.empty()) throw Error(Kind::data, why);
  const size_t zero = start.find('\0');
  if (zero != start.npos)
    throw Error(Kind::data, cat("the file is not a text of separated values: byte ", zero, " is zero"));
}

/// The first `count` lines that are not blank.
std::vector<std::string_view> first_lines(std::string_view start, size_t count) {
  std::vector<std::string_view> lines;
  while (lines.size() < count && !start.empty()) {
    const size_t end = std::min(start.find('\n'), start.size());
    if (start.find_first_not_of("\r\n") < end) lines.push_back(start.substr(0, end));
    start.remove_prefix(std::min(end + 1, start.size()));
  }
  return lines;
}

/// Explains why the header may have one cell less than most rows.
std::string why_one_name_less(std::string_view row, const TextGrammar& grammar) {
  if (const size_t end = row.find_last_not_of('\r'); end != row.npos && row[end] == grammar.delimiter)
    return "rows end with a delimiter, but the header does not: remove the delimiter from rows, or add one to the "
           "header";
  if (row.find('\'') != row.npos)
    return "cells in single quotes are split; use double quotes, or set \"quote\": \"'\" in \"csv\"";
  return "write the file without R's row names (row.names = FALSE), or name the first column too";
}

/// Errors: Error(data) if the first record has an unusual number of cells. The message names the probable cause: a
/// comment, a title, row names of R, or wrongly split cells.
void expect_usual_start(const Record& first, std::string_view start, size_t cells, const TextGrammar& grammar) {
  if (first.size() == cells) return;
  const std::vector<std::string_view> lines = first_lines(start, 3);
  const std::string what = cat("its first line '", lines[0].substr(0, 40), "' ");
  if (looks_like_comment(lines[0]))
    throw Error(Kind::data, what + "looks like a comment, which is not supported: remove the line");
  if (without_returns(lines[0]).find('\r') != lines[0].npos)
    throw Error(Kind::data, what +
                                "contains a single carriage return, so the file has two kinds of line ends; "
                                "write line feeds");
  for (size_t i = 1; i < lines.size(); ++i)
    if (has_backslash_escapes(lines[i], grammar))
      throw Error(Kind::data,
                  cat("most rows have ", cells, " cells, but the first has ", first.size(), backslash_words()));
  if (first.size() + 1 == cells)
    throw Error(Kind::data, cat(what, "has ", first.size(), " names, but most rows have ", cells,
                                " cells: ", why_one_name_less(lines[1], grammar)));
  throw Error(Kind::data, cat(what, "has ", first.size(), first.size() == 1 ? " cell" : " cells",
                              ", but most rows have ", cells, ": remove the lines before the header"));
}

}  // namespace

void expect_label(const std::string& label, const std::vector<std::string>& columns, bool numbered) {
  const auto count = std::count(columns.begin(), columns.end(), label);
  if (count == 1) return;
  if (count > 1) throw Error(Kind::usage, cat("--label ", label, ": ", count, " columns have this name"));
  if (numbered)
    throw Error(Kind::usage, cat("--label ", label, ": the file has no header, so columns are numbered 1 to ",
                                 columns.size(), "; for the last column: --label ", columns.size()));
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
    throw Error(Kind::data, cat("no separator splits all rows into the same number of cells (at least two); the "
                                "first line is '",
                                std::string(start.substr(0, std::min(start.find('\n'), size_t{80}))), "'"));
  if (best.delimiter.size() == 1 && first_records(start, grammar_of(best.delimiter, '"', true)).backslashes)
    throw Error(Kind::data, cat("a quote in a cell is not closed properly", backslash_words()));
  const FirstRecords trimmed = first_records(start, grammar_of(best.delimiter, best.quote, true));
  TextLayout layout{.delimiter = best.delimiter,
                    .grammar = grammar_of(best.delimiter, best.quote, plain.records != trimmed.records)};
  const Record& first = trimmed.records[0];
  expect_usual_start(first, start, best.cells, layout.grammar);
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
