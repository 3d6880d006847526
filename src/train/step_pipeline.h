// The training pipeline of one rank: a ring of batch buffers. Each buffer has recorded programs, which run in order.
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

/// The parts of a step that replay() runs. Benchmarks omit some parts to measure the remaining parts.
struct Replay {
  bool prepare = true, compute = true;
};

/// The sum of losses since a display. Each loss is multiplied by its number of samples. Infinite and NaN losses are
/// skipped.
struct LossSum {
  double sum = 0;
  int64_t samples = 0;
  /// The mean loss; NaN without samples.
  double mean() const { return sum / static_cast<double>(samples); }
};

/// The position in the training data. Also the number of records skipped before it, and the width of the keys read so
/// far.
struct ReadProgress {
  ReaderPosition position{};
  int64_t skipped_records = 0;
  int key_bytes = 0;  ///< 0: no key read yet
};

/// The start of reading.
struct ReadSetup {
  ReadProgress from{};
  std::shared_ptr<FileFeed> feed{};  ///< null: all files of the set are known
  /// Shared by the ranks of this process; null: this rank looks ahead for its own keys only.
  std::shared_ptr<LookAheadGroup> peers{};
};

/// Runs steps. While batch k is computed, batch k+1 is looked up and sorted on the prepare stream. At the same time,
/// batch k+2 is uploaded on the key stream and its keys are sent to their owner ranks. Without StepChoices::keys_ahead,
/// upload and key exchange are for batch k+1 and run on the prepare stream.
///
/// Preparation of batch k+1 starts when step k-1 starts, because the batch's buffer is free then. If the plan has a
/// prefetch point, look-up and sort start at that point of step k-1, and overlap the rest of step k-1 and step k.
class StepPipeline {
 public:
  /// If the config has no source, the caller gives all samples.
  StepPipeline(const Config&, Communicator&, Replica&, const BatchLayout&, const Log&, ReadSetup = {});

  ~StepPipeline();

