#include "formats/catalog/visit_first_rows.h"

#include <algorithm>

#include "formats/catalog/first_rows.h"
#include "formats/catalog/format_table.h"

namespace hctr {

std::optional<StatedColumns> columns_of(DataSection& section) {
  const FormatType& format = format_type(section.format);
  return format.columns ? format.columns(section) : std::nullopt;
}

DataSection without_slots(const DataSection& section) {
  DataSection own = section;
  if (const auto columns = columns_of(own)) columns->slots->clear();
  own.sparse.clear();
  own.slot_size_array.clear();
  own.statistics = neutral_statistics(section);
  return own;
}

FirstRowsRead visit_first_rows(SampleSet& set, const std::function<bool(const SampleBlock&, int64_t rows)>& visit,
                               bool exact) {
  const auto files = static_cast<int64_t>(set.files().size());
  const int64_t most = (kFirstRows + files - 1) / files;
  const std::unique_ptr<Parser> parser = set.parser();
  Chunk chunk;
  SampleBlock block;
  block.wants_exact = exact;
  FirstRowsRead read{.rows = 0, .whole = true};
  for (int64_t f = 0; f < files; ++f) {
    if (read.rows >= kFirstRows) return {read.rows, false};
    const std::unique_ptr<Cutter> cutter = set.open(static_cast<size_t>(f), {});
    chunk.file = static_cast<size_t>(f);
    for (int64_t left = most; cutter->next(chunk);) {
      if (left == 0) {
        read.whole = false;
        break;
      }
      parser->parse(chunk, block);
      const int64_t rows = std::min(block.rows, left);
      read.whole = read.whole && rows == block.rows;
      left -= rows;
      read.rows += rows;
      if (!visit(block, rows)) return {read.rows, false};
    }
  }
  return read;
}

}  // namespace hctr
