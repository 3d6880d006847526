// Checks evaluation data before scoring.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

/// Runs check_positives() on the evaluation data. Does not check vocabularies: KeyMatches counts values that they lack.
void check_evaluation_labels(const Config&, bool allow_unmatched, const Log&);

/// Logs a note if files are read for both training and evaluation.
void note_shared_files(const Config&, const Log&);

}  // namespace hctr
