// Scores evaluation samples for reports, and measures how much worse the scores become without a feature.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hctr/use_model.h"

namespace hctr {

/// The scores for one label column of a loss.
struct ScoredLabel {
  std::string name;                   ///< name of the loss; with several label columns, the column's index follows
  std::vector<float> scores, labels;  ///< by row; a label below -0.5 is missing
};

struct FeatureImportance {
  std::string feature;
  double auc = 0;           ///< AUC of the first label after the feature's values are permuted between samples
  double scores_moved = 0;  ///< mean absolute change of the scores
};

/// The most frequent keys of a table.
struct HottestKeys {
  struct One {
    std::string feature;  ///< the slot; empty if the key alone identifies a row
    int64_t key = 0, times = 0;
  };
  std::string table;
  bool in_training = false;  ///< true: counted in all training batches; false: in the scored samples
  int64_t times = 0;         ///< sum of the occurrences of all keys of the table
  std::vector<One> keys;     ///< the most frequent first
};

struct ScoredSample : ModelUse {
  int64_t rows = 0;
  std::vector<ScoredLabel> labels;
  double auc = 0;  ///< AUC of the first label
  std::vector<FeatureImportance> importance;
  std::vector<HottestKeys> hottest;  ///< hottest keys of each table
};

struct SampleOptions : ModelOptions {
  int64_t rows = 0;         ///< maximum number of samples to score
  bool importance = false;  ///< whether to also score each batch once per feature, with the feature's values permuted
};

/// Scores the first rows of the evaluation set on one rank. Errors: those of evaluate().
ScoredSample score_sample(const SampleOptions&);

}  // namespace hctr
