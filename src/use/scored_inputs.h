// Samples in the input format of an exported graph, with this program's scores.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "export/model_arrays.h"
#include "use/model_use.h"

namespace hctr {

struct ScoredInputs {
  std::vector<StoredArray> arrays;  ///< named like the inputs and outputs of onnx_model()
  int64_t rows = 0;
  int64_t skipped_records = 0;
};

/// Scores the first `most` rows of the evaluation set, or all rows if it has fewer. One rank. Returns none if `stop`,
/// which may be null, became nonzero. `no_key`: the graph's no_key (no_key_of()). Errors: those of Scorer; Error(data)
/// for a row that contains no_key as a key.
std::optional<ScoredInputs> score_inputs(ModelOnRank&, int64_t most, int64_t no_key, const std::atomic<int>* stop);

}  // namespace hctr
