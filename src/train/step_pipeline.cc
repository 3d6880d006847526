// The ring of batches: the reader or the caller fills buffers, steps train on them, and buffers are returned.
#include "train/step_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/device/copy_bytes.h"
#include "core/device/profiler.h"
#include "score/batch_reading.h"
#include "score/disk_tables.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kToWaitForFiles(100);
// number of steps that read_again() can repeat; more than can be queued before a loss is read
constexpr size_t kPastSteps = 2 * StepPipeline::kBuffers;

}  // namespace

StepPipeline::StepPipeline(const Config& config, Communicator& comm, Replica& model, const BatchLayout& layout,
                           const Log& log, ReadSetup setup)
    : config_(config),
      log_(log),
      runtime_(model.runtime()),
      comm_(comm),
      model_(model),
      layout_(layout),
      ring_(layout, kBuffers, runtime_.device()),
      check_(config, model.graph(), config.data.source.empty() ? "the samples given" : config.data.source),
      counted_(config, model.graph()),
      losses_(runtime_.device(), kBuffers * sizeof(ops::LossRecord)),
      loss_total_(runtime_.device(), sizeof(ops::LossRecord)),
      spoiled_flag_(runtime_.device(), sizeof(int32_t)),
      sparse_inputs_(config.data.sparse.size()),
      records_(config.solver.cuda_graph && !runtime_.options().sync_launches),
      feed_(std::move(setup.feed)),
      given_(layout_, ring_.host_blocks(),
             {.batch = config.solver.batchsize, .rank = comm.rank(), .ranks = comm.size()},
             !config.solver.compatibility.drop_partial_batches, runtime_.threads()),
      progress_(setup.from) {
  zero_bytes(runtime_.compute_stream(), spoiled_flag_.data(), spoiled_flag_.bytes());
  runtime_.compute_stream().synchronize();
  for (int s = 0; s < kBuffers; ++s) {
    buffers_.emplace_back(runtime_.device());
    record(s);
  }
  // With max_iter, the reader itself starts the data again at their end. With num_epochs, the caller of step() calls
  // restart().
  reading_ = reader_options(config, comm, config.solver.batchsize, config.solver.max_iter.has_value() && !feed_);
  reading_.keep_last_partial = !config.solver.compatibility.drop_partial_batches;
  reading_.shuffle = config.data.shuffle;
  reading_.seed = config.solver.seed.value;
  reading_.negative_share = config.data.negative_sampling;
  reading_.feed = feed_;
  if (!disk_folders(runtime_, model).empty()) {
    look_ahead_ = std::make_shared<LookAhead>(
        [&model](size_t input, std::span<const ops::RowOwner> keys) { model.look_ahead(input, keys); }, kBuffers - 1,
        setup.peers ? std::move(setup.peers) : std::make_shared<LookAheadGroup>());
    reading_.on_filled = [ahead = look_ahead_](const BatchView& batch) { ahead->add(batch); };
  }
  if (!config.data.source.empty()) open_source();
}

void StepPipeline::open_source() {
  reading_.from = progress_.position;
  reader_ = std::make_unique<Reader>(config_.data, training_source(config_.data), layout_, ring_.host_blocks(),
                                     reading_, log_);
}

void StepPipeline::park() {
  finish_and_read_loss();
  uploading_.reset();
  fetched_ = false;
  past_.clear();  // earlier steps used other data, so read_again() cannot read their batches
  if (reader_)
    parked_ = {reader_->samples(), reader_->rows_left_over(), reader_->samples_estimated(), reader_->fingerprint()};
  reader_.reset();
}

void StepPipeline::give(const GivenSamples& samples, int64_t samples_before) {
  if (!std::exchange(gives_, true)) park();
  fetched_ = false;
  given_.give(samples, samples_before);
}

void StepPipeline::finish_copies() const {
  if (given_.reads_later()) key_stream().synchronize();
}

void StepPipeline::read_source() {
  if (!std::exchange(gives_, false)) return;
  park();
  if (!config_.data.source.empty()) open_source();
}

void StepPipeline::change_source(int64_t samples_before) {
  park();
  gives_ = false;
  progress_.position = {.samples = samples_before, .bad_records = progress_.skipped_records};
  check_ = BatchCheck(config_, model_.graph(), config_.data.source);
  open_source();
}

void StepPipeline::go_back_to(const ReadProgress& progress) {
  park();
  gives_ = config_.data.source.empty();
  progress_ = progress;
  check_ = BatchCheck(config_, model_.graph(), config_.data.source);
  if (!gives_) open_source();
}

void StepPipeline::release(int buffer) {
  if (reader_) reader_->release(buffer);
}

StepPipeline::~StepPipeline() {
  if (look_ahead_) look_ahead_->stop();  // look-ahead must end before the model is destroyed
  if (left_waiting_) leave_behind_if_stuck(reader_, ring_);
}

StepPipeline::Fetched StepPipeline::fetch(const std::atomic<int>* stop) {
  const auto found = [&] { return fetched_buffer_ ? Fetched::batch : Fetched::end; };
  if (fetched_) return found();
  {
    const ProfiledPart part(runtime_, "wait", "reader");
    const auto start = std::chrono::steady_clock::now();
    const auto waited = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    if (feed_ && !gives_ && !reader_->wait(kToWaitForFiles)) {
      reader_seconds_ += waited();
      return Fetched::waiting;
    }
    const Waited result = gives_ ? Waited::batch : wait_for_batch(*reader_, stop, kToWaitForData);
    left_waiting_ = result != Waited::batch;
    if (!left_waiting_) fetched_buffer_ = gives_ ? given_.next() : reader_->next();
    reader_seconds_ += waited();
    if (left_waiting_) return result == Waited::stopped ? Fetched::stopped : Fetched::waiting;
  }
  fetched_ = true;
  if (!fetched_buffer_) return found();
  {
    const ProfiledPart part(runtime_, "check", "batch");
    const bool in_set = !gives_ && !reader_->samples_estimated();
    check_.expect(ring_.on_host(*fetched_buffer_), in_set ? reader_->samples() : 0);
    counted_.add(ring_.on_host(*fetched_buffer_));
  }
  const ProfiledPart part(runtime_, "reserve memory", "embedding");
  tables_grew_ = model_.reserve_memory();
  return found();
}

