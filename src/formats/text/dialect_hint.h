// Guesses which unsupported dialect explains a record with too few or too many cells.
#pragma once

#include <string>
#include <string_view>

#include "formats/data/text_grammar.h"

namespace hctr {

/// A rejected record.
struct RefusedRecord {
  std::string_view text;  ///< the record, with or without its line end
  size_t expected = 0;    ///< expected number of cells; found: actual number
  size_t found = 0;
  bool header = false;  ///< the file's header has the expected number of cells
};

/// Returns "; " and the likely cause, such as backslash escapes, a comment line or row names of R. Empty if unknown.
std::string dialect_hint(const RefusedRecord&, const TextGrammar&);

/// The hint about backslash escapes.
const char* backslash_words();
/// Whether the record escapes quotes, delimiters or its line end by backslashes.
bool has_backslash_escapes(std::string_view record, const TextGrammar&);
/// Whether the record starts like a comment, with "#", "//", "%" or "--".
bool looks_like_comment(std::string_view record);

}  // namespace hctr
