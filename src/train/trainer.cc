#include "train/trainer.h"

#include "device/copy.h"
#include "train/agreement.h"
#include "train/trainer_parts.h"

namespace hctr {

Trainer::Trainer(const Config& config, Runtime& runtime, Communicator& comm, Model& model, const BatchLayout& layout,
                 const Log& log)
    : runtime_(runtime),
      comm_(comm),
      model_(model),
      ring_(layout, kSlots, runtime.device()),
      losses_(runtime.device(), kSlots * sizeof(float)),
      sparse_inputs_(config.data.sparse.size()),
      records_(config.solver.cuda_graph && !runtime.options().sync_launches) {
  for (int s = 0; s < kSlots; ++s) {
    slots_.emplace_back(runtime.device());
    record(s);
  }
  // Repeating is for max_iter; epochs are counted by whoever calls step(), from the samples it returns.
  ReaderOptions options = reader_options(config, comm, config.solver.batchsize, config.solver.max_iter.has_value());
  options.keep_last_partial = !config.solver.compatibility.drop_partial_batches;
  options.shuffle = config.data.shuffle;
  options.seed = config.solver.seed.value;
  reader_ =
      std::make_unique<Reader>(config.data, training_source(config.data), layout, ring_.host_blocks(), options, log);
}

BatchTensors Trainer::batch(int slot) const { return batch_tensors(ring_, slot, sparse_inputs_); }

void Trainer::record(int slot) {
  const BatchTensors tensors = batch(slot);
  const auto prepare = [this, slot, tensors] {
    ring_.upload(runtime_.prepare_stream(), slot);
    Context ctx(runtime_, runtime_.prepare_stream(), tensors.state);
    model_.prepare(ctx, slot, tensors);
  };
  const auto compute = [this, slot, tensors, binding = model_.bind(Phase::train, tensors)] {
    Context ctx(runtime_, runtime_.compute_stream(), tensors.state);
    model_.train_step(ctx, slot, tensors, binding);
    copy_bytes(ctx.stream(), losses_.data() + static_cast<size_t>(slot) * sizeof(float),
               model_.loss(Phase::train).bytes(), sizeof(float));
  };
  Slot& at = slots_[static_cast<size_t>(slot)];
  at.prepare.emplace(runtime_.prepare_stream(), records_, prepare);
  at.compute.emplace(runtime_.compute_stream(), records_, compute);
}

std::optional<int64_t> Trainer::step(int64_t step, double learning_rate) {
  const std::optional<int> next = reader_->next();
  if (!next) return std::nullopt;
  const int64_t samples = ring_.state(*next).global_samples;
  run_slot(*next, step, learning_rate, {});

  if (runtime_.device().is_cuda()) {
    // The slot before is given back once its upload has run, which is long ago: the host waits only when it is a whole
    // ring ahead of the device.
    if (uploading_) {
      slots_[static_cast<size_t>(*uploading_)].prepared.synchronize();
      reader_->release(*uploading_);
    }
    uploading_ = *next;
  } else {
    reader_->release(*next);
  }
  return samples;
}

void Trainer::run_slot(int number, int64_t step, double learning_rate, Replay parts) {
  Slot& slot = slots_[static_cast<size_t>(number)];
  StepState& state = ring_.state(number);
  state.step = step;
  state.updates = step;
  state.learning_rate = static_cast<float>(learning_rate);
  state.loss_scale = 1;
  state.skip = 0;
  last_ = number;

  if (parts.prepare) prepare(number, step);
  if (!parts.compute) return;
  slot.prepared.make_wait(runtime_.compute_stream());
  slot.compute->run();
  slot.computed.record(runtime_.compute_stream());
}

void Trainer::prepare(int number, int64_t step) {
  Slot& slot = slots_[static_cast<size_t>(number)];
  const bool together = comm_.size() > 1 && model_.may_refuse();
  std::optional<Error> refusal;
  const auto unless_refused = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      if (!together || error.kind() != Kind::data) throw;
      if (!refusal) refusal = error;  // the others still need this rank in the exchange of keys
    }
  };
  unless_refused([&] { model_.reserve_rows(step); });
  if (model_.consume_rerecord_flag()) {  // then what is recorded is no longer what steps do
    runtime_.prepare_stream().synchronize();
    runtime_.compute_stream().synchronize();
    for (int s = 0; s < kSlots; ++s) record(s);
  }
  slot.computed.make_wait(runtime_.prepare_stream());  // the batch that was in this slot before
  slot.prepare->run();
  slot.prepared.record(runtime_.prepare_stream());
  unless_refused([&] { model_.confirm_capacity(number); });
  if (together) throw_together(comm_, refusal);
  model_.enforce_limit(number);
}

void Trainer::replay(int64_t step, double learning_rate, Replay parts) {
  const int next = (last_ + 1) % kSlots;
  if (parts.prepare) slots_[static_cast<size_t>(next)].prepared.synchronize();  // its upload reads what is written here
  run_slot(next, step, learning_rate, parts);
}

void Trainer::restart() {
  finish_and_read_loss();
  uploading_.reset();
  reader_->reset(reader_->next_pass());
}

double Trainer::finish_and_read_loss() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  return static_cast<double>(reinterpret_cast<const float*>(losses_.data())[last_]);
}

}  // namespace hctr
