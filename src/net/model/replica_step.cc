// Runs a training step of a model by its step plan, and evaluates batches.
#include <algorithm>

#include "core/device/profiler.h"
#include "net/model/replica.h"
#include "net/model/step_layers.h"
#include "ops/embedding/bag_lengths.h"

namespace hctr {
namespace {

constexpr const char *kEmbedding = "embedding", *kWeights = "weights";  // names in profiles

}  // namespace

void Replica::train_step(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch,
                         const Binding& binding, const StepCallbacks& callbacks) {
  StepLayers layers(train_, binding, ctx);
  const StepOf step{buffer, batch, binding.plan, binding.events, callbacks};
  for (const PlannedCall& call : binding.plan->calls) {
    Context own = streams_.on(call.stream, ctx);
    if (call.part == StepPart::end_piece) {
      if (recording) recording->cut();
    } else if (call.outside) {
      outside(recording, ctx, [this, call, step](Context& caller) {
        Context later = streams_.on(call.stream, caller);
        if (!step.events->run(later, call) && !run_of_tables(later, call, step)) run_of_model(later, call, step, {});
      });
    } else if (!step.events->run(own, call) && !layers.run(own, call) && !run_of_tables(own, call, step)) {
      run_of_model(own, call, step, layers.grouped());
    }
    if (callbacks.queued && !call.outside) callbacks.queued(call);
  }
}

bool Replica::run_of_tables(Context& own, const PlannedCall& call, const StepOf& step) {
  const auto group = [&](const char* part, const TableCall& body) {
    Context ctx = call.multiprocessors > 0 ? own.with_multiprocessors(call.multiprocessors) : own;
    run_tables(tables_, step.plan->groups[call.index], ctx, part, body);
    return true;
  };
  const int buffer = step.buffer;
  switch (call.part) {
    case StepPart::look_up:
      return group("forward",
                   [&](Context& each, size_t e) { tables_[e]->forward(each, buffer, train_.embedding_output(e)); });
    case StepPart::send_vectors:
      return group("send vectors", [&](Context& each, size_t e) { tables_[e]->send_vectors(each, buffer); });
    case StepPart::expect_gradients:
      return group("send gradients", [&](Context& each, size_t e) { tables_[e]->expect_gradients(each); });
    case StepPart::receive_gradients:
      return group("sum of gradients", [&](Context& each, size_t e) {
        tables_[e]->receive_gradients(each, buffer, train_.embedding_gradient(e));
      });
    case StepPart::update_rows:
      return group("update",
                   [&](Context& each, size_t e) { tables_[e]->update(each, buffer, train_.embedding_gradient(e)); });
    case StepPart::fill_vectors:
    case StepPart::combine_vectors:
    case StepPart::sum_replicated:
    case StepPart::send_gradients:
      run_of_table(own, call, step);
      return true;
    default:
      return false;
  }
}

void Replica::run_of_table(Context& own, const PlannedCall& call, const StepOf& step) {
  Embedding& table = *tables_[call.index];
  const Tensor vectors = train_.embedding_output(call.index);
  const auto profiled = [&](Context& ctx, const char* part) {
    return ProfiledPart(ctx, part, kEmbedding, table.spec().name);
  };
  // On the compute stream, fill_vectors only zeroes the vectors that no rank sends. That is too short to profile.
  if (call.part == StepPart::fill_vectors && call.stream == StepStream::compute) {
    table.fill_local_vectors(own, step.buffer, vectors);
  } else if (call.part == StepPart::fill_vectors) {
    const ProfiledPart part = profiled(own, "forward");
    table.fill_local_vectors(own, step.buffer, vectors);
  } else if (call.part == StepPart::combine_vectors) {
    const ProfiledPart part = profiled(own, "forward");
    table.forward(own, step.buffer, vectors);
  } else if (call.part == StepPart::sum_replicated) {
    const auto sum = [&](Context& sums) {
      const ProfiledPart part = profiled(sums, "sum of gradients");
      table.sum_gradients(sums, step.buffer, train_.embedding_gradient(call.index));
    };
    gradients_.sum_on_side_stream(own, sum, (*step.events)[call.end]);
  } else {
    const ProfiledPart part = profiled(own, comm_.size() == 1 ? "overflow search" : "send gradients");
    const Tensor gradient = train_.embedding_gradient(call.index);
    table.send_gradients(own, step.buffer, gradient, search_of_table(call.index, gradient));
  }
}

ops::OverflowSearch Replica::search_of_table(size_t e, const Tensor& gradient) const {
  if (!scaler_) return {};
  const bool alone = comm_.size() == 1;
  const DType exchanged = alone ? DType::f32 : tables_[e]->spec().exchange;
  // If the gradient is sent unchanged, its writer has checked it. Between hosts, ranks send sums, which need a check.
  const bool as_it_is = alone || (gradient.dtype() == exchanged && tables_[e]->fixed_sizes());
  return train_.searches_overflow(e) && as_it_is ? ops::OverflowSearch{} : scaler_->search(exchanged);
}

void Replica::run_of_model(Context& ctx, const PlannedCall& call, const StepOf& step,
                           std::span<const Lockstep::LateResult> grouped) {
  const auto in_part = [&](const char* part, const char* type, const char* name, const auto& body) {
    const ProfiledPart profiled(ctx, part, type, name);
    body();
  };
  switch (call.part) {
    case StepPart::begin_scale:
      return scaler_->begin(ctx, step.batch.state);
    case StepPart::bag_lengths:
      return in_part("forward", kEmbedding, "lengths of bags", [&] { write_lengths(ctx, step.batch, train_); });
    case StepPart::penalty:
      return in_part("forward", kWeights, "penalty", [&] { add_penalties(ctx, train_); });
    case StepPart::all_reduce_loss:
      return in_part("all-reduce", kWeights, "loss", [&] { comm_.all_reduce(ctx, train_.loss(), Reduce::sum); });
    case StepPart::report_loss:
      if (step.callbacks.loss_known) step.callbacks.loss_known(ctx);
      return;
    case StepPart::prefetch_point:
      if (step.callbacks.prefetch_point) step.callbacks.prefetch_point(ctx);
      return;
    case StepPart::penalty_gradients:
      return in_part("weight gradients", kWeights, "penalty", [&] { add_penalty_gradients(ctx, call.index); });
    case StepPart::all_reduce_weights:
      return gradients_.node_done(ctx, call.index, scaler_ ? scaler_->search() : ops::OverflowSearch{});
    case StepPart::wait_all_reduces:
      return gradients_.join(ctx);
    case StepPart::search_operands:
      return in_part("overflow search", kWeights, "all weights",
                     [&] { scaler_->end(ctx, searched_instead_of(grouped), comm_, step.batch.state); });
    case StepPart::search_gradients:
      return in_part("overflow search", kWeights, "all weights", [&] {
        const auto searched =
            gradients_.searches_sums() ? std::vector<Tensor>() : std::vector{weights_.all_gradients()};
        scaler_->end(ctx, searched, comm_, step.batch.state);
      });
    case StepPart::update_fp8_scales:
      return fp8_scales_.finish(ctx, comm_);
    case StepPart::update_weights: {
      const ProfiledPart part(ctx, "update", kWeights, "all weights", weights_.work_of_update());
      return weights_.update(ctx);
    }
    default:
      throw Error(Kind::bug, cat("no handler runs '", name_of(call.part), "' of a step"));
  }
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
  run_tables(tables_, evaluation_groups(facts_of_tables_), ctx, "lookup", [&](Context& own, size_t e) {
    const size_t input = eval_graph_.embedding_inputs[e];
    tables_[e]->lookup(own, batch.keys[input], batch.offsets[input], evaluation_.embedding_output(e));
  });
  write_lengths(ctx, batch, evaluation_);
  evaluation_.forward(ctx, binding);
  // The evaluation loss includes the penalty, with the factor of a training batch.
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
