// A session: the memory in which one call scores a batch, with inputs, activations and results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/program.h"
#include "hctr/model.h"
#include "infer/cached_rows.h"
#include "infer/loaded_model.h"
#include "infer/session_rules.h"
#include "infer/store_tables.h"
#include "net/model/replica.h"
#include "ops/gemm/packed_weights.h"
#include "score/batch_ring.h"
#include "score/shared_forward.h"

namespace hctr {

/// Rows [first, first + count) of the caller's arrays. Inputs are in the model's order: the dense input, then the
/// inputs of keys. An output is null if the caller does not want its scores.
struct ScoreRequest {
  int64_t first = 0, count = 0;
  const InputView* dense = nullptr;
  std::vector<const InputView*> keys;
  std::vector<const OutputView*> outputs;
  /// [internal tensor] contiguous f32 memory for all rows of the caller's arrays; null: not wanted. Empty: none wanted.
  std::span<float* const> internals{};
  /// reads the tables in a store; null: the model has its own tables, or reads rows through the cache of a store
  const StoreReading* tables = nullptr;
};

/// A tensor inside the model that score() can return in addition to the scores.
struct InternalTensor {
  enum class Kind { logits, vectors };
  Kind kind;
  size_t index;                ///< index of the loss or embedding
  std::vector<int64_t> shape;  ///< logits: [-1, columns]; vectors of an embedding: [-1, columns, dim]

  /// Elements of a sample.
  int64_t row_elements() const;
};

struct SessionSetup {
  int64_t samples;        ///< maximum number of samples of a batch
  bool inputs_on_device;  ///< whether inputs may be in device memory
  /// Whether another session has written the transposed and packed copies of weights; if false, this session writes
  /// them.
  bool copies_written;
};

/// Shares weights and tables with other sessions. Used by one thread at a time.
class ScoreSession {
 public:
  /// The model must outlive the session. `tables`: the store of a model without tables of its own; null otherwise.
  ScoreSession(LoadedModel&, const StoreTables* tables, const SessionSetup&, ops::PackedWeights& packed,
               const SessionRules& rules = {});
  ScoreSession(const ScoreSession&) = delete;
  ScoreSession& operator=(const ScoreSession&) = delete;

  int64_t capacity() const { return ring_.samples(); }
  bool inputs_on_device() const { return inputs_on_device_; }
  void score(const ScoreRequest&);
  // score() consists of begin() and finish(). The arrays and the request must not change between the two calls.
  /// Copies the inputs, or queues copies of them, and queues the forward pass.
  void begin(const ScoreRequest&);
  /// Waits for the scores, and writes them to the caller's memory.
  void finish(const ScoreRequest&);
  /// Waits for queued work, after an error between begin() and finish().
  void abandon() const noexcept;
  /// The logits of each loss, then the vectors of each embedding.
  std::vector<InternalTensor> internals() const;

 private:
  /// Rows in the caller's memory.
  struct RowsOfCaller {
    const std::byte* data;
    int64_t rows;
    size_t row_bytes, stride_bytes;
    bool on_device;
  };
  /// Makes the session's stream wait for the work that callers have queued on their streams.
  void wait_for_callers(const ScoreRequest&);
  /// Copies the inputs to the device.
  void bring(const ScoreRequest&);
  void bring_dense(const ScoreRequest&);
  void bring_ones(const ScoreRequest&, size_t input);
  /// Copies rows to byte `at` of a batch in host memory; if sends_parts_, also to the device.
  void bring_rows(const RowsOfCaller&, size_t at);
  void compute(Recording&);
  void wait_for_scores(const ScoreRequest&) const;
  std::unique_ptr<TableReader> reader_of(const StoreTables&, size_t embedding, int64_t key_capacity);
  void deliver(const ScoreRequest&) const;
  /// Queues copies of results to outputs in device memory.
  void send_results(const ScoreRequest&) const;
  /// Queues copies of the wanted internal tensors to the host.
  void fetch_internals(const ScoreRequest&);
  /// Converts the wanted internal tensors to f32 in the caller's memory.
  void deliver_internals(const ScoreRequest&) const;

  const Config& config_;
  SessionRules rules_;
  Runtime runtime_;
  BatchRing ring_;
  const StoreReading* reading_ = nullptr;  // the StoreReading of the current batch
  std::optional<CachedRows> cached_rows_;  // for a model that reads rows through the cache of a store
  SharedForward forward_;
  bool inputs_on_device_;
  // uploads parts as soon as they are ready: for a large batch, and if inputs may already be on the device
  bool sends_parts_;
  bool copies_by_kernel_;  // a kernel copies the batch to the device, and the scores to the host
  BatchTensors batch_;
  Network::Binding binding_;
  struct Result {
    TensorSpec spec;
    size_t offset;
  };
  std::vector<Result> results_;  // one per loss
  std::optional<HostBuffer> host_results_;
  uint32_t* done_ = nullptr;  // the word after the results; 1 when the kernel has copied the results
  std::vector<Tensor> internals_;
  std::vector<std::optional<HostBuffer>> host_internals_;  // for a model on a GPU: host copies, allocated on first use
  std::unique_ptr<Program> program_;
};

/// The runtime options of the model, but with no memory for rows. For runtimes that store no rows.
RuntimeOptions session_options(LoadedModel&);

/// The dense input, keys and scores of a config.
std::vector<ModelTensor> model_inputs(const Config&);
std::vector<ModelTensor> model_outputs(const Replica&);

}  // namespace hctr
