// The training of one rank: a ring of batch buffers, the recorded programs of each, and the order in which they run.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/device/program.h"
#include "formats/reader/reader.h"
#include "net/model/replica.h"
#include "ops/loss/loss_record.h"
#include "score/batch_check.h"
#include "score/batch_ring.h"
#include "score/counted_samples.h"
#include "score/given_samples.h"
#include "train/look_ahead.h"

namespace hctr {

/// The parts of a step that replay() runs: a benchmark omits parts to measure the others.
struct Replay {
  bool prepare = true, compute = true;
};

/// The sum of the losses since a display, each times its samples; infinite and NaN losses are skipped.
struct LossSum {
  double sum = 0;
  int64_t samples = 0;
  /// NaN without samples.
  double mean() const { return sum / static_cast<double>(samples); }
};

/// The position in the training data: the records skipped up to it, and the width of the keys.
struct ReadProgress {
  ReaderPosition position{};
  int64_t skipped_records = 0;
  int key_bytes = 0;  ///< 0: none read
};

/// Runs steps. While batch k is computed, batch k+1 is looked up and sorted on the prepare stream. At the same time
/// batch k+2 is uploaded on the key stream, and its keys are sent to their owner ranks; without
/// StepChoices::keys_ahead both happen for batch k+1, on the prepare stream.
///
/// Preparation begins once the buffer of the batch is free, when step k-1 begins. If the plan has a prefetch point,
/// look-up and sort start at that point of step k-1, and overlap with the rest of it and step k.
class StepPipeline {
 public:
  /// Without a source in the config, the caller gives all samples. `peers`: shared by the ranks of this process; null:
  /// this rank looks ahead only for its own keys.
  StepPipeline(const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&,
               const ReadProgress& from = {}, std::shared_ptr<FileFeed> feed = {},
               std::shared_ptr<LookAheadGroup> peers = {});

  ~StepPipeline();

  /// The result of fetch().
  enum class Fetched { batch, end, stopped, waiting };
  /// Waits for the reader's next batch, which step() will train on; for the end of the data; or until `stop`, which may
  /// be null, is nonzero. Returns `waiting` after a second, so that other ranks see that this one is alive; with a feed
  /// sooner, so that ranks can exchange new files. Then reserves the table memory for the batch. Not collective: a rank
  /// that fails here can still notify the others, and the model is intact. Errors: those of the reader; Error(device).
  Fetched fetch(const std::atomic<int>* stop = nullptr);
  /// Queues the next step with this learning rate and does not wait for it. Returns the number of samples over all
  /// ranks, or nothing at the end of the data. `step`: training steps done before it. Calls fetch() unless the caller
  /// has. Errors: with several ranks CollectiveError when a table refuses the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// Runs a step on a batch that an earlier step left in its buffer. Ends reading. For benchmarks.
  void replay(int64_t step, double learning_rate, Replay);
  /// The number of consecutive latest steps whose loss was NaN or infinite, or which were skipped for such a gradient.
  /// Covers the steps known to have run: all but the last few. Does not wait. Unless the model skips such steps, the
  /// first of them and all later steps change no weight or row, and count.
  int64_t steps_not_finite() const { return steps_not_finite_; }
  /// The step that steps_not_finite() refers to: the first, or the last if the model skips such steps; -1: none.
  int64_t step_not_finite() const { return step_not_finite_; }
  /// Whether the loss of that step was not finite; otherwise a gradient was not.
  bool loss_not_finite() const { return loss_not_finite_; }
  /// Whether an update of this rank in step_not_finite() made a weight or a row infinite or NaN while losses were
  /// finite.
  bool spoiled() const { return spoiled_; }
  /// Reads the batch of one of the last steps again. Waits for queued steps. Not collective. Ends training: only
  /// run_again() may follow. Errors: those of the reader; Error(data) if the step is too long ago.
  void read_again(int64_t step);
  /// Runs that step again with the present weights and waits for it. Returns its batch, whose tensors remain valid.
  struct Again {
    BatchView batch;  ///< on the host
    Network::Binding binding;
    int64_t first_sample;     ///< of the batch, over all ranks: as StepState::first_sample
    ReaderPosition position;  ///< before the batch
  };
  Again run_again();
  /// From now on fetch() finds the batches of these samples, which outlive them, and then the end of the data.
  /// `samples_before`: trained on so far, over all ranks. The source keeps its position. Waits for queued steps if they
  /// have read the source. Not collective.
  void give(const GivenSamples&, int64_t samples_before);
  /// Waits until no queued step reads memory of given samples.
  void finish_copies() const;
  /// From now on fetch() finds the batches of the source, from where it was. Errors: those of the Reader. Call before a
  /// step where samples may have been given.
  void read_source();
  /// Reads another source of the config, from its start. `samples_before`: as for give(). Waits for queued steps.
  /// Errors: those of the Reader.
  void change_source(int64_t samples_before);
  /// After a failed change_source(): reads the previous source again, from its last position.
  void go_back_to(const ReadProgress&);
  /// Restarts the data at the first sample. Waits for every queued step.
  void restart();
  /// Waits for every queued step and returns the last one's loss, over all ranks.
  double finish_and_read_loss();
  /// The losses since start_loss_sum(), over all ranks. Call finish_and_read_loss() before.
  LossSum loss_sum() const { return {last_record().sum, last_record().samples}; }
  /// Starts the sum from here. Waits for queued steps.
  void start_loss_sum(const LossSum& from = {});
  /// The number of batches that look-ahead is ahead of the step now; none if no rows can be on disk.
  std::optional<int> look_ahead() const { return look_ahead_ ? std::optional(look_ahead_->depth()) : std::nullopt; }
  /// Whether tables grew for the batch that fetch() found last.
  bool tables_grew() const { return tables_grew_; }
  /// Seconds that fetch() has waited for the reader.
  double reader_seconds() const { return reader_seconds_; }

