// Checks that the values of "positive" and the vocabularies of a config occur in the first rows of a data set.
#pragma once

#include "core/base/log.h"
#include "formats/data/source.h"

namespace hctr {

/// Searches the first rows for each label's "positive" until all labels are found. Logs a note for each word of a
/// "positive" list that does not occur. Warns if a label is never 1 or always 1. Errors: Error(data) instead of the
/// warning if the set was read completely and has at least kUnmatchedToFail rows, unless `allow_unmatched`.
void check_positives(const DataSection&, const Source&, KeyWidth, bool allow_unmatched, const Log&);

/// Searches the first rows until every slot with a vocabulary has a value from its vocabulary. Warns about a slot
/// without such a value. Errors: Error(data) instead of the warning if the slot has at least kUnmatchedToFail values,
/// unless `allow_unmatched`.
void check_vocabularies(const DataSection&, const Source&, KeyWidth, bool allow_unmatched, const Log&);

}  // namespace hctr
