// export_predictions_prefix: the predictions and labels of each evaluation, in files as HugeCTR 3.0 writes them.
//
//   <prefix>_prediction_<iteration>, <prefix>_label_<iteration>     of the only loss, or of the first
//   <prefix>_<top>_prediction_<iteration>, ..._label_...            of each other loss
//
// Texts: the numbers of all samples in the order of the evaluation, with single blanks between them and no line end.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "score/scored_rows.h"

namespace hctr {

/// One evaluation, on rank 0. Errors of all members: Error(io).
class PredictionExport {
 public:
  PredictionExport(const std::string& prefix, int64_t iteration, const std::vector<std::string>& losses);
  void add(const ScoredRows&);
  /// The files get their names.
  void finish();

 private:
  FileSet set_;
  std::vector<AtomicFile*> predictions_, labels_;  // files of each loss
  bool empty_ = true;
};

}  // namespace hctr
