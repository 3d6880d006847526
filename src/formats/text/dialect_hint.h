// Guesses why a record has too few or too many cells: dialects that are not supported.
#pragma once

#include <string>
#include <string_view>

#include "formats/data/text_grammar.h"

namespace hctr {

/// A record that is refused.
struct RefusedRecord {
  std::string_view text;  ///< its bytes, with or without its line end
  size_t expected = 0;    ///< cells
  size_t found = 0;
  bool header = false;  ///< whether a header has the expected number
};

/// The likely cause, after "; ", such as escapes with backslashes, a comment line or row names of R. Empty: none is
/// known.
std::string dialect_hint(const RefusedRecord&, const TextGrammar&);

/// The hint for such escapes.
const char* backslash_words();
/// Whether the record escapes quotes, delimiters or its line end with backslashes.
bool has_backslash_escapes(std::string_view record, const TextGrammar&);
/// Whether the record begins as comments do: "#", "//", "%" or "--".
bool looks_like_comment(std::string_view record);

}  // namespace hctr
