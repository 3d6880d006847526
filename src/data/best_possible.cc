#include "data/best_possible.h"

#include <cmath>

#include "base/auc.h"
#include "base/error.h"
#include "hctr/formats.h"

namespace hctr {

BestPossible best_possible(std::span<const double> probability, std::span<const bool> positive) {
  BestPossible best;
  best.samples = static_cast<int64_t>(probability.size());
  best.auc = area_under_roc(probability, positive);
  if (std::isnan(best.auc))
    throw Error(Kind::data, cat("the ", best.samples, " evaluation samples are all of one class; more samples, or another share of positives, are needed"));
  double loss = 0, expected = 0, positives = 0;
  for (size_t i = 0; i < probability.size(); ++i) {
    const double p = probability[i];
    loss -= positive[i] ? std::log(p) : std::log1p(-p);
    expected += p;
    positives += positive[i];
  }
  const auto n = static_cast<double>(best.samples);
  best.average_loss = loss / n;
  best.calibration = expected / positives;
  best.positive_share = positives / n;
  return best;
}

double BestPossible::normalized_entropy() const {
  return -average_loss / (positive_share * std::log(positive_share) + (1 - positive_share) * std::log1p(-positive_share));
}

fs::path truth_path(const fs::path& eval_source) { return eval_source.string() + ".truth.json"; }

void write_best_possible(const fs::path& eval_source, const BestPossible& best, const Json& made_with) {
  Json scores;
  scores.set("AUC", best.auc).set("AverageLoss", best.average_loss).set("calibration", best.calibration);
  Json truth;
  truth.set("schema", formats::kTruthSchema).set("best", std::move(scores)).set("samples", best.samples);
  truth.set("positive_share", best.positive_share).set("made_with", made_with);
  write_text(truth_path(eval_source), truth.text(2) + "\n");
}

std::optional<BestPossible> read_best_possible(const fs::path& eval_source) {
  const fs::path path = truth_path(eval_source);
  if (!fs::exists(path)) return std::nullopt;
  const Json truth = Json::read_file(path);
  const auto number = [&](const Json* in, const char* key) {
    const Json* value = in ? in->find(key) : nullptr;
    if (!value || !value->is_number())
      throw Error(Kind::data, cat("'", path.string(), "': expected a number \"", key, "\"; was the file edited by hand?"));
    return value->number();
  };
  if (const auto schema = static_cast<int64_t>(number(&truth, "schema")); schema != formats::kTruthSchema)
    throw Error(Kind::data, cat("'", path.string(), "' has schema ", schema, "; this program knows ", formats::kTruthSchema));
  const Json* best = truth.find("best");
  return BestPossible{.auc = number(best, "AUC"), .average_loss = number(best, "AverageLoss"),
                      .calibration = number(best, "calibration"), .positive_share = number(&truth, "positive_share"),
                      .samples = static_cast<int64_t>(number(&truth, "samples"))};
}

}  // namespace hctr
