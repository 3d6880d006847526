// A loaded model, and a pool of sessions that score with it.
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
#include "hctr/store_cache.h"
#include "hctr/use_model.h"
#include "infer/loaded_model.h"
#include "infer/score_session.h"
#include "infer/vector_look_up.h"

namespace hctr {

/// score() is thread-safe.
class ServedModel {
 public:
  /// `caches_on_cpu`: if the model is on a CPU, it reads rows of a store through the reference implementation of the
  /// GPU cache. Errors: those of Model.
  explicit ServedModel(const LoadOptions&, bool caches_on_cpu = false, const SessionRules& rules = {});

  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }
  const Config& config() const { return model_->config(); }
  const SavedModel& saved() const { return model_->saved(); }
  bool on_gpu() const { return model_->device().is_cuda(); }
  std::string device() const { return describe(model_->device()); }

  /// The tensors that score() can return in addition to outputs().
  const std::vector<InternalTensor>& internals() const { return internals_; }

  /// Implements Model::score(). `internals`: for each internal tensor, host memory for its values as f32 [samples,
  /// ...]. A null pointer: the tensor is not wanted. An empty span: no internal tensor is wanted.
  void score(int64_t samples, std::span<const InputView>, std::span<const OutputView>,
             std::span<float* const> internals = {});
  /// Looks up keys of each embedding, without pooling. Returns f32 [keys, dim] for each embedding: the vector of each
  /// key, and zeros for keys without a row. Thread-safe. Errors: those of the store; Error(usage) if a table identifies
  /// rows by slot and key, and a key does not determine its slot.
  std::vector<std::vector<float>> look_up(std::span<const std::vector<int64_t>> keys);
  /// Implements Model::evaluate(); concurrent calls run one after another.
  EvaluationSummary evaluate(const std::string& source, const std::atomic<int>* stop);
  /// The statistics of the GPU cache; none if the model reads rows without a GPU cache.
  std::optional<StoreCacheStatistics> cache_statistics() const;
  /// For each key of an embedding: whether the embedding's table has a row for the key. Thread-safe. Errors: those of
  /// the store.
  std::vector<uint8_t> have_rows(size_t embedding, std::span<const SlotKey> keys);

 private:
  class Lease;
  /// The number of samples in each piece of a batch of `samples` samples. Returns `samples` if the rules do not divide
  /// the batch.
  int64_t piece_of(int64_t samples) const;
  /// Scores pieces of a batch with two sessions: one packs and uploads a piece while the other one computes.
  void score_pieces(int64_t samples, int64_t piece, const ScoreRequest&);
  /// Returns an idle session, or creates one.
  std::unique_ptr<ScoreSession> take(int64_t samples, bool inputs_on_device);
  void give_back(std::unique_ptr<ScoreSession>) noexcept;
  /// Checks the device of a caller's memory. Errors: Error(usage) for a GPU that is not the model's GPU.
  void expect_reachable(int gpu, const std::string& what) const;
  /// Matches the caller's inputs and outputs by name. Errors: Error(usage).
  ScoreRequest request_of(std::span<const InputView>, std::span<const OutputView>) const;
  /// Looks up keys of one embedding, with an idle or a new VectorLookUp.
  std::vector<float> look_up(size_t embedding, std::span<const int64_t> keys, const StoreReading*);

  int64_t most_samples_;
  SessionRules rules_;
  Log log_;
  SelfComm comm_;
  std::unique_ptr<LoadedModel> model_;
  ops::PackedWeights packed_;          // written by the first session
  std::optional<StoreTables> tables_;  // none: the model has its own tables
  std::vector<ModelTensor> inputs_, outputs_;
  std::vector<InternalTensor> internals_;
  std::mutex evaluating_;
  std::mutex mutex_;  // guards the members below
  /// Idle sessions by capacity, and by whether inputs may be in device memory.
  std::map<std::pair<int64_t, bool>, std::vector<std::unique_ptr<ScoreSession>>> idle_;
  bool copies_written_ = false;
  std::map<size_t, std::vector<std::unique_ptr<VectorLookUp>>> idle_look_ups_;  // idle look-ups of each embedding
};

}  // namespace hctr
