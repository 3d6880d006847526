#include "train/evaluator.h"

#include "device/copy.h"
#include "train/trainer_parts.h"

namespace hctr {
namespace {

/// Bytes from the first element to the last; the padding behind the last row may belong to a neighbour.
size_t extent(const TensorSpec& spec) {
  if (spec.rows() == 0) return 0;
  return static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

}  // namespace

Evaluator::Evaluator(const Config& config, Runtime& runtime, Communicator& comm, Model& model, const BatchLayout& layout, const Log& log)
    : runtime_(runtime), model_(model), ring_(layout, kSlots, runtime.device()), batches_(config.solver.eval_batches()),
      sparse_inputs_(config.data.sparse.size()), tasks_(model.tasks()) {
  const auto labels = model.labels(Phase::evaluate, model.bind(Phase::evaluate, batch_tensors(ring_, 0, sparse_inputs_)));
  const auto predictions = model.predictions(Phase::evaluate);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    predictions_.push_back(add_piece(predictions[t].spec()));
    labels_.push_back(add_piece(labels[t].spec()));
    scores_.emplace_back(predictions[t].row_elements());
  }
  for (int s = 0; s < kSlots; ++s) results_.emplace_back(runtime.device(), result_bytes_);
  for (int s = 0; s < kSlots; ++s) slots_.push_back(make_slot(config, s));
  reader_ = std::make_unique<Reader>(config.data, config.data.eval_source, layout, ring_.host_blocks(),
                                     reader_options(config, comm, config.solver.eval_batch(), false), log);
}

Evaluator::Piece Evaluator::add_piece(const TensorSpec& spec) {
  const Piece piece{spec, result_bytes_};
  result_bytes_ += (spec.bytes() + 255) / 256 * 256;
  return piece;
}

View<const float, 2> Evaluator::view(int slot, const Piece& piece) const {
  return Tensor(results_[static_cast<size_t>(slot)].data() + piece.offset, piece.spec, Device{}).matrix<const float>();
}

Evaluator::Slot Evaluator::make_slot(const Config& config, int slot) {
  const BatchTensors tensors = batch_tensors(ring_, slot, sparse_inputs_);
  const bool record = config.solver.cuda_graph && !runtime_.options().sync_launches;
  const auto body = [this, slot, tensors, binding = model_.bind(Phase::evaluate, tensors)] {
    ring_.upload(runtime_.compute_stream(), slot);
    Context ctx(runtime_, runtime_.compute_stream(), tensors.state);
    model_.evaluate(ctx, tensors, binding);
    std::byte* results = results_[static_cast<size_t>(slot)].data();
    copy_bytes(ctx.stream(), results, model_.loss(Phase::evaluate).bytes(), sizeof(float));
    const auto predictions = model_.predictions(Phase::evaluate), labels = model_.labels(Phase::evaluate, binding);
    for (size_t t = 0; t < tasks_.size(); ++t) {
      copy_bytes(ctx.stream(), results + predictions_[t].offset, predictions[t].bytes(), extent(predictions[t].spec()));
      copy_bytes(ctx.stream(), results + labels_[t].offset, labels[t].bytes(), extent(labels[t].spec()));
    }
  };
  return {Program(runtime_.compute_stream(), record, body), Event(runtime_.device())};
}

Evaluator::Result Evaluator::run(int64_t steps) {
  if (!fresh_) reader_->reset();
  fresh_ = false;
  for (Scores& scores : scores_) scores.clear();
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
    for (size_t t = 0; t < tasks_.size(); ++t) result.metrics[t == 0 ? "AUC" : "AUC/" + tasks_[t]] = scores_[t].auc();
  }
  return result;
}

void Evaluator::take_in(int slot, Result& result) {
  slots_[static_cast<size_t>(slot)].done.synchronize();
  const StepState& state = ring_.state(slot);
  loss_sum_ += static_cast<double>(*reinterpret_cast<const float*>(results_[static_cast<size_t>(slot)].data())) * state.global_samples;
  for (size_t t = 0; t < tasks_.size(); ++t) scores_[t].add(view(slot, predictions_[t]), view(slot, labels_[t]), state.valid_samples);
  result.samples += state.global_samples;
  reader_->release(slot);
}

}  // namespace hctr
