// The memory in which one call scores a batch: inputs, activations, results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/program.h"
#include "hctr/model.h"
#include "infer/loaded_model.h"
#include "infer/store_tables.h"
#include "net/model/replica.h"
#include "score/batch_ring.h"
#include "score/shared_forward.h"

namespace hctr {

/// Rows [first, first + count) of the caller's arrays, in the order of the model: the dense input, then the keys of
/// each sparse input; and its outputs, null if not wanted.
struct ScoreRequest {
  int64_t first = 0, count = 0;
  const InputView* dense = nullptr;
  std::vector<const InputView*> keys;
  std::vector<const OutputView*> outputs;
  const StoreReading* tables = nullptr;  ///< where tables are in a store
};

/// Shares weights and tables with other sessions; one thread at a time uses it.
class ScoreSession {
 public:
  /// For batches of up to `samples`. The model outlives it. `copies_written`: whether another session has
  /// written the transposed copies of weights; otherwise this one does. `tables`, which may be null: of a model that
  /// has none of its own. `inputs_on_device`: whether inputs may lie on the device.
  ScoreSession(LoadedModel&, const StoreTables* tables, int64_t samples, bool copies_written, bool inputs_on_device);

  int64_t capacity() const { return ring_.samples(); }
  bool inputs_on_device() const { return inputs_on_device_; }
  void score(const ScoreRequest&);

 private:
  /// Rows in the caller's memory.
  struct RowsOfCaller {
    const std::byte* data;
    int64_t rows;
    size_t row_bytes, stride_bytes;
    bool on_device;
  };
  /// Work of the session comes after what callers queued on their streams.
  void wait_for_callers(const ScoreRequest&);
  /// Copies the inputs to the device.
  void bring(const ScoreRequest&);
  void bring_dense(const ScoreRequest&);
  void bring_ones(const ScoreRequest&, size_t input);
  /// Copies rows to byte `at` of a batch in host memory; if sends_parts_, also to the device.
  void bring_rows(const RowsOfCaller&, size_t at);
  void compute();
  void deliver(const ScoreRequest&) const;
  /// Queues copies of results to memory of the device.
  void send_results(const ScoreRequest&) const;

  const Config& config_;
  Runtime runtime_;
  BatchRing ring_;
  const StoreReading* reading_ = nullptr;  // of the batch that is scored
  SharedForward forward_;
  bool inputs_on_device_;
  bool sends_parts_;  // each as soon as it is there: of a large batch, and around what is on the device already
  BatchTensors batch_;
  Network::Binding binding_;
  struct Result {
    TensorSpec spec;
    size_t offset;
  };
  std::vector<Result> results_;  // per loss
  std::optional<HostBuffer> host_results_;
  std::unique_ptr<Program> program_;
};

/// The dense input, keys and scores of a config.
std::vector<ModelTensor> model_inputs(const Config&);
std::vector<ModelTensor> model_outputs(const Replica&);

}  // namespace hctr
