// A training step of a model, and an evaluation of a batch: in which order, and on which streams, their parts are
// queued.
#include <algorithm>
#include <limits>

#include "core/device/profiler.h"
#include "net/model/replica.h"
#include "ops/embedding/bag_lengths.h"

namespace hctr {
namespace {

constexpr const char *kEmbedding = "embedding", *kWeights = "weights";  // in profiles

}  // namespace

void Replica::train_step(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch,
                         const Network::Binding& binding, const StepCallbacks& callbacks) {
  side_stream_.stay_outside(fixed_sizes() ? nullptr : recording);
  const LossScaler* const scaler = scaler_ ? &*scaler_ : nullptr;
  // Products without tensor cores fill the GPU longer than such layers take.
  const bool tensor_cores = config_.solver.mixed_precision.activations != DType::f32 || runtime_.options().tf32;
  SideStream* const beside = comm_.size() == 1 && fixed_sizes() && tensor_cores ? &beside_ : nullptr;
  std::function<void(Context&)> begin = [scaler, state = batch.state](Context& own) {
    if (scaler) scaler->begin(own, state);
  };
  if (beside)  // called at once: several ranks have none
    begin = [&, begin_scaled = std::move(begin)](Context& own) {
      begin_scaled(own);
      train_.before_lookup(ctx, binding, *beside);
    };
  schedule_->begin_forward(ctx, buffer, begin);
  {
    const ProfiledPart part(ctx, "forward", kEmbedding, "lengths of bags");
    write_lengths(ctx, batch, train_);
  }
  train_.forward(ctx, binding, [&](size_t node) { return schedule_->before_forward(ctx, buffer, node); }, beside);
  {
    const ProfiledPart part(ctx, "forward", kWeights, "penalty");
    add_penalties(ctx, train_);
  }
  side_stream_.run_after(ctx, loss_complete_, [this, loss_known = callbacks.loss_known](Context& exchange) {
    {
      const ProfiledPart part(exchange, "all-reduce", kWeights, "loss");
      comm_.all_reduce(exchange, train_.loss(), Reduce::sum);
    }
    if (loss_known) loss_known(exchange);  // before the updates of tables, which run on this stream or behind it
    loss_known_.record(exchange.stream());
  });

  // On one GPU, where the first layers read no embeddings, the gradients of weights are the last to be computed. In f16
  // they are finite if their operands are. So it is known before them whether the step is skipped, and tables are
  // updated beside them.
  bool known_early = false;
  const auto end_early = [&](Context& others, std::span<const Lockstep::LateResult> late) {
    schedule_->receive_gradients(others, buffer);
    Context side = side_stream_.after(others);
    {
      const ProfiledPart part(side, "overflow search", kWeights, "all weights");
      scaler->end(side, searched_instead_of(late), comm_, batch.state);
    }
    skip_known_.record(side.stream());
    schedule_->update(side, buffer, true);
    known_early = true;
  };
  using BeforeLate = decltype(Network::BackwardCallbacks::before_late);
  const bool early = scaler && comm_.size() == 1 && fixed_sizes();
  // The last node that gradients of tables wait for, and the one behind which their sums begin.
  const size_t reader = train_.first_reader();
  const size_t sums_behind = beside && train_.keeps_busy_before_embeddings(binding) ? reader - 1 : reader;
  bool told = false;
  const auto tell = [&](Context& own) {
    Context signal = signal_.after(own);  // a stream that delays nothing
    callbacks.embeddings_known(signal);
    told = true;
  };
  using Tell = decltype(Network::BackwardCallbacks::embeddings_known);

  train_.backward(ctx, binding,
                  {.inputs =
                       [&](size_t node) {
                         if (node == sums_behind)
                           schedule_->after_backward(ctx, buffer, reader, scaler);
                         else if (node != reader)
                           schedule_->after_backward(ctx, buffer, node, scaler);
                       },
                   .weights =
                       [&](size_t node) {
                         {
                           const ProfiledPart part(ctx, "weight gradients", kWeights, "penalty");
                           add_penalty_gradients(ctx, node);
                         }
                         gradients_.node_done(ctx, node, scaler ? scaler->search() : ops::OverflowSearch{});
                       },
                   .weights_reads = weights_reads(),
                   .weights_side = &weights_side_,
                   .beside = beside,
                   .products_behind_embeddings = products_behind_embeddings(),
                   .embeddings_known = beside && callbacks.embeddings_known ? tell : Tell(),
                   .before_late = early ? end_early : BeforeLate()});
  if (known_early)
    skip_known_.make_wait(ctx.stream());
  else
    update_tables(ctx, buffer, batch.state);
  loss_known_.make_wait(ctx.stream());
  fp8_scales_.finish(ctx, comm_);
  {
    const ProfiledPart part(ctx, "update", kWeights, "all weights", weights_.work_of_update());
    weights_.update(ctx);
  }
  if (told) signal_.join(ctx);
  side_stream_.join(ctx);
}

/// Kernels that send gradients take multiprocessors from the products behind them, copy engines do not.
size_t Replica::products_behind_embeddings() const {
  if (comm_.size() == 1) return 0;
  const auto by_engines = [](const auto& table) { return table->sends_gradients_by_engines(); };
  return std::ranges::any_of(tables_, by_engines) ? std::numeric_limits<size_t>::max() : 1;
}

std::function<bool(size_t)> Replica::weights_reads() const {
  if (has_penalty()) return [](size_t) { return true; };
  if (comm_.size() == 1) return {};
  return [this](size_t node) { return gradients_.sums_at(node); };
}

void Replica::update_tables(Context& ctx, int buffer, StepState* state) {
  if (!scaler_) {
    schedule_->receive_gradients(ctx, buffer);
    schedule_->update(ctx, buffer, false);
    gradients_.join(ctx);  // only here: the all-reduce of the first layers' gradients runs while tables are updated
    return side_stream_.end_piece();
  }
  gradients_.join(ctx);
  side_stream_.join(ctx);  // waits for the overflow search of sent gradients, but not for received ones
  schedule_->receive_gradients(ctx, buffer);
  {
    const ProfiledPart part(ctx, "overflow search", kWeights, "all weights");
    scaler_->end(ctx, gradients_.searches_sums() ? std::vector<Tensor>() : std::vector{weights_.all_gradients()}, comm_,
                 state);
  }
  schedule_->update(ctx, buffer, true);
}

std::vector<Tensor> Replica::searched_instead_of(std::span<const Lockstep::LateResult> late) const {
  std::vector<Tensor> results;
  for (const Lockstep::LateResult& one : late) results.push_back(one.result);
  std::vector<Tensor> searched = weights_.gradients_without(results);
  for (const Lockstep::LateResult& one : late)
    searched.insert(searched.end(), one.unsearched.begin(), one.unsearched.end());
  return searched;
}

void Replica::evaluate(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) {
  schedule_->for_each(ctx, "lookup", [&](Context& own, size_t e) {
    const size_t input = eval_graph_.embedding_inputs[e];
    tables_[e]->lookup(own, batch.keys[input], batch.offsets[input], evaluation_.embedding_output(e));
  });
  write_lengths(ctx, batch, evaluation_);
  evaluation_.forward(ctx, binding);
  // The penalty is part of the loss in evaluation too, for the size of a training batch, as the weights were trained.
  add_penalties(ctx, evaluation_);
  comm_.all_reduce(ctx, evaluation_.loss(), Reduce::sum);
  if (eval_graph_.losses.size() > 1)
    for (const Tensor& loss : evaluation_.losses()) comm_.all_reduce(ctx, loss, Reduce::sum);
}

void Replica::write_lengths(Context& ctx, const BatchTensors& batch, const Network& network) const {
  for (size_t e = 0; e < tables_.size(); ++e)
    if (const auto lengths = network.embedding_lengths(e))
      ops::bag_lengths(ctx, batch.offsets[train_graph_.embedding_inputs[e]].data<const int32_t>(), *lengths);
}

void Replica::add_penalties(Context& ctx, const Network& network) const {
  for (auto regularizer : network.regularizers()) {
    regularizer.lambda *= penalty_factors().loss;
    weights_.add_penalty(ctx, regularizer, config_.solver.batchsize, comm_.size(), network.loss());
  }
}

void Replica::add_penalty_gradients(Context& ctx, size_t node) const {
  for (auto regularizer : train_.regularizers()) {
    regularizer.lambda *= penalty_factors().gradient;
    weights_.add_penalty_gradients(ctx, node, regularizer, config_.solver.batchsize, comm_.size());
  }
}

bool Replica::has_penalty() const {
  const auto regularizers = train_.regularizers();
  return std::any_of(regularizers.begin(), regularizers.end(), [](const LossLayer::Regularizer& regularizer) {
    return regularizer.kind != LossLayer::Regularizer::Kind::none;
  });
}

Replica::PenaltyFactors Replica::penalty_factors() const {
  if (!config_.solver.compatibility.penalty_per_gpu) return {};
  const auto gpus = static_cast<double>(config_.solver.gpu.all ? comm_.size() : config_.solver.gpu.count());
  const Precision& precision = config_.solver.mixed_precision;
  return {gpus, gpus * gpus / (precision.dynamic_scale ? 1 : precision.loss_scale)};
}

}  // namespace hctr
