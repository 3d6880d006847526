// Text files with any columns, as described by the object "csv" of the Data layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/data/column_section.h"
#include "formats/data/format_type.h"
#include "formats/text/text_set.h"

namespace hctr {

inline constexpr DataFormat kCsvFormat{"Csv"};

/// The columns of a Csv file.
struct CsvOptions {
  std::string delimiter = ",";
  std::optional<std::string> quote;  ///< none: '"', or no quoting where the delimiter has several characters
  bool header = true, trim = false;
  std::vector<std::string> columns, missing;
  std::vector<LabelColumn> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  int64_t hash_seed = 0;
  std::optional<NumberFormat> number_format{};
};

FormatType csv_format();

/// Returns how records are split into cells.
TextGrammar csv_grammar(const CsvOptions&);
/// Returns how to read the files of a section, without the columns that the source lets lack. Reads the vocabularies.
/// Errors: Error(io) and Error(data) for these.
TextFormat csv_text_format(const DataSection&, const Source& = {});

}  // namespace hctr
