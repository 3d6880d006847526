// Text with any columns, as the object "csv" of the Data layer describes them.
#pragma once

#include <string>
#include <vector>

#include "data/column_section.h"
#include "data/format_type.h"
#include "data/text/text_set.h"

namespace hctr {

inline constexpr DataFormat kCsvFormat{"Csv"};

/// What the columns of a Csv file are.
struct CsvOptions {
  std::string delimiter = ",", quote = "\"";
  bool header = true;
  std::vector<std::string> columns;
  std::vector<std::string> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  int64_t hash_seed = 0;
};

FormatType csv_format();

/// How records are split into cells.
TextGrammar csv_grammar(const CsvOptions&);
/// How the files of a section are read. Reads vocabularies. Errors: Error(io), Error(data) for those.
TextFormat csv_text_format(const DataSection&);

}  // namespace hctr
