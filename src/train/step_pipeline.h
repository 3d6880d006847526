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

/// The parts of a step that replay() runs: a benchmark leaves parts out to measure the others.
struct Replay {
  bool prepare = true, compute = true;
};

/// The losses of the steps since a display, each times its samples; those that are infinite or NaN are left out.
struct LossSum {
  double sum = 0;
  int64_t samples = 0;
  /// NaN without samples.
  double mean() const { return sum / static_cast<double>(samples); }
};

/// How far the training data have been read: the records left out up to the position, and the width of the keys.
struct ReadProgress {
  ReaderPosition position{};
  int64_t skipped_records = 0;
  int key_bytes = 0;  ///< 0: none read
};

/// Runs steps. While batch k is computed, batch k+1 is looked up and sorted on the prepare stream. At the same time
/// batch k+2 is uploaded on the key stream, and its keys are sent to the owners of their rows; or without
/// StepChoices::keys_ahead both are done for batch k+1, on the prepare stream.
///
/// Preparation begins once the buffer of the batch is free, when step k-1 begins. Where the plan has a prefetch point,
/// look-up and sort wait for that point of step k-1, and have until the end of step k.
class StepPipeline {
 public:
  /// Without a source in the config all samples are given. `peers`: of the ranks of this process; null: this rank alone
  /// knows keys whose rows it owns.
  StepPipeline(const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&,
               const ReadProgress& from = {}, std::shared_ptr<FileFeed> feed = {},
               std::shared_ptr<LookAheadGroup> peers = {});

  ~StepPipeline();

  /// What fetch() has found.
  enum class Fetched { batch, end, stopped, waiting };
  /// Waits for the next batch of the reader, which step() will train on; or for the end of the data; or until `stop`,
  /// which may be null, is other than 0. It returns `waiting` after a second, so that other ranks know that this one is
  /// there; with a feed after a moment, so that they can exchange new files. Then reserves the memory that tables need
  /// for the batch. No collective call: a rank that fails here can still tell the others, and the model is intact.
  /// Errors: those of the reader; Error(device).
  Fetched fetch(const std::atomic<int>* stop = nullptr);
  /// Queues the next step with this learning rate and does not wait for it. Returns the number of samples over all
  /// ranks, or nothing at the end of the data. `step`: training steps done before it. Calls fetch() unless the caller
  /// has. Errors: with several ranks CollectiveError when a table refuses the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// Runs a step on a batch that an earlier step left in its buffer. Ends reading. For benchmarks.
  void replay(int64_t step, double learning_rate, Replay);
  /// How many of the last steps in a row had a loss that is NaN or infinite, or were skipped for such a gradient, of
  /// those steps that are known to have run: all but the last few. Does not wait. Unless the model skips such steps,
  /// the first of them and all steps behind it change no weight and no row, and count.
  int64_t steps_not_finite() const { return steps_not_finite_; }
  /// The step that steps_not_finite() has counted: the first, or where the model skips such steps the last; -1: none.
  int64_t step_not_finite() const { return step_not_finite_; }
  /// Whether its loss was not finite; else a gradient.
  bool loss_not_finite() const { return loss_not_finite_; }
  /// Whether an update of this rank, of step_not_finite(), is known to have made a weight or a row infinite or not a
  /// number, while losses were finite.
  bool spoiled() const { return spoiled_; }
  /// Reads the batch of one of the last steps again. Waits for queued steps. No collective call. Ends training: only
  /// run_again() may follow. Errors: those of the reader; Error(data) if the step is too long ago.
  void read_again(int64_t step);
  /// Runs that step again with the present weights and waits for it. Returns its batch, whose tensors remain.
  struct Again {
    BatchView batch;  ///< on the host
    Network::Binding binding;
    int64_t first_sample;     ///< of the batch, on all ranks: as StepState::first_sample
    ReaderPosition position;  ///< before the batch
  };
  Again run_again();
  /// From now on fetch() finds the batches of these samples, which outlive them, and then the end of the data.
  /// `samples_before`: trained on so far, of all ranks. The
  /// source stays where it is. Waits for queued steps where they have read it. No collective call.
  void give(const GivenSamples&, int64_t samples_before);
  /// Waits until no queued step reads memory of given samples.
  void finish_copies() const;
  /// From now on fetch() finds the batches of the source, from where it was. Errors: those of the Reader. Call before a
  /// step where samples may have been given.
  void read_source();
  /// The source of the config is another one: it is read from its begin. `samples_before`: as of give(). Waits for
  /// queued steps. Errors: those of the Reader.
  void change_source(int64_t samples_before);
  /// After change_source() that failed: reads the source, which is that before again, from where it was.
  void go_back_to(const ReadProgress&);
  /// Starts the data again at the first sample. Waits for every queued step.
  void restart();
  /// Waits for every queued step and returns the last one's loss, over all ranks.
  double finish_and_read_loss();
  /// Of the steps since start_loss_sum(), over all ranks. Call finish_and_read_loss() before.
  LossSum loss_sum() const { return {last_record().sum, last_record().samples}; }
  /// Starts the sum from here. Waits for queued steps.
  void start_loss_sum(const LossSum& from = {});
  /// Batches that look-ahead is ahead of the step now; nothing where no rows can be on a disk.
  std::optional<int> look_ahead() const { return look_ahead_ ? std::optional(look_ahead_->depth()) : std::nullopt; }
  /// Whether tables have got memory for the batch that fetch() found last.
  bool tables_grew() const { return tables_grew_; }
  /// Seconds that fetch() has waited for the reader.
  double reader_seconds() const { return reader_seconds_; }

