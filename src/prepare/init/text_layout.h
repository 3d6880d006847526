// Guesses the layout of a text of separated values from the first records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/data/text_grammar.h"

namespace hctr {

struct TextLayout {
  std::string delimiter;  ///< one character, or "::"
  TextGrammar grammar;    ///< the delimiter, the quote, and whether cells are trimmed
  bool header = false;
  std::vector<std::string> columns;  ///< names from the header, or "1", "2", ...; then the names in `added`
  std::vector<std::string> added{};  ///< partitions: columns that records do not contain

  /// The number of cells of each record.
  size_t cells() const { return columns.size() - added.size(); }
};

/// Guesses the layout from `start`, the first bytes of the content, which end with a complete record. `label` must be a
/// column. Errors: Error(data), without the file's name, if the content is not a text of separated values; Error(usage)
/// listing the columns if `label` is not a column.
TextLayout guess_layout(std::string_view start, const std::string& label);

/// Errors: Error(usage) listing the columns and the nearest name, if the label is not a column.
void expect_label(const std::string& label, const std::vector<std::string>& columns, bool numbered);

}  // namespace hctr