  /// The result of fetch().
  enum class Fetched { batch, end, stopped, waiting };
  /// Waits for the reader's next batch, for the end of the data, or until `stop` is nonzero; `stop` may be null. step()
  /// trains on the batch. Returns `waiting` after a second, so that other ranks see that this rank is alive. With a
  /// feed, returns `waiting` sooner, so that ranks can exchange new files. Then reserves table memory for the batch.
  /// Not collective: a rank that fails here can still notify the other ranks, and the model is intact. Errors: those of
  /// the reader; Error(device).
  Fetched fetch(const std::atomic<int>* stop = nullptr);
  /// Queues the next step with this learning rate, without waiting for it. Returns the number of samples over all
  /// ranks, or none at the end of the data. `step`: the number of preceding training steps. Calls fetch() if the caller
  /// has not. Errors: with several ranks, CollectiveError if a table rejects the batch.
  std::optional<int64_t> step(int64_t step, double learning_rate);
  /// Runs a step on a batch that is still in its buffer, for benchmarks. Destroys the reader, so no other batch can
  /// follow.
  void replay(int64_t step, double learning_rate, Replay);
  /// Counts the consecutive steps, back from the most recent one, that had a NaN or infinite loss or were skipped
  /// because of a NaN or infinite gradient. Does not wait for queued steps, so it ignores the last few. If the model
  /// does not skip bad steps, the first bad step and all later steps change no weight or row, and all of them are
  /// counted.
  int64_t steps_not_finite() const { return steps_not_finite_; }
  /// The first of the steps that steps_not_finite() counts; if the model skips bad steps, the last of them. -1 if it
  /// counts none.
  int64_t step_not_finite() const { return step_not_finite_; }
  /// True if the loss of step_not_finite() was infinite or NaN. False if only a gradient was infinite or NaN.
  bool loss_not_finite() const { return loss_not_finite_; }
  /// Whether an update on this rank in step_not_finite() made a weight or row infinite or NaN although losses were
  /// finite.
  bool spoiled() const { return spoiled_; }
  /// Reads the batch of a recent step again. Waits for queued steps. Ends training, so only run_again() may follow. Not
  /// collective. Errors: those of the reader; Error(data) if the step is too old.
  void read_again(int64_t step);
  /// run_again() runs the step of read_again() with the current weights and waits for it. Returns the batch, whose
  /// tensors remain valid.
  struct Again {
    BatchView batch;  ///< the batch on the host
    Network::Binding binding;
    int64_t first_sample;     ///< number of samples of all ranks before the batch, as StepState::first_sample
    ReaderPosition position;  ///< reader position before the batch
  };
  Again run_again();
  /// After this call, fetch() returns the batches of these samples, then the end of the data. The samples must stay
  /// valid while queued steps read them (finish_copies()). `samples_before`: the number of samples trained on so far,
  /// over all ranks. The source keeps its position. Waits for queued steps if they have read the source. Not
  /// collective.
  void give(const GivenSamples&, int64_t samples_before);
  /// Waits until no queued step reads memory of the given samples.
  void finish_copies() const;
  /// After this call, fetch() returns batches of the source from its current position. Call it before a step on the
  /// source if give() may have been called. Errors: those of the Reader.
  void read_source();
  /// Switches to another source of the config, from its start. `samples_before`: as for give(). Waits for queued steps.
  /// Errors: those of the Reader.
  void change_source(int64_t samples_before);
  /// Call after a failed change_source(). Reads the previous source again, from its last position.
  void go_back_to(const ReadProgress&);
  /// Restarts the data at the first sample. Waits for all queued steps.
  void restart();
  /// Waits for all queued steps and returns the last step's loss over all ranks.
  double finish_and_read_loss();
  /// The sum of losses since start_loss_sum(), over all ranks. Call finish_and_read_loss() first.
  LossSum loss_sum() const { return {last_record().sum, last_record().samples}; }
  /// Restarts the loss sum. Waits for queued steps.
  void start_loss_sum(const LossSum& from = {});
  /// The current look-ahead depth in batches; none if no rows can be on disk.
  std::optional<int> look_ahead() const { return look_ahead_ ? std::optional(look_ahead_->depth()) : std::nullopt; }
  /// Whether tables grew for the batch of the last fetch().
  bool tables_grew() const { return tables_grew_; }
  /// Total seconds that fetch() has waited for the reader.
  double reader_seconds() const { return reader_seconds_; }

  /// `on`: whether steps run unrecorded, so that the profiler can measure their parts (core/device/profiler.h).
  void run_unrecorded(bool on) { unrecorded_ = on; }
  /// Whether time_recorded_parts() can be called. False if only some of several ranks would record steps.
  bool can_time_recorded_parts() const;
  /// Records the steps again with events of the Profiler, or without events if it is null. The number of a recording is
  /// the index of its buffer. Waits for queued steps.
  void time_recorded_parts(Profiler*);
  /// The buffer of the last step.
  int last_buffer() const { return last_; }
  /// Records the steps again after a change of GEMM algorithms. Waits for queued steps.
  void record_again();
  /// Whether steps are recorded.
  bool records() const { return records_ && runtime_.device().is_cuda(); }
  const BatchShape& batch_shape() const { return ring_.shape(); }
  /// The batch of the last fetch(), on the host.
  BatchView fetched_batch() const { return ring_.on_host(*fetched_buffer_); }

