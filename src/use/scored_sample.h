// Scores and labels of some evaluation samples, and how much worse the scores become without a feature: for reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hctr/use_model.h"

namespace hctr {

/// The scores that belong to one label column of a loss.
struct ScoredLabel {
  std::string name;                   ///< name of the loss; if it has several columns, their index follows
  std::vector<float> scores, labels;  ///< of each row; a label below -0.5 is missing
};

struct FeatureImportance {
  std::string feature;
  double auc = 0;           ///< AUC of the first label when the feature has the values of other samples
  double scores_moved = 0;  ///< mean absolute change of the scores
};

/// The keys of a table that occur most.
struct HottestKeys {
  struct One {
    std::string feature;  ///< the slot; empty where rows belong to keys alone, whatever their slot
    int64_t key = 0, times = 0;
  };
  std::string table;
  bool in_training = false;  ///< counted in all training batches, else in the scored samples
  int64_t times = 0;         ///< occurrences of all keys
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
  int64_t rows = 0;         ///< the most to score
  bool importance = false;  ///< score each batch once more for each feature, with its values in a random order
};

/// Scores the first rows of the evaluation set on one rank. Errors: those of evaluate().
ScoredSample score_sample(const SampleOptions&);

}  // namespace hctr
