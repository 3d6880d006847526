#include "score/prediction_export.h"

#include "core/base/expect.h"

namespace hctr {

PredictionExport::PredictionExport(const std::string& prefix, int64_t iteration,
                                   const std::vector<std::string>& losses) {
  create_parent_folder(prefix);
  for (size_t t = 0; t < losses.size(); ++t) {
    const std::string of_loss = t == 0 ? prefix : cat(prefix, "_", losses[t]);
    predictions_.push_back(&set_.add(cat(of_loss, "_prediction_", iteration)));
    labels_.push_back(&set_.add(cat(of_loss, "_label_", iteration)));
  }
}

void PredictionExport::add(const ScoredRows& rows) {
  std::string text;
  const auto write = [&](AtomicFile& file, const std::vector<float>& values, auto append) {
    text.clear();
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0 || !empty_) text += ' ';
      append(values[i], text);
    }
    file.write(text);
  };
  if (rows.rows == 0) return;
  for (size_t t = 0; t < predictions_.size(); ++t) {
    write(*predictions_[t], rows.predictions[t], append_score);
    write(*labels_[t], rows.labels[t], append_label);
  }
  empty_ = false;
}

void PredictionExport::finish() { set_.commit(); }

}  // namespace hctr
