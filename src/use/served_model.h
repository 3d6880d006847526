// A saved model that is loaded, and the sessions in which calls score with it.
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
#include "use/saved_model.h"
#include "use/score_session.h"

namespace hctr {

/// Any thread may call score(), any number of them at a time.
class ServedModel {
 public:
  /// Errors: those of Model.
  explicit ServedModel(const LoadOptions&);

  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }
  const SavedModel& saved() const { return saved_; }
  bool on_gpu() const { return device_.is_cuda(); }
  std::string device() const { return describe(device_); }

  /// As Model::score().
  void score(int64_t samples, std::span<const InputView>, std::span<const OutputView>);

 private:
  class Lease;
  ServedModel(const LoadOptions&, const Log&);
  /// A session for a batch: one that is idle, or a new one.
  std::unique_ptr<ScoreSession> take(int64_t samples);
  void give_back(std::unique_ptr<ScoreSession>) noexcept;
  /// Finds what the caller gave by name. Errors: Error(usage).
  ScoreRequest request_of(std::span<const InputView>, std::span<const OutputView>) const;

  Config config_;
  SavedModel saved_;
  Device device_;
  int threads_;
  int64_t most_samples_;
  SelfComm comm_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Replica> replica_;
  std::vector<ModelTensor> inputs_, outputs_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<std::unique_ptr<ScoreSession>>> idle_;  // by capacity
  bool copies_written_ = false;
};

}  // namespace hctr
