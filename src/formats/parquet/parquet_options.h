// The "parquet" object of a Data layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/data/column_section.h"
#include "formats/data/slot_key_rules.h"
#include "formats/data/text_grammar.h"

namespace hctr {

/// The columns of Parquet files, as an alternative to _metadata.json, and the handling of missing values.
struct ParquetOptions {
  std::vector<LabelColumn> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  std::optional<double> default_dense;
  std::optional<std::string> default_key;
  bool trim = false;                 ///< strip blanks around texts
  std::vector<std::string> missing;  ///< texts that are read as null
  int64_t hash_seed = 0;
  std::optional<NumberFormat> number_format{};  ///< number format of text columns
  std::vector<SlotKeyRule> known_rules;         ///< not in the config: key rules of the model's training data.
  bool rules_known = false;                     ///< not in the config: whether known_rules come from a model
  // Not in the config: set for an in-memory table that replaces CSV files.
  bool as_text = false;   ///< keys have 8 bytes, like keys of CSV files
  TextGrammar grammar{};  ///< grammar of vocabulary files
};
Schema<ParquetOptions> parquet_options_schema();

}  // namespace hctr
