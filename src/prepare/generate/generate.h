// Generates a data set for a Data section from a hidden ground-truth model.
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
  double alpha = 1.1;         ///< exponent of the keys' power law; 0: uniform
  double interactions = 0.1;  ///< fraction of the true scores' variance that comes from products of two slots' factors
  double signal = 1;          ///< strength of the ground truth; 1 gives a best AUC of about 0.80
  double related = 0;         ///< correlation of each label's hidden weights with those of label 0; 0: independent
  double positive_share = 0.25;
  /// number of distinct keys: one number for all slots, or one per slot; empty: slot_size_array, or 10000
  std::vector<int64_t> vocabulary;
  std::vector<int64_t> nnz;  ///< keys per sample and slot: one number, or one per slot; empty: random, 1 to max_nnz
  int64_t max_nnz = 0;  ///< maximum number of keys of a slot; 0: the section's limit, divided equally among the slots
  bool hashed_keys = false;  ///< true: keys are scattered over 63 bits; false: keys are numbered from the slot's offset
  int key_bytes = 8;
  WrittenAs written_as = WrittenAs::norm;
  fs::path folder;     ///< folder to contain train/gen_<n>.data and val/gen_<n>.data; empty: the folders of the lists
  bool force = false;  ///< whether to overwrite existing data
  fs::path config{};   ///< file that contains the section; never overwritten
  Environment environment{};  ///< environment variables that the config and its includes may use
  int threads = 1;
  ShowProgress progress{};  ///< shows the progress of each set; null: not shown
};

/// All parameters that determine the content, as JSON. The JSON is stored with the data, so that a later run recognizes
/// the data.
Json made_with(const DataSection&, const GenerateOptions&);

/// Writes the training set, the evaluation set unless eval_source is empty, their lists, and the true scores next to
/// the evaluation list. The result does not depend on the number of threads. Does nothing if data with the same
/// parameters exist. Returns the metrics of a model that predicts the true scores of the evaluation set. No model can
/// reach better metrics. Returns none without an evaluation set. Errors: Error(usage) if the options do not fit the
/// section, or if other data exist and `force` is false; Error(io).
std::optional<BestPossible> generate(const DataSection&, const GenerateOptions&, const Log&);

}  // namespace hctr
