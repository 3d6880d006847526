// One rank's training: the ring of batches, the recorded programs, and the order in which they run.
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

/// What of a step is left out, so that a benchmark can tell what the parts cost.
struct Replay {
  bool prepare = true, compute = true;
};

/// Runs steps. Batch k+1 is uploaded, looked up and sorted on the prepare stream while batch k computes.
class Trainer {
 public:
  Trainer(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&);

  /// Queues the next step with this learning rate; does not wait for it. Returns the samples of all ranks it trains on;
  /// nothing when the data has ended. `step`: training steps done before it. Errors: of several ranks AgreedError where
  /// a table refuses the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// The same over and over with the batches that the last steps left in the slots, without reading. For benchmarks.
  void replay(int64_t step, double learning_rate, Replay);
  /// Starts the data again at its first sample. Waits for every queued step.
  void restart();
  /// Waits for every queued step and returns the last one's loss, over all ranks.
  double finish_and_read_loss();

  int64_t skipped_records() const { return reader_->skipped_records(); }
  int64_t samples_in_set() const { return reader_->samples(); }
  bool samples_estimated() const { return reader_->samples_estimated(); }
  /// Bytes that the keys of the batches so far fit: 4 or 8.
  int key_bytes() const { return reader_->key_bytes(); }

  static constexpr int kSlots = 3;  // one being filled, one being prepared, one computing

 private:
  struct Slot {
    explicit Slot(Device device) : prepared(device), computed(device) {}
    std::optional<Program> prepare, compute;
    Event prepared, computed;
  };
  void record(int slot);
  void run_slot(int slot, int64_t step, double learning_rate, Replay);
  /// Room, keys and rows of the next step. Where tables may refuse it, ranks stop together, before anything is
  /// computed.
  void prepare(int slot, int64_t step);
  BatchTensors batch(int slot) const;

  Runtime& runtime_;
  Communicator& comm_;
  Model& model_;
  BatchRing ring_;
  HostBuffer losses_;
  size_t sparse_inputs_;
  bool records_;
  std::vector<Slot> slots_;
  std::unique_ptr<Reader> reader_;
  std::optional<int> uploading_;  // slot whose upload may not have run yet
  int last_ = 0;
};

}  // namespace hctr
