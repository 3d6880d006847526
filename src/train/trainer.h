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
#include "train/batch_ring.h"

namespace hctr {

/// The parts of a step that replay() runs: a benchmark leaves parts out to measure the others.
struct Replay {
  bool prepare = true, compute = true;
};

/// Runs steps. While batch k is computed, batch k+1 is uploaded, looked up and sorted on the prepare stream.
class Trainer {
 public:
  Trainer(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&);

  /// Queues the next step with this learning rate and does not wait for it. Returns the number of samples over all
  /// ranks, or nothing at the end of the data. `step`: training steps done before it. Errors: with several ranks
  /// CollectiveError when a table refuses the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// Runs a step on a batch that an earlier step left in its buffer, without reading. For benchmarks.
  void replay(int64_t step, double learning_rate, Replay);
  /// Starts the data again at the first sample. Waits for every queued step.
  void restart();
  /// Waits for every queued step and returns the last one's loss, over all ranks.
  double finish_and_read_loss();

  int64_t skipped_records() const { return reader_->skipped_records(); }
  int64_t samples_in_set() const { return reader_->samples(); }
  bool samples_estimated() const { return reader_->samples_estimated(); }
  /// Bytes that the keys of the batches so far fit: 4 or 8.
  int key_bytes() const { return reader_->key_bytes(); }

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

  Runtime& runtime_;
  Communicator& comm_;
  Model& model_;
  BatchRing ring_;
  HostBuffer losses_;
  size_t sparse_inputs_;
  bool records_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Reader> reader_;
  std::optional<int> uploading_;  // the buffer whose upload may not have run yet
  int last_ = 0;                  // the buffer of the last step
};

}  // namespace hctr
