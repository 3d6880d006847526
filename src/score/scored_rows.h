// Scores, labels and passed-on cells of the rows of all ranks, brought together for files.
#pragma once

#include <cstdint>
#include <vector>

#include "core/comm/communicator.h"
#include "score/scorer.h"

namespace hctr {

/// Consecutive rows in the order of the set.
struct ScoredRows {
  int64_t rows = 0;
  std::vector<std::vector<float>> predictions, labels;  ///< [losses][rows * columns]
  PassedOn passed_on;                                   ///< cells of all ranks
};

/// Collective. The rows of the batch on rank 0; none on the others.
ScoredRows rows_on_rank_0(Communicator&, ScoredBatch&);

/// A number with as many digits as a float needs to be read back as it was: nine.
void append_score(float, std::string& text);
/// With as few digits as that takes: 0, 1, 0.25.
void append_label(float, std::string& text);

}  // namespace hctr
