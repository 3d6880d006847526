// One loaded and warmed-up version of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "infer/served_model.h"
#include "serve/batch_scheduler.h"
#include "serve/model_config.h"
#include "serve/model_outputs.h"
#include "serve/model_statistics.h"
#include "serve/request_samples.h"
#include "serve/serve_options.h"
#include "serve/unseen_keys.h"

namespace hctr::serve {

class ModelVersion {
 public:
  /// Loads the model at `path` and scores once in each size of small batches, so that the first request takes no longer
  /// than later requests. Errors: those of Model; Error(config). `tables`: the model's tables in a store; null: the
  /// tables are those of the model's files.
  ModelVersion(ModelConfig, const std::string& path, const ServeOptions&,
               std::shared_ptr<const StoreView> tables = nullptr);

  const ModelConfig& config() const { return config_; }
  const ServedModel& model() const { return model_; }
  int64_t iteration() const { return model_.saved().iteration; }
  int instances() const { return instances_; }
  /// Whether requests may share a batch. False for a model with PReLU_Dice, which normalizes with the samples of the
  /// batch: a request would change the scores of others.
  bool joins_requests() const { return joins_requests_; }
  const ModelStatistics& statistics() const { return statistics_; }
  const RequestSamples& reader() const { return reader_; }
  const ModelOutputs& outputs() const { return outputs_; }
  std::vector<UnseenKeys::Slot> unseen_keys() { return unseen_.count(); }
  int64_t waiting() const { return scheduler_->waiting(); }
  /// Thread-safe. `request.version` must be this version's number.
  void submit(InferRequest, Answer);
  /// Scores samples without the scheduler.
  BatchResults score_offline(const SampleArrays&);

 private:
  void warm_up();

  ModelConfig config_;
  bool reads_store_;  // look-ups in a store may block
  ServedModel model_;
  RequestSamples reader_;
  ModelOutputs outputs_;
  ModelStatistics statistics_;
  UnseenKeys unseen_;
  int instances_;
  bool joins_requests_;
  std::unique_ptr<BatchScheduler> scheduler_;
};

}  // namespace hctr::serve
