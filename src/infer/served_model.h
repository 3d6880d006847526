// A loaded model, and the sessions in which calls score with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/comm/self_comm.h"
#include "hctr/model.h"
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

 private:
  class Lease;
  /// A session for a batch: an idle or a new one.
  std::unique_ptr<ScoreSession> take(int64_t samples);
  void give_back(std::unique_ptr<ScoreSession>) noexcept;
  /// Matches the caller's arrays by name. Errors: Error(usage).
  ScoreRequest request_of(std::span<const InputView>, std::span<const OutputView>) const;

  int64_t most_samples_;
  SelfComm comm_;
  std::unique_ptr<LoadedModel> model_;
  std::vector<ModelTensor> inputs_, outputs_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<std::unique_ptr<ScoreSession>>> idle_;  // by capacity
  bool copies_written_ = false;
};

}  // namespace hctr
