// Guesses the layout of a text of separated values from its first bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/data/text_grammar.h"

namespace hctr {

struct TextLayout {
  std::string delimiter;  ///< one character, or "::"
  TextGrammar grammar;    ///< the same, with the quote and whether cells are trimmed
  bool header = false;
  std::vector<std::string> columns;  ///< names in the header, else "1", "2", ...; then the added ones
  std::vector<std::string> added{};  ///< partitions, which are columns that records do not contain

  /// Cells of each record.
  size_t cells() const { return columns.size() - added.size(); }
};

/// `start`: the first bytes of the content, which end with a record. `label`: a right guess has a column of that name.
/// Errors: Error(data) without the file's name, for what is not such a text; Error(usage) for a label that is not a
/// column, naming the columns.
TextLayout guess_layout(std::string_view start, const std::string& label);

/// Errors: Error(usage), naming the columns and the nearest.
void expect_label(const std::string& label, const std::vector<std::string>& columns, bool numbered);

}  // namespace hctr
