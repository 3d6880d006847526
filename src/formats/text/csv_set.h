// CSV files: text files whose columns are described by the "csv" object of the Data layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/data/column_section.h"
#include "formats/data/format_type.h"
#include "formats/text/text_set.h"

namespace hctr {

inline constexpr DataFormat kCsvFormat{"Csv"};

/// The "csv" object: the dialect and columns of CSV files.
struct CsvOptions {
  std::string delimiter = ",";
  std::optional<std::string> quote;  ///< default: '"', or no quoting with a multi-character delimiter
  bool header = true, trim = false;
  std::vector<std::string> columns, missing;
  std::vector<LabelColumn> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  int64_t hash_seed = 0;
  std::optional<NumberFormat> number_format{};
};

FormatType csv_format();

/// Returns the grammar that splits records into cells.
TextGrammar csv_grammar(const CsvOptions&);
/// Returns the text format of a section. `source`: determines which columns are optional. Reads the vocabularies.
/// Errors: Error(io) and Error(data) for vocabularies.
TextFormat csv_text_format(const DataSection&, const Source& = {});

}  // namespace hctr