  /// Whether steps run unrecorded, so that their parts can be measured (core/device/profiler.h).
  void run_unrecorded(bool on) { unrecorded_ = on; }
  /// Whether time_recorded_parts() can be called: among several ranks, all or none record steps.
  bool can_time_recorded_parts() const;
  /// Records the steps again, with the events of this Profiler; a recording has the number of its buffer. Null: without
  /// events. Waits for queued steps.
  void time_recorded_parts(Profiler*);
  /// The buffer of the last step.
  int last_buffer() const { return last_; }
  /// Records the steps again after GEMM algorithms have changed. Waits for queued steps.
  void record_again();
  /// Whether steps are recorded.
  bool records() const { return records_ && runtime_.device().is_cuda(); }
  const BatchShape& batch_shape() const { return ring_.shape(); }
  /// The batch that fetch() found, on the host.
  BatchView fetched_batch() const { return ring_.on_host(*fetched_buffer_); }

  int64_t skipped_records() const { return progress_.skipped_records; }
  // The size of the source; without a source, that of an empty one.
  int64_t samples_in_set() const { return reader_ ? reader_->samples() : parked_.samples; }
  bool samples_estimated() const { return reader_ ? reader_->samples_estimated() : parked_.estimated; }
  int64_t rows_left_over() const { return reader_ ? reader_->rows_left_over() : parked_.left_over; }
  /// Counts of the batches that fetch() has found on this rank.
  const CountedSamples& counted() const { return counted_; }
  /// Key width that fits all batches so far: 4 or 8 bytes.
  int key_bytes() const { return progress_.key_bytes > 0 ? progress_.key_bytes : reader_ ? reader_->key_bytes() : 8; }
  /// The position after the last batch trained on; at the end of the data the start of the next pass. Batches read
  /// ahead do not count.
  const ReadProgress& progress() const { return progress_; }
  /// Number and size of the files, to distinguish data sets.
  DataFingerprint data_fingerprint() const { return reader_ ? reader_->fingerprint() : parked_.fingerprint; }

