#include "train/scores.h"

#include <cmath>
#include <limits>

#include "base/auc.h"

namespace hctr {

void Scores::clear() {
  for (auto& column : predictions_) column.clear();
  for (auto& column : labels_) column.clear();
}

void Scores::add(View<const float, 2> predictions, View<const float, 2> labels, int64_t rows) {
  for (size_t c = 0; c < predictions_.size(); ++c)
    for (int64_t r = 0; r < rows; ++r)
      if (const float label = labels.row(r)[c]; label >= -0.5f) {
        predictions_[c].push_back(predictions.row(r)[c]);
        labels_[c].push_back(label);
      }
}

double Scores::auc() const {
  double sum = 0;
  int defined = 0;
  for (size_t c = 0; c < predictions_.size(); ++c)
    if (const double area = area_under_roc(predictions_[c], labels_[c]); !std::isnan(area)) {
      sum += area;
      ++defined;
    }
  return defined > 0 ? sum / defined : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hctr