  /// Whether steps call what they have recorded, so that their parts can be measured (core/device/profiler.h).
  void run_unrecorded(bool on) { unrecorded_ = on; }
  /// Whether time_recorded_parts() can be called: with other ranks, steps are recorded by all or none.
  bool can_time_recorded_parts() const;
  /// Records the steps again, from now on with the events of this Profiler: the recording of a buffer has its number.
  /// Null: without. Waits for queued steps.
  void time_recorded_parts(Profiler*);
  /// The buffer of the last step.
  int last_buffer() const { return last_; }
  /// Records the steps again, whose matrix products use other algorithms now. Waits for queued steps.
  void record_again();
  /// Whether steps are recorded.
  bool records() const { return records_ && runtime_.device().is_cuda(); }
  const BatchShape& batch_shape() const { return ring_.shape(); }
  /// The batch that fetch() found, on the host.
  BatchView fetched_batch() const { return ring_.on_host(*fetched_buffer_); }

  int64_t skipped_records() const { return progress_.skipped_records; }
  // Of the source; where there is none, as of an empty one.
  int64_t samples_in_set() const { return reader_ ? reader_->samples() : parked_.samples; }
  bool samples_estimated() const { return reader_ ? reader_->samples_estimated() : parked_.estimated; }
  int64_t rows_left_over() const { return reader_ ? reader_->rows_left_over() : parked_.left_over; }
  /// Of the batches that fetch() has found on this rank.
  const CountedSamples& counted() const { return counted_; }
  /// Bytes that the keys of the batches so far fit: 4 or 8.
  int key_bytes() const { return progress_.key_bytes > 0 ? progress_.key_bytes : reader_ ? reader_->key_bytes() : 8; }
  /// After the last batch trained on; at the end of the data the start of the next pass. Batches read ahead are not
  /// part of it.
  const ReadProgress& progress() const { return progress_; }
  /// Number and size of the files, to tell data sets apart.
  DataFingerprint data_fingerprint() const { return reader_ ? reader_->fingerprint() : parked_.fingerprint; }

  static constexpr int kBuffers = 3;  // one being filled, one being prepared, one being computed

 private:
  struct StepBuffer {
    explicit StepBuffer(Device device)
        : exchanged(device), prepared(device), computed(device), prefetch_point(device) {}
    std::optional<Program> keys, prepare, compute;  // keys: if they are exchanged ahead
    Event exchanged, prepared, computed;            // exchanged: its keys, ahead
    CrossingEvent prefetch_point;                   // of its last step, if the plan has one
  };
  /// Ends reading the source, with no step queued.
  void park();
  void open_source();
  /// The buffer may be filled again.
  void release(int buffer);
  void record(int buffer);
  void record_look_ups_again();
  /// Widens the keys of the batch in a buffer and sends them to the owners of their rows, on key_stream().
  void exchange_keys(int buffer, Recording&);
  Program prepare_program(int buffer);
  /// Where batches are uploaded, and their keys exchanged.
  StreamRef key_stream() const { return plan_->choices.keys_ahead ? runtime_.key_stream() : runtime_.prepare_stream(); }
  void run(int buffer, int64_t step, double learning_rate, Replay);
  /// Reserves rows for the next step, then looks up and sorts its keys. When a table refuses the batch, all ranks throw
  /// before anything is computed.
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
  HostBuffer losses_;          // LossRecord per buffer
  Buffer loss_total_;          // LossRecord
  Buffer spoiled_flag_;        // StepState::spoiled
  size_t sparse_inputs_;
  bool records_, unrecorded_ = false;
  Profiler* part_times_ = nullptr;        // what is recorded has its events
  std::shared_ptr<const StepPlan> plan_;  // of the step that was recorded last
  std::vector<StepBuffer> buffers_;
  std::shared_ptr<LookAhead> look_ahead_;  // null: no rows are on a disk. Shared with a reader that is left behind
  std::shared_ptr<FileFeed> feed_;         // null: the files of the set are known
  ReaderOptions reading_;
  std::unique_ptr<Reader> reader_;  // null while samples are given
  struct {
    int64_t samples = 0, left_over = 0;
    bool estimated = false;
    DataFingerprint fingerprint{};
  } parked_;  // what reader_ said
  GivenBatches given_;
  bool gives_ = false;                           // given_ has the next batch
  bool tables_grew_ = false;                     // for the batch of fetch()
  bool fetched_ = false, left_waiting_ = false;  // the latter: a stop has not waited for the reader
  std::optional<int> fetched_buffer_;            // what fetch() found; nothing at the end of the data
  std::optional<int> uploading_;                 // the buffer whose upload may not have run yet
  int last_ = 0;                                 // the buffer of the last step
  std::optional<int> queued_, queued_before_;    // the buffers of the last two steps that are queued
  ReadProgress progress_;
  double reader_seconds_ = 0;
};

}  // namespace hctr
