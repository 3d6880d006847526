// Writes the predictions and labels of each evaluation (export_predictions_prefix) to files in HugeCTR 3.0's format.
//
//   <prefix>_prediction_<iteration>, <prefix>_label_<iteration>                  first loss
//   <prefix>_<top>_prediction_<iteration>, <prefix>_<top>_label_<iteration>      each further loss
//
// Text files: the values of all samples in evaluation order, separated by single blanks, without a line end.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "score/scored_rows.h"

namespace hctr {

/// The export of one evaluation, on rank 0. Errors of all members: Error(io).
class PredictionExport {
 public:
  PredictionExport(const std::string& prefix, int64_t iteration, const std::vector<std::string>& losses);
  void add(const ScoredRows&);
  /// Completes the files and gives them their final names.
  void finish();

 private:
  FileSet set_;
  std::vector<AtomicFile*> predictions_, labels_;  // [losses] output files
  bool empty_ = true;
};

}  // namespace hctr
