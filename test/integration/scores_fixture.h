// Fixture for scores of a trained model, computed by the library and by the program.
#pragma once

#include <sstream>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "hctr/model.h"
#include "hctr/use_model.h"
#include "infer/load_config.h"
#include "infer/sample_arrays.h"
#include "ranks_fixture.h"

namespace hctr::test {

class ScoresTest : public RanksTestInItsFolder {
 protected:
  LoadOptions at(const std::string& model, int threads = 1) const {
    return {.model = model,
            .device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda,
            .threads = threads,
            .most_samples = 512};
  }

  static SampleArrays samples_of(const std::string& config_file) {
    const Config config = load_config(config_file, false, Log::silent());
    return read_sample_arrays(config, evaluation_source(config.data), 10000);
  }

  /// Scores samples [first, first + count).
  template <class ModelOrServedModel>
  static std::vector<float> score(ModelOrServedModel&& model, const SampleArrays& samples, int64_t first,
                                  int64_t count) {
    std::vector<float> scores(static_cast<size_t>(count));
    const OutputView output{.name = "loss", .data = scores.data()};
    model.score(count, samples.views(first), {&output, 1});
    return scores;
  }
  /// Scores all samples, in batches that cycle through `sizes`.
  template <class ModelOrServedModel>
  static std::vector<float> score_in(ModelOrServedModel&& model, const SampleArrays& samples,
                                     const std::vector<int64_t>& sizes) {
    std::vector<float> all;
    for (size_t i = 0; static_cast<int64_t>(all.size()) < samples.samples; ++i) {
      const auto first = static_cast<int64_t>(all.size());
      const std::vector<float> part =
          score(model, samples, first, std::min(sizes[i % sizes.size()], samples.samples - first));
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  /// Returns the scores that --predict writes.
  std::vector<float> predicted(const std::string& model) const {
    PredictOptions options;
    options.model = model;
    options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
    options.out = "scores.tsv";
    predict(options);
    std::istringstream lines(read_file("scores.tsv"));
    std::vector<float> scores;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) scores.push_back(std::strtof(line.c_str() + line.rfind('\t'), nullptr));
    return scores;
  }
};

}  // namespace hctr::test
