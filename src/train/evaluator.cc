#include "train/evaluator.h"

#include <algorithm>
#include <cstring>

#include "base/current_error.h"
#include "comm/collective_error.h"
#include "device/copy.h"
#include "train/trainer_parts.h"

namespace hctr {
namespace {

/// Bytes from the first element to the last; the padding after the last row may belong to another tensor.
size_t extent(const TensorSpec& spec) {
  if (spec.rows() == 0) return 0;
  return static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

}  // namespace

Evaluator::Evaluator(const Config& config, Runtime& runtime, Communicator& comm, Model& model,
                     const BatchLayout& layout, const Log& log, const ReaderPosition& from)
    : runtime_(runtime),
      comm_(comm),
      model_(model),
      cache_(layout, runtime.device(),
             config.solver.compatibility.evaluation_continues ? 0 : config.data.cache_eval_data.most),
      ring_(layout, cache_.has_capacity() ? 2 * kBuffers : kBuffers, runtime.device()),
      check_(config, model.graph(), config.data.eval_source),
      batches_(config.solver.eval_batches()),
      continues_(config.solver.compatibility.evaluation_continues && batches_),
      sparse_inputs_(config.data.sparse.size()),
      tasks_(model.tasks()),
      metrics_(config.solver.eval_metrics) {
  const auto asked = [&](auto which) { return std::any_of(metrics_.metrics.begin(), metrics_.metrics.end(), which); };
  if (asked([](const Metric& metric) { return !metric.type->measure; }))
    losses_.assign(tasks_.size() > 1 ? 1 + tasks_.size() : 1, {});
  for (ResultTensor& loss : losses_) loss = add_result(model.loss(Phase::evaluate).spec());
  if (asked([](const Metric& metric) { return metric.type->measure != nullptr; })) {
    const auto labels =
        model.labels(Phase::evaluate, model.bind(Phase::evaluate, batch_tensors(ring_, 0, sparse_inputs_)));
    for (const Tensor& prediction : model.predictions(Phase::evaluate))
      predictions_.push_back(add_result(prediction.spec()));
    for (const Tensor& label : labels) labels_.push_back(add_result(label.spec()));
  }
  if (asked([](const Metric& metric) { return metric.type->of_groups; }))
    for (size_t i = 0; i < sparse_inputs_; ++i)
      if (config.data.sparse[i].top == config.solver.group_by.input) group_slot_ = {i, config.solver.group_by.slot};
  for (int s = 0; s < ring_.buffers(); ++s) results_.emplace_back(runtime.device(), result_bytes_);
  for (int s = 0; s < ring_.buffers(); ++s) buffers_.push_back(make_buffer(config, s));
  std::vector<std::byte*> read_into = ring_.host_blocks();
  read_into.resize(kBuffers);
  ReaderOptions options = reader_options(config, comm, config.solver.eval_batch(), continues_);
  if (continues_) options.from = from;
  reader_ = std::make_unique<Reader>(config.data, evaluation_source(config.data), layout, read_into, options, log);
}

Evaluator::ResultTensor Evaluator::add_result(const TensorSpec& spec) {
  const ResultTensor piece{spec, result_bytes_};
  result_bytes_ += (spec.bytes() + 255) / 256 * 256;
  return piece;
}

const float* Evaluator::result(int buffer, const ResultTensor& piece) const {
  return reinterpret_cast<const float*>(results_[static_cast<size_t>(buffer)].data() + piece.offset);
}

View<const float, 2> Evaluator::view(int buffer, const ResultTensor& piece) const {
  return Tensor(results_[static_cast<size_t>(buffer)].data() + piece.offset, piece.spec, Device{})
      .matrix<const float>();
}

std::vector<std::optional<int64_t>> Evaluator::groups(int buffer, int64_t rows) const {
  if (!group_slot_) return {};
  const auto [input, of_input] = *group_slot_;
  const BatchView batch = ring_.on_host(buffer);
  const BatchView::Table& table = batch.tables[input];
  const int32_t* bags = table.offsets + of_input * ring_.samples();
  std::vector<std::optional<int64_t>> groups(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    if (bags[r] < bags[r + 1]) groups[static_cast<size_t>(r)] = table.keys[bags[r]];
  return groups;
}

Evaluator::Buffer Evaluator::make_buffer(const Config& config, int buffer) {
  const BatchTensors tensors = batch_tensors(ring_, buffer, sparse_inputs_);
  const bool record = config.solver.cuda_graph && !runtime_.options().sync_launches;
  const auto body = [this, buffer, tensors, binding = model_.bind(Phase::evaluate, tensors)] {
    buffer < kBuffers ? ring_.upload(runtime_.compute_stream(), buffer)
                      : ring_.upload_state(runtime_.compute_stream(), buffer);
    Context ctx(runtime_, runtime_.compute_stream(), tensors.state);
    model_.evaluate(ctx, tensors, binding);
    std::byte* results = results_[static_cast<size_t>(buffer)].data();
    const auto fetch = [&](const std::vector<ResultTensor>& pieces, const std::vector<Tensor>& from) {
      for (size_t i = 0; i < pieces.size(); ++i)
        copy_bytes(ctx.stream(), results + pieces[i].offset, from[i].bytes(), extent(pieces[i].spec));
    };
    std::vector<Tensor> losses = {model_.loss(Phase::evaluate)};
    for (const Tensor& loss : model_.losses(Phase::evaluate)) losses.push_back(loss);
    fetch(losses_, losses);
    fetch(predictions_, model_.predictions(Phase::evaluate));
    fetch(labels_, model_.labels(Phase::evaluate, binding));
  };
  return {Program(runtime_.compute_stream(), record, body), Event(runtime_.device())};
}

std::optional<Evaluator::Result> Evaluator::run(int64_t steps, const std::atomic<int>* stop) {
  if (!fresh_ && !continues_) reader_->reset(cache_.behind());
  fresh_ = false;
  scores_.clear();
  for (const ResultTensor& prediction : predictions_) scores_.emplace_back(metrics_, prediction.spec.row_elements());
  loss_sums_.assign(losses_.size(), 0);
  Result result;
  std::optional<Running> running;
  for (int64_t batch = 0; !batches_ || batch < *batches_; ++batch) {
    std::optional<Running> next;
    std::optional<Error> failed;
    try {
      next = fetch(batch);
    } catch (...) {
      failed = current_error();
    }
    if (comm_.any(failed || (stop && *stop != 0))) {  // also keeps ranks together, and finds one that hangs
      throw_on_all_ranks(comm_, failed);
      runtime_.compute_stream().synchronize();
      return std::nullopt;
    }
    if (!next) break;
    start(*next, steps);
    if (running) add_results(*running, result);
    running = next;
  }
  if (running) add_results(*running, result);
  run_on_all_ranks(comm_, [&] { model_.check_keys(); });
  if (result.samples == 0) return result;
  for (size_t l = 0; l < loss_sums_.size(); ++l)
    result.metrics[l == 0 ? "AverageLoss" : "AverageLoss/" + tasks_[l - 1]] =
        loss_sums_[l] / static_cast<double>(result.samples);
  result.metrics.merge(merged_values());
  return result;
}

std::map<std::string, double> Evaluator::merged_values() {
  std::map<std::string, double> values;
  for (size_t t = 0; t < scores_.size(); ++t) {
    if (comm_.size() > 1) {
      const auto states = comm_.gather(comm_.rank() == 0 ? "" : scores_[t].state(), 0);
      for (size_t r = 1; r < states.size(); ++r) scores_[t].merge(states[r]);
    }
    for (const auto& [name, value] : scores_[t].values()) {
      double merged = value;
      const std::string of_rank_0 = comm_.broadcast({reinterpret_cast<const char*>(&merged), sizeof merged}, 0);
      std::memcpy(&merged, of_rank_0.data(), sizeof merged);
      values[t == 0 ? name : name + "/" + tasks_[t]] = merged;
    }
  }
  return values;
}

/// The next batch, from the cache or from the reader; nothing at the end of the set.
std::optional<Evaluator::Running> Evaluator::fetch(int64_t batch) {
  if (batch < cache_.size()) return Running{kBuffers + static_cast<int>(batch % kBuffers), batch};
  const std::optional<int> buffer = reader_->next();
  if (!buffer) return std::nullopt;
  check_.expect(ring_.on_host(*buffer), reader_->samples_estimated() ? 0 : reader_->samples());
  return Running{*buffer, std::nullopt};
}

void Evaluator::start(const Running& batch, int64_t steps) {
  const StreamRef stream = runtime_.compute_stream();
  if (batch.cached) cache_.restore(stream, ring_, batch.buffer, *batch.cached);
  StepState& state = ring_.state(batch.buffer);
  state.step = steps;
  buffers_[static_cast<size_t>(batch.buffer)].program.run();
  if (!batch.cached && cache_.has_capacity())
    cache_.keep(stream, ring_, batch.buffer, groups(batch.buffer, state.valid_samples), reader_->position());
  buffers_[static_cast<size_t>(batch.buffer)].done.record(stream);
}

void Evaluator::add_results(const Running& batch, Result& total) {
  buffers_[static_cast<size_t>(batch.buffer)].done.synchronize();
  const StepState& state = ring_.state(batch.buffer);
  for (size_t l = 0; l < losses_.size(); ++l)
    loss_sums_[l] += static_cast<double>(*result(batch.buffer, losses_[l])) * state.global_samples;
  const auto of_rows = batch.cached ? cache_.groups(*batch.cached) : groups(batch.buffer, state.valid_samples);
  for (size_t t = 0; t < scores_.size(); ++t)
    scores_[t].add(view(batch.buffer, predictions_[t]), view(batch.buffer, labels_[t]), of_rows, state.valid_samples);
  total.samples += state.global_samples;
  if (!batch.cached) reader_->release(batch.buffer);
}

}  // namespace hctr