std::optional<int64_t> StepPipeline::step(int64_t step, double learning_rate) {
  Fetched found = fetch();
  while (found == Fetched::waiting) found = fetch();
  if (found == Fetched::end) {
    if (gives_)
      fetched_ = false;  // the next call must fetch again, because the caller may give other samples
    else if (!feed_)
      progress_.position = next_pass();
    return std::nullopt;
  }
  fetched_ = false;
  const std::optional<int> next = fetched_buffer_;
  const int64_t samples = ring_.state(*next).global_samples;
  if (!gives_) past_.push_back({step, learning_rate, progress_.position});
  if (past_.size() > kPastSteps) past_.pop_front();
  run(*next, step, learning_rate, {});
  if (gives_)
    progress_.key_bytes = std::max(progress_.key_bytes, given_.key_bytes());
  else
    progress_ = {reader_->position(), reader_->skipped_records(), std::max(progress_.key_bytes, reader_->key_bytes())};

  if (runtime_.device().is_cuda()) {
    // The buffer of the previous step returns to the reader once its upload has run. The host blocks here only if the
    // host is a whole ring ahead of the device.
    if (uploading_) {
      buffers_[static_cast<size_t>(*uploading_)].prepared.synchronize();
      release(*uploading_);
      count_not_finite(*uploading_);  // the preceding step in this buffer has finished
    }
    uploading_ = *next;
  } else {
    release(*next);
    count_not_finite(*next);
  }
  return samples;
}

void StepPipeline::count_not_finite(int buffer) {
  const ops::LossRecord& record = *record_of(buffer);
  losses_not_finite_ = record.stopped == 0 && std::isfinite(record.loss) ? 0 : losses_not_finite_ + 1;
  steps_not_finite_ = std::max(losses_not_finite_, record.skipped_in_row);
  note_not_finite(record);
}

void StepPipeline::note_not_finite(const ops::LossRecord& record) {
  if (spoiled_) return;
  if (record.spoiled != 0) {
    spoiled_ = true;
    step_not_finite_ = record.spoiled - 1;
    loss_not_finite_ = false;
    return;
  }
  const bool of_loss = record.stopped != 0 || !std::isfinite(record.loss);
  if (of_loss)
    step_not_finite_ = record.stopped != 0 ? record.stopped - 1 : record.step;
  else if (record.skipped_in_row > 0)
    step_not_finite_ = record.step - 1;
  else
    return;
  loss_not_finite_ = of_loss;
}

void StepPipeline::read_again(int64_t step) {
  finish_and_read_loss();
  uploading_.reset();
  while (!past_.empty() && past_.front().step != step) past_.pop_front();
  if (past_.empty()) throw Error(Kind::data, cat("the batch of iteration ", step + 1, " is no longer in memory"));
  reader_->reset(past_.front().position);
  fetched_buffer_ = reader_->next();
  if (!fetched_buffer_) throw Error(Kind::data, "the data have ended");
}

StepPipeline::Again StepPipeline::run_again() {
  const PastStep& past = past_.front();
  const int buffer = *fetched_buffer_;
  run(buffer, past.step, past.learning_rate, {});
  finish_and_read_loss();
  return {ring_.on_host(buffer), model_.bind(Phase::train, batch(buffer)), past.position.samples, past.position};
}

void StepPipeline::replay(int64_t step, double learning_rate, Replay parts) {
  reader_.reset();  // stops the reader, which would fill the buffers that are reused here
  const int next = (last_ + 1) % kBuffers;
  if (parts.prepare)
    // waits for the upload of this buffer, because the upload reads the state that run() overwrites
    buffers_[static_cast<size_t>(next)].prepared.synchronize();
  run(next, step, learning_rate, parts);
}

void StepPipeline::restart() {
  finish_and_read_loss();
  uploading_.reset();
  fetched_ = false;
  reader_->reset(next_pass());
}

ReaderPosition StepPipeline::next_pass() const {
  ReaderPosition next = reader_->next_pass();
  // after a resume at the end of a pass, the reader's own count lacks the records that were skipped before the resume
  next.bad_records = progress_.skipped_records;
  return next;
}

double StepPipeline::finish_and_read_loss() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  note_not_finite(last_record());
  int32_t flag = 0;
  copy_bytes(runtime_.compute_stream(), &flag, spoiled_flag_.data(), sizeof flag);
  runtime_.compute_stream().synchronize();
  if (flag != 0 && !spoiled_ && last_record().stopped == 0 && std::isfinite(last_record().loss)) {
    // the updates of the last step set the flag after the step had written its LossRecord, so the last step has failed
    spoiled_ = true;
    step_not_finite_ = last_record().step;
    loss_not_finite_ = false;
  }
  return static_cast<double>(last_record().loss);
}

void StepPipeline::start_loss_sum(const LossSum& from) {
  finish_and_read_loss();
  for (int s = 0; s < kBuffers; ++s) {
    record_of(s)->sum = from.sum;
    record_of(s)->samples = from.samples;
  }
  copy_bytes(runtime_.compute_stream(), loss_total_.data(), &last_record(), sizeof(ops::LossRecord));
  runtime_.compute_stream().synchronize();
}

}  // namespace hctr