  static constexpr int kBuffers = 3;  // one being filled, one being prepared, one being computed

 private:
  struct StepBuffer {
    explicit StepBuffer(Device device)
        : exchanged(device), prepared(device), computed(device), prefetch_point(device) {}
    std::optional<Program> keys, prepare, compute;  // keys: if exchanged ahead
    Event exchanged, prepared, computed;            // exchanged: its keys, if exchanged ahead
    CrossingEvent prefetch_point;                   // of its last step, if the plan has one
  };
  /// Stops reading the source, with no step queued.
  void park();
  void open_source();
  /// Returns the buffer for refilling.
  void release(int buffer);
  void record(int buffer);
  void record_look_ups_again();
  /// Widens the keys of the batch in a buffer and sends them to their owner ranks, on key_stream().
  void exchange_keys(int buffer, Recording&);
  Program prepare_program(int buffer);
  /// The stream on which batches are uploaded, and their keys exchanged.
  StreamRef key_stream() const { return plan_->choices.keys_ahead ? runtime_.key_stream() : runtime_.prepare_stream(); }
  void run(int buffer, int64_t step, double learning_rate, Replay);
  /// Reserves rows for the next step, then looks up and sorts its keys. When a table refuses the batch, all ranks throw
  /// before any computation.
  void prepare(int buffer, int64_t step);
  BatchTensors batch(int buffer) const;
  ReaderPosition next_pass() const;
  ops::LossRecord* record_of(int buffer) const { return reinterpret_cast<ops::LossRecord*>(losses_.data()) + buffer; }
  const ops::LossRecord& last_record() const { return *record_of(last_); }
  void count_not_finite(int buffer);
  void note_not_finite(const ops::LossRecord&);

  const Config& config_;
  const Log& log_;
  Runtime& runtime_;
  Communicator& comm_;
  Replica& model_;
  const BatchLayout& layout_;
  BatchRing ring_;
  BatchCheck check_;
  CountedSamples counted_;
  int64_t steps_not_finite_ = 0, losses_not_finite_ = 0, step_not_finite_ = -1;
  bool loss_not_finite_ = false, spoiled_ = false;
  struct PastStep {
    int64_t step;
    double learning_rate;
    ReaderPosition position;  // before its batch
  };
  std::deque<PastStep> past_;  // the last few; the first is the one that read_again() has read
  HostBuffer losses_;          // a LossRecord per buffer
  Buffer loss_total_;          // LossRecord
  Buffer spoiled_flag_;        // StepState::spoiled
  size_t sparse_inputs_;
  bool records_, unrecorded_ = false;
  Profiler* part_times_ = nullptr;        // recordings use its events
  std::shared_ptr<const StepPlan> plan_;  // of the last recorded step
  std::vector<StepBuffer> buffers_;
  std::shared_ptr<LookAhead> look_ahead_;  // null: no rows are on disk. Shared with an abandoned reader
  std::shared_ptr<FileFeed> feed_;         // null: all files of the set are known
  ReaderOptions reading_;
  std::unique_ptr<Reader> reader_;  // null while samples are given
  struct {
    int64_t samples = 0, left_over = 0;
    bool estimated = false;
    DataFingerprint fingerprint{};
  } parked_;  // facts from reader_ before it was destroyed
  GivenBatches given_;
  bool gives_ = false;                           // given_ has the next batch
  bool tables_grew_ = false;                     // for the batch of fetch()
  bool fetched_ = false, left_waiting_ = false;  // left_waiting_: a stop did not wait for the reader
  std::optional<int> fetched_buffer_;            // result of fetch(); none at the end of the data
  std::optional<int> uploading_;                 // the buffer whose upload may not have run yet
  int last_ = 0;                                 // the buffer of the last step
  std::optional<int> queued_, queued_before_;    // the buffers of the last two queued steps
  ReadProgress progress_;
  double reader_seconds_ = 0;
};

}  // namespace hctr
