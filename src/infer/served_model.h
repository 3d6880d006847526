// A loaded model, and the sessions in which calls score with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/comm/self_comm.h"
#include "hctr/model.h"
#include "hctr/use_model.h"
#include "infer/loaded_model.h"
#include "infer/score_session.h"

namespace hctr {

/// Any number of threads may call score() concurrently.
class ServedModel {
 public:
  /// Errors: those of Model.
  explicit ServedModel(const LoadOptions&);

  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }
  const Config& config() const { return model_->config(); }
  const SavedModel& saved() const { return model_->saved(); }
  bool on_gpu() const { return model_->device().is_cuda(); }
  std::string device() const { return describe(model_->device()); }

  /// Implements Model::score().
  void score(int64_t samples, std::span<const InputView>, std::span<const OutputView>);
  /// As Model::evaluate(): one thread after another.
  EvaluationSummary evaluate(const std::string& source, const std::atomic<int>* stop);

 private:
  class Lease;
  /// A session for a batch: one that is idle, or a new one.
  std::unique_ptr<ScoreSession> take(int64_t samples, bool inputs_on_device);
  void give_back(std::unique_ptr<ScoreSession>) noexcept;
  /// Errors: Error(usage) for memory of a GPU that is not the model's.
  void expect_reachable(int gpu, const std::string& what) const;
  /// Finds what the caller gave by name. Errors: Error(usage).
  ScoreRequest request_of(std::span<const InputView>, std::span<const OutputView>) const;

  int64_t most_samples_;
  Log log_;
  SelfComm comm_;
  std::unique_ptr<LoadedModel> model_;
  std::optional<StoreTables> tables_;  // nothing: the model has its own
  std::vector<ModelTensor> inputs_, outputs_;
  std::mutex evaluating_;
  std::mutex mutex_;  // guards what follows
  /// By capacity and whether inputs may lie on the device.
  std::map<std::pair<int64_t, bool>, std::vector<std::unique_ptr<ScoreSession>>> idle_;
  bool copies_written_ = false;
};

}  // namespace hctr
