#include "metrics/best_possible.h"

#include <cmath>
#include <memory>

#include "core/base/expect.h"
#include "hctr/formats.h"
#include "metrics/auc.h"

namespace hctr {

namespace {

/// The scores of label `label`. Both spans have shape [samples, labels].
BestPossible best_of_label(std::span<const double> probability, std::span<const bool> positive, size_t label,
                           size_t labels) {
  BestPossible best;
  const size_t samples = probability.size() / labels;
  std::vector<double> scores(samples);
  const auto outcomes = std::make_unique<bool[]>(samples);
  double loss = 0, expected = 0, positives = 0;
  for (size_t i = 0; i < samples; ++i) {
    const double p = scores[i] = probability[i * labels + label];
    outcomes[i] = positive[i * labels + label];
    loss -= outcomes[i] ? std::log(p) : std::log1p(-p);
    expected += p;
    positives += outcomes[i];
  }
  best.samples = static_cast<int64_t>(samples);
  best.auc = area_under_roc(scores, {outcomes.get(), samples});
  if (std::isnan(best.auc))
    throw Error(
        Kind::data,
        cat("the ", best.samples,
            " evaluation samples are all of one class: generate more samples, or change the share of positives"));
  const auto n = static_cast<double>(best.samples);
  best.average_loss = loss / n;
  best.calibration = expected / positives;
  best.positive_share = positives / n;
  return best;
}

Json scores_of(const BestPossible& best) {
  Json scores;
  scores.set("AUC", best.auc).set("AverageLoss", best.average_loss).set("calibration", best.calibration);
  return scores;
}

double number(const Json* in, const char* key, const fs::path& path) {
  const Json* value = in ? in->find(key) : nullptr;
  if (!value || !value->is_number())
    throw Error(Kind::data,
                cat("'", path.string(), "': expected a number \"", key, "\"; was the file edited by hand?"));
  return value->number();
}

/// Parses `scores`, which scores_of() wrote. `share`: the object with "positive_share".
BestPossible read_scores(const Json* scores, const Json* share, const fs::path& path) {
  return {.auc = number(scores, "AUC", path),
          .average_loss = number(scores, "AverageLoss", path),
          .calibration = number(scores, "calibration", path),
          .positive_share = number(share, "positive_share", path)};
}

}  // namespace

BestPossible best_possible(std::span<const double> probability, std::span<const bool> positive, int64_t labels) {
  const auto count = static_cast<size_t>(labels);
  if (count == 1) return best_of_label(probability, positive, 0, 1);
  BestPossible mean;
  for (size_t label = 0; label < count; ++label) {
    const BestPossible& one = mean.labels.emplace_back(best_of_label(probability, positive, label, count));
    mean.samples = one.samples;
    mean.auc += one.auc / static_cast<double>(count);
    mean.average_loss += one.average_loss / static_cast<double>(count);
    mean.calibration += one.calibration / static_cast<double>(count);
    mean.positive_share += one.positive_share / static_cast<double>(count);
  }
  return mean;
}

fs::path truth_path(const fs::path& eval_source) { return eval_source.string() + ".truth.json"; }

void write_best_possible(const fs::path& eval_source, const BestPossible& best, const Json& made_with) {
  Json truth;
  truth.set("schema", formats::kTruthSchema)
      .set("best", scores_of(best))
      .set("samples", best.samples)
      .set("positive_share", best.positive_share);
  if (!best.labels.empty()) {
    Json labels;
    for (const BestPossible& one : best.labels) labels.add(scores_of(one).set("positive_share", one.positive_share));
    truth.set("labels", std::move(labels));
  }
  truth.set("made_with", made_with);
  write_text(truth_path(eval_source), truth.text(2) + "\n");
}

std::optional<BestPossible> read_best_possible(const fs::path& eval_source) {
  const fs::path path = truth_path(eval_source);
  if (!fs::exists(path)) return std::nullopt;
  const Json truth = Json::read_file(path);
  if (const auto schema = static_cast<int64_t>(number(&truth, "schema", path)); schema != formats::kTruthSchema)
    throw Error(Kind::data,
                cat("'", path.string(), "' has schema ", schema, "; this program knows ", formats::kTruthSchema));
  BestPossible best = read_scores(truth.find("best"), &truth, path);
  best.samples = static_cast<int64_t>(number(&truth, "samples", path));
  if (const Json* labels = truth.find("labels"); labels && labels->array())
    for (const Json& label : *labels->array()) {
      best.labels.push_back(read_scores(&label, &label, path));
      best.labels.back().samples = best.samples;
    }
  return best;
}

}  // namespace hctr
