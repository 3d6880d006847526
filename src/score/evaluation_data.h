// Checks of evaluation data before they are scored.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

/// check_positives() of the evaluation data. KeyMatches counts values that their vocabularies lack.
void check_evaluation_labels(const Config&, bool allow_unmatched, const Log&);

/// Notes files that are read for training and for evaluation.
void note_shared_files(const Config&, const Log&);

}  // namespace hctr
