// The object "parquet" of a Data layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/data/column_section.h"
#include "formats/data/slot_key_rules.h"
#include "formats/data/text_grammar.h"

namespace hctr {

/// Columns of Parquet files, where _metadata.json does not name them, and what missing values are.
struct ParquetOptions {
  std::vector<LabelColumn> labels;
  std::vector<DenseColumns> dense;
  std::vector<SlotColumns> slots;
  std::optional<double> default_dense;
  std::optional<std::string> default_key;
  bool trim = false;                 ///< blanks around texts are not part of them
  std::vector<std::string> missing;  ///< texts that count as null
  int64_t hash_seed = 0;
  std::optional<NumberFormat> number_format{};  ///< format of texts
  std::vector<SlotKeyRule> known_rules;         ///< no field: of the model's training data
  bool rules_known = false;                     ///< no field: whether there is a model
  // No fields: of a table in memory in place of texts.
  bool as_text = false;   ///< keys have 8 bytes, as those of texts have
  TextGrammar grammar{};  ///< of vocabularies
};
Schema<ParquetOptions> parquet_options_schema();

}  // namespace hctr
