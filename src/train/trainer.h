// The training of one rank: a ring of batch buffers, the recorded programs of each, and the order in which they run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/reader/reader.h"
#include "device/program.h"
#include "model/model.h"
#include "train/batch_check.h"
#include "train/batch_ring.h"

namespace hctr {

/// The parts of a step that replay() runs: a benchmark leaves parts out to measure the others.
struct Replay {
  bool prepare = true, compute = true;
};

/// How far the training data have been read: the records left out up to the position, and the width of the keys.
struct ReadProgress {
  ReaderPosition position{};
  int64_t skipped_records = 0;
  int key_bytes = 0;  ///< 0: none read
};

/// Runs steps. While batch k is computed, batch k+1 is uploaded, looked up and sorted on the prepare stream.
class Trainer {
 public:
  Trainer(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&,
          const ReadProgress& from = {});

  /// Waits for the next batch of the reader, which step() will train on; false at the end of the data. No collective
  /// call: a rank whose reader fails can still tell the others. Errors: those of the reader.
  bool fetch();
  /// Queues the next step with this learning rate and does not wait for it. Returns the number of samples over all
  /// ranks, or nothing at the end of the data. `step`: training steps done before it. Calls fetch() unless the caller
  /// has. Errors: with several ranks CollectiveError when a table refuses the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// Runs a step on a batch that an earlier step left in its buffer, without reading. For benchmarks.
  void replay(int64_t step, double learning_rate, Replay);
  /// How many of the last steps in a row had a loss that is NaN or infinite, of those steps that are known to have run:
  /// all but the last few. Does not wait.
  int64_t steps_not_finite() const { return steps_not_finite_; }
  /// Starts the data again at the first sample. Waits for every queued step.
  void restart();
  /// Waits for every queued step and returns the last one's loss, over all ranks.
  double finish_and_read_loss();

  /// Whether steps call what they have recorded, so that their parts can be measured (device/profiler.h).
  void run_unrecorded(bool on) { unrecorded_ = on; }
  /// Whether steps are recorded.
  bool records() const { return records_ && runtime_.device().is_cuda(); }
  const BatchShape& batch_shape() const { return ring_.shape(); }
  /// The batch that fetch() found, on the host.
  BatchView fetched_batch() const { return ring_.on_host(*fetched_buffer_); }

  int64_t skipped_records() const { return progress_.skipped_records; }
  int64_t samples_in_set() const { return reader_->samples(); }
  bool samples_estimated() const { return reader_->samples_estimated(); }
  /// Bytes that the keys of the batches so far fit: 4 or 8.
  int key_bytes() const { return progress_.key_bytes > 0 ? progress_.key_bytes : reader_->key_bytes(); }
  /// After the last batch trained on; at the end of the data the start of the next pass. Batches read ahead are not
  /// part of it.
  const ReadProgress& progress() const { return progress_; }
  /// Number and size of the files, to tell data sets apart.
  DataFingerprint data_fingerprint() const { return reader_->fingerprint(); }

  static constexpr int kBuffers = 3;  // one being filled, one being prepared, one being computed

 private:
  struct Buffer {
    explicit Buffer(Device device) : prepared(device), computed(device) {}
    std::optional<Program> prepare, compute;
    Event prepared, computed;
  };
  void record(int buffer);
  void run(int buffer, int64_t step, double learning_rate, Replay);
  /// Reserves rows for the next step, then looks up and sorts its keys. When a table refuses the batch, all ranks throw
  /// before anything is computed.
  void prepare(int buffer, int64_t step);
  BatchTensors batch(int buffer) const;
  ReaderPosition next_pass() const;
  float loss(int buffer) const { return reinterpret_cast<const float*>(losses_.data())[buffer]; }
  void count_not_finite(int buffer);

  Runtime& runtime_;
  Communicator& comm_;
  Model& model_;
  BatchRing ring_;
  BatchCheck check_;
  int64_t steps_not_finite_ = 0;
  HostBuffer losses_;
  size_t sparse_inputs_;
  bool records_, unrecorded_ = false;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Reader> reader_;
  bool fetched_ = false;
  std::optional<int> fetched_buffer_;  // what fetch() found; nothing at the end of the data
  std::optional<int> uploading_;       // the buffer whose upload may not have run yet
  int last_ = 0;                       // the buffer of the last step
  ReadProgress progress_;
};

}  // namespace hctr
