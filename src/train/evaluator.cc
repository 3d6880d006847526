#include "train/evaluator.h"

#include "base/auc.h"
#include "device/copy.h"
#include "train/trainer_parts.h"

namespace hctr {

Evaluator::Evaluator(const Config& config, Runtime& runtime, Communicator& comm, Model& model, const BatchLayout& layout, const Log& log)
    : runtime_(runtime), model_(model), ring_(layout, kSlots, runtime.device()), batches_(config.solver.eval_batches()),
      samples_per_batch_(layout.shape.samples), sparse_inputs_(config.data.sparse.size()) {
  for (int s = 0; s < kSlots; ++s) results_.emplace_back(runtime.device(), sizeof(float) * static_cast<size_t>(samples_per_batch_ + 1));
  for (int s = 0; s < kSlots; ++s) slots_.push_back(make_slot(config, s));
  reader_ = std::make_unique<Reader>(config.data, config.data.eval_source, layout, ring_.host_blocks(),
                                     reader_options(config, comm, config.solver.eval_batch(), false), log);
}

Evaluator::Slot Evaluator::make_slot(const Config& config, int slot) {
  const BatchTensors tensors = batch_tensors(ring_, slot, sparse_inputs_);
  const bool record = config.solver.cuda_graph && !runtime_.options().sync_launches;
  const auto body = [this, slot, tensors, binding = model_.bind(Phase::evaluate, tensors)] {
    ring_.upload(runtime_.compute_stream(), slot);
    Context ctx(runtime_, runtime_.compute_stream(), ring_.device_state(slot));
    model_.evaluate(ctx, tensors, binding);
    std::byte* result = results_[static_cast<size_t>(slot)].data();
    const Tensor prediction = model_.prediction(Phase::evaluate);
    HCTR_EXPECT(prediction.dense(), "predictions of shape ", to_string(prediction.shape()), " are strided");
    copy_bytes(ctx.stream(), result, model_.loss(Phase::evaluate).bytes(), sizeof(float));
    copy_bytes(ctx.stream(), result + sizeof(float), prediction.bytes(), prediction.spec().bytes());
  };
  return {Program(runtime_.compute_stream(), record, body), Event(runtime_.device())};
}

Evaluator::Result Evaluator::run(int64_t steps) {
  if (!fresh_) reader_->reset();
  fresh_ = false;
  predictions_.clear();
  labels_.clear();
  loss_sum_ = 0;
  Result result;
  std::optional<int> running;
  for (int64_t batch = 0; !batches_ || batch < *batches_; ++batch) {
    const std::optional<int> slot = reader_->next();
    if (!slot) break;
    ring_.state(*slot).step = steps;
    slots_[static_cast<size_t>(*slot)].program.run();
    slots_[static_cast<size_t>(*slot)].done.record(runtime_.compute_stream());
    if (running) take_in(*running, result);
    running = slot;
  }
  if (running) take_in(*running, result);
  if (result.samples > 0) {
    result.metrics["AverageLoss"] = loss_sum_ / static_cast<double>(result.samples);
    result.metrics["AUC"] = area_under_roc(predictions_, labels_);
  }
  return result;
}

void Evaluator::take_in(int slot, Result& result) {
  slots_[static_cast<size_t>(slot)].done.synchronize();
  const auto* values = reinterpret_cast<const float*>(results_[static_cast<size_t>(slot)].data());
  const StepState& state = ring_.state(slot);
  const auto* labels = ring_.host_labels(slot);
  loss_sum_ += static_cast<double>(values[0]) * state.global_samples;
  predictions_.insert(predictions_.end(), values + 1, values + 1 + state.valid_samples);
  labels_.insert(labels_.end(), labels, labels + state.valid_samples);
  result.samples += state.global_samples;
  reader_->release(slot);
}

}  // namespace hctr
