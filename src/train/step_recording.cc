// Records steps, and runs the programs of a batch in order.
#include <optional>
#include <utility>

#include "core/comm/collective_error.h"
#include "core/device/profiler.h"
#include "score/batch_reading.h"
#include "score/disk_tables.h"
#include "train/step_pipeline.h"

namespace hctr {

BatchTensors StepPipeline::batch(int buffer) const { return batch_tensors(ring_, buffer, sparse_inputs_); }

void StepPipeline::exchange_keys(int buffer, Recording& recording) {
  const BatchTensors tensors = batch(buffer);
  Context ctx(runtime_, key_stream(), tensors.state);
  {
    const ProfiledPart part(ctx, "unpack", "keys", "");
    ring_.unpack(ctx, buffer);
  }
  model_.exchange_keys(ctx, &recording, buffer, tensors);
}

Program StepPipeline::prepare_program(int buffer) {
  return Program(runtime_.prepare_stream(), records_, [this, buffer](Recording& recording) {
    if (!plan_->choices.keys_ahead) exchange_keys(buffer, recording);
    const BatchTensors tensors = batch(buffer);
    Context ctx(runtime_, runtime_.prepare_stream(), tensors.state);
    model_.look_up(ctx, &recording, buffer, tensors);
  });
}

void StepPipeline::record(int buffer) {
  const BatchTensors tensors = batch(buffer);
  const Replica::Binding bound = model_.bind(Phase::train, tensors);
  plan_ = bound.plan;
  const auto compute = [this, buffer, tensors, bound](Recording& recording) {
    Context ctx(runtime_, runtime_.compute_stream(), tensors.state);
    const auto loss_known = [this, buffer, state = tensors.state](Context& known) {
      const ProfiledPart part(known, "download", "loss", "");
      ops::record_loss(known, model_.loss(Phase::train), reinterpret_cast<const int32_t*>(spoiled_flag_.data()),
                       reinterpret_cast<ops::LossRecord*>(loss_total_.data()), record_of(buffer),
                       model_.skips_steps() ? nullptr : state, model_.loss_scale_state());
    };
    const auto prefetch_point = [this, buffer](Context& known) {
      buffers_[static_cast<size_t>(buffer)].prefetch_point.record(known.stream());
    };
    model_.train_step(ctx, &recording, buffer, tensors, bound,
                      {.loss_known = loss_known, .prefetch_point = prefetch_point});
  };
  StepBuffer& at = buffers_[static_cast<size_t>(buffer)];
  if (plan_->choices.keys_ahead)
    at.keys.emplace(key_stream(), records_, [this, buffer](Recording& recording) { exchange_keys(buffer, recording); });
  at.prepare.emplace(prepare_program(buffer));
  // Record `compute` after `prepare`, because `compute` reads data that recording `prepare` has stored for this buffer.
  at.compute.emplace(runtime_.compute_stream(), records_, compute);
}

void StepPipeline::run(int buffer, int64_t step, double learning_rate, Replay parts) {
  StepBuffer& of = buffers_[static_cast<size_t>(buffer)];
  StepState& state = ring_.state(buffer);
  state.step = step;
  state.updates_before = model_.updates_before();
  state.updates = state.updates_before + step;
  state.learning_rate = static_cast<float>(learning_rate);
  state.loss_scale = 1;
  state.skip = 0;
  state.spoiled = reinterpret_cast<int32_t*>(spoiled_flag_.data());
  last_ = buffer;

  if (look_ahead_) look_ahead_->begin_step(state.first_sample, model_.disk_fetched());
  if (parts.prepare) prepare(buffer, step);
  if (!parts.compute) return;
  of.prepared.make_wait(runtime_.compute_stream());
  of.compute->run(!unrecorded_);
  of.computed.record(runtime_.compute_stream());
  queued_before_ = std::exchange(queued_, buffer);
}

void StepPipeline::prepare(int buffer, int64_t step) {
  StepBuffer& of = buffers_[static_cast<size_t>(buffer)];
  const bool together = comm_.size() > 1 && model_.may_refuse();
  bool exchanged = false;  // whether ranks have exchanged the keys
  std::optional<Error> refusal;
  const auto unless_refused = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      if (!together || (error.kind() != Kind::data && !exchanged)) throw;
      if (!refusal) refusal = error;  // continue, because the other ranks need this rank for the key exchange
    }
  };
  unless_refused([&] {
    const ProfiledPart part(runtime_, "reserve rows", "embedding");
    model_.reserve_rows(step);
  });
  if (model_.consume_rerecord_flag()) record_again();  // tables have changed, so the recorded programs are invalid
  if (model_.consume_look_up_flag()) record_look_ups_again();
  of.prepared.make_wait(key_stream());  // the key stream waits for the previous batch of this buffer
  of.computed.make_wait(key_stream());
  {
    Context ctx(runtime_, key_stream(), ring_.device_state(buffer));
    const ProfiledPart part(ctx, "upload", "batch", "", {.bytes = static_cast<double>(ring_.used_bytes(buffer))});
    gives_ ? given_.upload(ctx.stream(), ring_, buffer) : ring_.upload(ctx.stream(), buffer);
  }
  if (of.keys) {
    of.keys->run(!unrecorded_);
    of.exchanged.record(key_stream());
    of.exchanged.make_wait(runtime_.prepare_stream());
  }
  if (queued_before_ && plan_->has_prefetch_point)
    buffers_[static_cast<size_t>(*queued_before_)].prefetch_point.make_wait(runtime_.prepare_stream());
  of.prepare->run(!unrecorded_);
  of.prepared.record(runtime_.prepare_stream());
  exchanged = true;
  const ProfiledPart part(runtime_, "limit rows", "embedding");
  unless_refused([&] { model_.confirm_capacity(buffer); });
  if (together) throw_on_all_ranks(comm_, refusal);
  model_.enforce_limit(buffer);
}

void StepPipeline::record_look_ups_again() {
  runtime_.prepare_stream().synchronize();
  for (int s = 0; s < kBuffers; ++s) buffers_[static_cast<size_t>(s)].prepare.emplace(prepare_program(s));
}

void StepPipeline::record_again() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  Profiler* const profiler = runtime_.profiler();
  runtime_.set_profiler(part_times_);  // null while recording, which runs no kernels
  for (int s = 0; s < kBuffers; ++s) {
    if (part_times_) part_times_->begin_recording(static_cast<size_t>(s));
    record(s);
  }
  if (part_times_) part_times_->end_recording();
  runtime_.set_profiler(profiler);
}

bool StepPipeline::can_time_recorded_parts() const {
  return records() && comm_.size() == 1 && disk_folders(runtime_, model_).empty();
}

void StepPipeline::time_recorded_parts(Profiler* profiler) {
  part_times_ = profiler;
  record_again();
}

}  // namespace hctr
