// Making a data set with a planted truth for a Data section.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/log.h"
#include "data/data_section.h"
#include "metrics/best_possible.h"
#include "prepare/generate/sample_encoder.h"

namespace hctr {

struct GenerateOptions {
  int64_t samples = 1000000, eval_samples = 100000;
  int64_t files = 8, eval_files = 2;
  uint64_t seed = 1;
  double alpha = 1.1;         ///< exponent of the power law of keys; 0: uniform
  double interactions = 0.1;  ///< share of the truth's variance that lies in products of slots' factors
  double signal = 1;          ///< strength of the truth; 1 gives a best AUC of about 0.80
  double related =
      0;  ///< correlation of every further label's hidden weights with the first's; 0: labels have nothing in common
  double positive_share = 0.25;
  std::vector<int64_t>
      vocabulary;  ///< distinct keys: one number for all slots, or one per slot; empty: slot_size_array, or 10000
  std::vector<int64_t>
      nnz;  ///< keys of a slot in every sample: one number, or one per slot; empty: drawn from 1 to the most
  int64_t max_nnz = 0;       ///< most keys of a slot; 0: as the section allows, spread evenly over the slots
  bool hashed_keys = false;  ///< keys scattered over 63 bits instead of counting up from the slot's offset
  int key_bytes = 8;
  WrittenAs written_as = WrittenAs::norm;
  fs::path folder;     ///< where to put train/gen_<n>.data and val/gen_<n>.data; empty: the folder of the lists
  bool force = false;  ///< overwrite other data
  int threads = 1;
};

/// The parameters that decide the content, as JSON. It is stored with the data, to identify it.
Json made_with(const DataSection&, const GenerateOptions&);

/// Writes the training and, unless eval_source is empty, the evaluation set, their lists, and the truth next to the
/// latter. The same for any number of threads. Does nothing when data of the same parameters is there already. Errors:
/// Error(usage) for options that do not fit the section, or when other data is there without `force`; Error(io).
/// Returns what a model knowing the truth reaches on the evaluation set; empty without one.
std::optional<BestPossible> generate(const DataSection&, const GenerateOptions&, const Log&);

}  // namespace hctr