  int64_t skipped_records() const { return progress_.skipped_records; }
  // Facts about the source, also while given samples replace it. If the config has no source, the facts of an empty
  // source.
  int64_t samples_in_set() const { return reader_ ? reader_->samples() : parked_.samples; }
  bool samples_estimated() const { return reader_ ? reader_->samples_estimated() : parked_.estimated; }
  int64_t rows_left_over() const { return reader_ ? reader_->rows_left_over() : parked_.left_over; }
  /// Counts over all batches that fetch() has returned on this rank.
  const CountedSamples& counted() const { return counted_; }
  /// The key width that fits all batches so far: 4 or 8 bytes.
  int key_bytes() const { return progress_.key_bytes > 0 ? progress_.key_bytes : reader_ ? reader_->key_bytes() : 8; }
  /// The position after the last trained batch; at the end of the data, the start of the next pass. Ignores batches
  /// that are only read ahead.
  const ReadProgress& progress() const { return progress_; }
  /// Number and size of the files, which identify the data set.
  DataFingerprint data_fingerprint() const { return reader_ ? reader_->fingerprint() : parked_.fingerprint; }

  static constexpr int kBuffers = 3;  // at a time, one is filled, one prepared and one computed

 private:
  struct StepBuffer {
    explicit StepBuffer(Device device)
        : exchanged(device), prepared(device), computed(device), prefetch_point(device) {}
    std::optional<Program> keys, prepare, compute;  // `keys` is empty unless keys are exchanged ahead
    Event exchanged, prepared, computed;            // `exchanged` is used only if keys are exchanged ahead
    CrossingEvent prefetch_point;                   // event in the buffer's last step, if the plan has a prefetch point
  };
  /// Stops reading the source. No step may be queued.
  void park();
  void open_source();
  /// Returns the buffer to the reader.
  void release(int buffer);
  void record(int buffer);
  void record_look_ups_again();
  /// Widens the keys of the batch in `buffer` and sends them to their owner ranks, on key_stream().
  void exchange_keys(int buffer, Recording&);
  Program prepare_program(int buffer);
  /// The stream on which batches are uploaded and keys are exchanged.
  StreamRef key_stream() const { return plan_->choices.keys_ahead ? runtime_.key_stream() : runtime_.prepare_stream(); }
  void run(int buffer, int64_t step, double learning_rate, Replay);
  /// Reserves rows for the next step, then looks up and sorts the step's keys. If a table rejects the batch, all ranks
  /// throw before the step is computed.
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
    ReaderPosition position;  // reader position before the step's batch
  };
  std::deque<PastStep> past_;  // the most recent steps; after read_again(), the first one is the step that was read
  HostBuffer losses_;          // one LossRecord per buffer
  Buffer loss_total_;          // LossRecord
  Buffer spoiled_flag_;        // StepState::spoiled
  size_t sparse_inputs_;
  bool records_, unrecorded_ = false;
  Profiler* part_times_ = nullptr;        // recordings contain this profiler's events; null: no events
  std::shared_ptr<const StepPlan> plan_;  // plan of the last recorded step
  std::vector<StepBuffer> buffers_;
  // Null if no rows can be on disk. Shared with the reader's callback on_filled, because a reader thread that hangs is
  // abandoned, and may call on_filled later.
  std::shared_ptr<LookAhead> look_ahead_;
  std::shared_ptr<FileFeed> feed_;  // null if all files of the set are known
  ReaderOptions reading_;
  std::unique_ptr<Reader> reader_;  // null while samples are given
  struct {
    int64_t samples = 0, left_over = 0;
    bool estimated = false;
    DataFingerprint fingerprint{};
  } parked_;  // facts about the source, copied from reader_ before it was destroyed
  GivenBatches given_;
  bool gives_ = false;        // whether the next batch comes from given_
  bool tables_grew_ = false;  // whether tables grew for the batch of the last fetch()
  // left_waiting_: whether the last wait for a batch ended without a batch. Ignores waits for new files.
  bool fetched_ = false, left_waiting_ = false;
  std::optional<int> fetched_buffer_;          // result of the last fetch(); none at the end of the data
  std::optional<int> uploading_;               // the buffer whose upload may not have run yet
  int last_ = 0;                               // the buffer of the last step
  std::optional<int> queued_, queued_before_;  // the buffers of the last two queued steps
  ReadProgress progress_;
  double reader_seconds_ = 0;
};

}  // namespace hctr
