#include "formats/catalog/open_set.h"

#include <utility>

#include "core/base/expect.h"
#include "formats/catalog/format_table.h"
#include "formats/io/memory_source.h"
#include "formats/parquet/memory_table.h"
#include "formats/parquet/parquet_options.h"
#include "formats/parquet/parquet_set.h"
#include "formats/text/csv_set.h"

namespace hctr {
namespace {

/// Disables splitting of texts for each slot whose column in the table already contains lists.
void keep_lists(std::vector<SlotColumns>& slots, const ParquetFileInfo& info) {
  std::vector<SlotColumns> each;
  for (const SlotColumns& group : slots)
    for (const std::string& column : group.columns) {
      SlotColumns& one = each.emplace_back(group);
      one.columns = {column};
      for (int64_t f = 0; f < info.field_count; ++f)
        if (column == info.fields[f].name && info.fields[f].list) {
          one.separator.clear();
          one.brackets = false;
        }
    }
  slots = std::move(each);
}

/// Converts "csv" options to "parquet" options. With these, a table in memory yields the same samples as a CSV file
/// that contains the table's values as texts.
ParquetOptions as_table(const CsvOptions& csv) {
  ParquetOptions options{.labels = csv.labels,
                         .dense = csv.dense,
                         .slots = csv.slots,
                         .default_dense = 0,
                         .default_key = "",
                         .trim = csv.trim,
                         .missing = csv.missing,
                         .hash_seed = csv.hash_seed,
                         .number_format = csv.number_format};
  for (SlotColumns& slot : options.slots) slot.keys = slot.keys.value_or(KeyRule::hash);
  options.as_text = true;
  options.grammar = csv_grammar(csv);
  return options;
}

}  // namespace

std::unique_ptr<SampleSet> open_set(const DataSection& section, const Source& source, KeyWidth width, const Log& log) {
  if (!is_in_memory(source.path)) return format_type(section.format).open(section, source, width, log);
  const bool csv = section.format == kCsvFormat;
  if (!csv && section.format != kParquetFormat)
    throw Error(Kind::config, cat("a table in memory needs \"format\" Csv or Parquet, whose columns the Data layer "
                                  "names, but the format is \"",
                                  section.format.name, "\""));
  DataSection of_table = section;
  ParquetOptions& options = of_table.options.edit<ParquetOptions>();
  if (csv) options = as_table(section.options.get<CsvOptions>());
  keep_lists(options.slots, memory_source(source.path)->info());
  return open_parquet_set(of_table, source, csv ? KeyWidth::i64 : width, log);
}

}  // namespace hctr
