// Parsing a chunk of text: records into cells, cells into rows.
#include "base/error.h"
#include "data/text_set.h"

namespace hctr {

BadRecords parse_text(const char* text, size_t size, const RowMaker& maker, std::optional<BadRecordPolicy> policy,
                      const std::function<std::string(size_t)>& where, RecordSplitter& splitter, RowMajor& rows, SampleBlock& block) {
  BadRecords bad;
  rows.start(block);
  const char* const end = text + size;
  for (const char *p = text, *next; p < end; p = next) {
    next = splitter.split(p, end);
    const Cells cells = splitter.cells();
    if (is_blank(cells)) continue;
    std::string problem = splitter.problem();
    if (problem.empty() && cells.size() != maker.columns()) problem = cat("expected ", maker.columns(), " values, found ", cells.size());
    if (problem.empty()) problem = maker.make(cells, rows.next());
    if (problem.empty()) problem = rows.keep();
    if (problem.empty()) continue;
    bad.add([&] { return cat(where(static_cast<size_t>(p - text)), ": ", problem); });
    if (policy != BadRecordPolicy::skip || splitter.unclosed()) throw Error(Kind::data, cat(where(static_cast<size_t>(p - text)), ": ", problem));
  }
  rows.finish();
  return bad;
}

}  // namespace hctr
