// Whether the words and vocabularies of a config occur in the first rows of a set.
#pragma once

#include "core/base/log.h"
#include "formats/data/source.h"

namespace hctr {

/// Searches the first rows for each label's "positive", until all have been seen, and notes single words that do not
/// occur. A label that is never 1 is a warning. Errors: Error(data) if it is missing from kUnmatchedToFail rows or
/// more, which are the whole set, unless that is allowed.
void check_positives(const DataSection&, const Source&, KeyWidth, bool allow_unmatched, const Log&);

/// Searches the first rows for a value of each slot's vocabulary, until all slots have one. A slot without one is a
/// warning. Errors: Error(data) if it has kUnmatchedToFail values or more, unless that is allowed.
void check_vocabularies(const DataSection&, const Source&, KeyWidth, bool allow_unmatched, const Log&);

}  // namespace hctr
