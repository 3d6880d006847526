#include "infer/predict_source.h"

#include <limits>
#include <vector>

#include "infer/prediction_source.h"
#include "infer/sample_arrays.h"
#include "infer/small_table.h"

namespace hctr {
namespace {

/// Samples read and scored at a time: enough for efficient GEMMs, few enough for the caches.
constexpr int64_t kSamplesAtATime = 8192;

/// The model's config with another source of evaluation samples.
Config config_for(const Config& of_model, const std::string& source) {
  Config config = of_model;
  config.data.eval_source = source;
  config.data.eval_num_samples = 0;
  return config;
}

/// Passes scores to the callback, with NaN for skipped rows.
class RowsWithGaps {
 public:
  RowsWithGaps(const std::vector<ModelTensor>& outputs, const Model::ScoredRows& to) : outputs_(outputs), to_(to) {
    scored_.resize(outputs.size());
    with_gaps_.resize(outputs.size());
  }
  std::vector<OutputView> views(int64_t samples) { return views(scored_, samples); }
  /// Passes on the scores in views(). `bad`: for each skipped row, the number of samples before it.
  void pass_on(int64_t samples, const std::vector<int64_t>& bad) {
    skipped_ += static_cast<int64_t>(bad.size());
    if (bad.empty()) return to_(samples, views(scored_, samples));
    const int64_t all = samples + static_cast<int64_t>(bad.size());
    const std::vector<OutputView> to = views(with_gaps_, all);
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const int64_t columns = outputs_[o].shape[1];
      size_t gap = 0;
      for (int64_t row = 0, sample = 0; row < all; ++row) {
        const bool is_gap = gap < bad.size() && bad[gap] == sample;
        for (int64_t c = 0; c < columns; ++c)
          to[o].data[row * columns + c] =
              is_gap ? std::numeric_limits<float>::quiet_NaN() : scored_[o][static_cast<size_t>(sample * columns + c)];
        is_gap ? void(++gap) : void(++sample);
      }
    }
    to_(all, to);
  }
  int64_t skipped() const { return skipped_; }

 private:
  std::vector<OutputView> views(std::vector<std::vector<float>>& memory, int64_t rows) const {
    std::vector<OutputView> all;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      memory[o].resize(static_cast<size_t>(rows * outputs_[o].shape[1]));
      all.push_back({.name = outputs_[o].name, .data = memory[o].data()});
    }
    return all;
  }

  const std::vector<ModelTensor>& outputs_;
  const Model::ScoredRows& to_;
  std::vector<std::vector<float>> scored_, with_gaps_;  // [outputs]
  int64_t skipped_ = 0;
};

}  // namespace

void predict_source(ServedModel& model, const std::string& source, const Model::ScoredRows& rows) {
  RowsWithGaps gaps(model.outputs(), rows);
  const auto score = [&](const SampleArrays& samples) {
    model.score(samples.samples, samples.views(0), gaps.views(samples.samples));
  };
  if (const auto samples = parse_small_table(model.config().data, prediction_source(model.config(), source))) {
    score(*samples);
    return gaps.pass_on(samples->samples, {});
  }
  const Config config = config_for(model.config(), source);
  SampleBatches batches(config, prediction_source(config), kSamplesAtATime);
  for (;;) {
    SampleArrays samples = batches.none();
    const auto bad = batches.next(samples, kSamplesAtATime);
    if (!bad) break;
    score(samples);
    gaps.pass_on(samples.samples, *bad);
  }
  if (const int64_t behind = batches.skipped_records() - gaps.skipped(); behind > 0)
    gaps.pass_on(0, std::vector<int64_t>(static_cast<size_t>(behind)));
}

void encode_source(const Config& of_model, const std::string& source, bool partial, const Model::Encoded& visit) {
  Source samples_of = prediction_source(of_model, source);
  if (partial) samples_of.slots_optional.assign(samples_of.slots_optional.size(), true);
  if (const auto samples = parse_small_table(of_model.data, samples_of))
    return visit(samples->samples, samples->views(0));
  const Config config = config_for(of_model, source);
  SampleBatches batches(config, samples_of, kSamplesAtATime);
  for (;;) {
    SampleArrays samples = batches.none();
    if (!batches.next(samples, kSamplesAtATime)) break;
    visit(samples.samples, samples.views(0));
  }
}

}  // namespace hctr
