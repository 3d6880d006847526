// Gathers scores, labels and kept cells of all ranks' rows on rank 0, for output files.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/communicator.h"
#include "score/scorer.h"

namespace hctr {

/// Consecutive rows, in the order of the set of samples.
struct ScoredRows {
  int64_t rows = 0;
  std::vector<std::vector<float>> predictions, labels;  ///< [losses][rows * columns]
  PassedOn passed_on;                                   ///< kept cells of all ranks
};

/// Gathers the rows of a batch on rank 0; returns no rows on other ranks. Collective.
ScoredRows rows_on_rank_0(Communicator&, ScoredBatch&);

/// Appends a number with nine significant digits, which reproduce any float exactly.
void append_score(float, std::string& text);
/// Appends a number with the fewest digits that reproduce it exactly: 0, 1, 0.25.
void append_label(float, std::string& text);

}  // namespace hctr
