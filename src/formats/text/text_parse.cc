// Parses a chunk of text: splits records into cells, and cells into rows.
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "formats/text/dialect_hint.h"
#include "formats/text/text_set.h"

namespace hctr {

void find_records(const char* text, size_t size, const TextGrammar& grammar, RecordSplitter& splitter,
                  std::vector<uint32_t>& begins) {
  const char* const end = text + size;
  begins.clear();
  for (const char *p = text, *next; p < end; p = next) {
    bool blank = false;
    if (grammar.quote == 0 && !grammar.trim) {
      const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
      next = newline ? newline + 1 : end;
      const std::string_view line(p, static_cast<size_t>((newline ? newline : end) - p));
      blank = without_returns(line).empty();
    } else {
      next = splitter.split(p, end);
      blank = is_blank(splitter.cells());
    }
    if (!blank) begins.push_back(static_cast<uint32_t>(p - text));
  }
  begins.push_back(static_cast<uint32_t>(size));
}

void parse_text(std::string_view text, size_t begin, const TextParsing& parsing, RecordSplitter& splitter,
                RowMajor& rows, BadRecords& bad) {
  const RowMaker& maker = parsing.maker;
  const char* const end = text.data() + text.size();
  const Cells added = maker.added();
  std::vector<std::string_view> with_added;
  for (const char *p = text.data() + begin, *next; p < end; p = next) {
    next = splitter.split(p, end);
    Cells cells = splitter.cells();
    if (is_blank(cells)) continue;
    std::string problem = splitter.problem();
    if (problem.empty() && cells.size() != maker.columns())
      problem = cat("expected ", maker.columns(), " values, found ", cells.size());
    if (!problem.empty())
      problem += dialect_hint(
          {.text = {p, next}, .expected = maker.columns(), .found = cells.size(), .header = parsing.format.header},
          parsing.format.grammar);
    if (problem.empty() && !added.empty()) {
      with_added.assign(cells.begin(), cells.end());
      with_added.insert(with_added.end(), added.begin(), added.end());
      cells = with_added;
    }
    if (problem.empty()) problem = maker.make(cells, rows.next());
    if (problem.empty()) problem = rows.keep();
    if (problem.empty()) {
      rows.pass_on(cells);
      continue;
    }
    const auto offset = static_cast<size_t>(p - text.data());
    bad.add(rows.rows(), [&] { return cat(parsing.where(offset), ": ", problem); });
    if (rows.names_bad()) bad.records.push_back({.offset = p - text.data(), .cause = problem});
    if (parsing.policy != BadRecordPolicy::skip || splitter.unclosed())
      throw Error(Kind::data, cat(parsing.where(offset), ": ", problem));
  }
}

}  // namespace hctr
