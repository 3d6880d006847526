// Generates a data set with a planted truth for a Data section.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/base/log.h"
#include "formats/data/data_section.h"
#include "metrics/best_possible.h"
#include "prepare/generate/sample_encoder.h"

namespace hctr {

struct GenerateOptions {
  int64_t samples = 1000000, eval_samples = 100000;
  int64_t files = 8, eval_files = 2;
  uint64_t seed = 1;
  double alpha = 1.1;         ///< exponent of the power law of keys; 0: uniform
  double interactions = 0.1;  ///< fraction of the truth's variance from products of slot factors
  double signal = 1;          ///< strength of the truth; 1 gives a best AUC of about 0.80
  double related = 0;  ///< correlation of the hidden weights of every other label with those of label 0; 0: independent
  double positive_share = 0.25;
  std::vector<int64_t>
      vocabulary;  ///< number of distinct keys, one for all slots or one per slot; empty: slot_size_array, or 10000
  std::vector<int64_t>
      nnz;  ///< keys per sample of a slot, one for all slots or one per slot; empty: drawn from 1 to max_nnz
  int64_t max_nnz = 0;  ///< largest number of keys of a slot; 0: the section's limit, divided evenly among the slots
  bool hashed_keys = false;  ///< scatter keys over 63 bits instead of numbering them from the slot's offset
  int key_bytes = 8;
  WrittenAs written_as = WrittenAs::norm;
  fs::path folder;     ///< output folder for train/gen_<n>.data and val/gen_<n>.data; empty: the folder of the lists
  bool force = false;  ///< overwrite existing data
  fs::path config{};   ///< the file that the section was read from, which is not overwritten
  Environment environment{};  ///< environment that the config's included files may use
  int threads = 1;
  ShowProgress progress{};  ///< shows each written set; null: not shown
};

/// Returns the parameters that determine the content, as JSON. It is stored with the data to identify it.
Json made_with(const DataSection&, const GenerateOptions&);

/// Writes the training set, the evaluation set unless eval_source is empty, their lists, and the truth next to the
/// evaluation list. The result does not depend on the number of threads. Does nothing when data with the same
/// parameters exists. Returns the best possible metrics on the evaluation set, those of a model that knows the truth;
/// empty without an evaluation set. Errors: Error(usage) for options that do not fit the section, or when other data
/// exists without `force`; Error(io).
std::optional<BestPossible> generate(const DataSection&, const GenerateOptions&, const Log&);

}  // namespace hctr
