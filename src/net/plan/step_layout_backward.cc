// The calls of a step from the loss to the updates.
#include <algorithm>
#include <utility>

#include "net/plan/step_layout.h"

namespace hctr {

void StepLayout::backward() {
  const size_t reader = facts_.first_reader();
  for (size_t n = facts_.layers.size(); n-- > 0;) {
    const LayerFacts& layer = facts_.layers[n];
    if (!layer.trained) continue;
    if (layer.own_memory) flush_wgrads();
    backward_layer(n);
    flush_apart();
    if (n == choices_.reduction_behind)
      reduce_embeddings(reader);
    else if (n != reader)
      reduce_embeddings(n);
    if (n == reader && std::exchange(holds_, false)) add(Part::grouped_sums);
    add_wgrads(n);
    const bool products_left = grouped_ > 0 || std::ranges::any_of(waiting_, &Waiting::grouped);
    if (n == reader && choices_.prefetch_at_embeddings && products_left) {
      order(kCompute, On::signal);
      add(Part::prefetch_point, On::signal);
      plan_.has_prefetch_point = true;
    }
  }
  finish_wgrads();
}

/// Queues the backward pass of `node`, and then those of the concurrent layers whose reader is `node`.
void StepLayout::backward_layer(size_t node) {
  if (started_.contains(node)) {
    order(On::layers, kCompute);
  } else {
    add(Part::backward, kCompute, node);
    grouped_ += facts_.layers[node].grouped_in_backward;
  }
  for (const size_t e : facts_.layers[node].first_reads) add(Part::sum_contributions, kCompute, e);
  for (size_t earlier = 0; choices_.layers_aside && earlier < node; ++earlier) {
    if (facts_.layers[earlier].concurrent_until != node) continue;
    order(kCompute, On::layers);
    add(Part::backward, On::layers, earlier);
    grouped_ += facts_.layers[earlier].grouped_in_backward;
    started_.insert(earlier);
  }
}

/// For tables whose first reader is `node`, sends the gradients to the owner ranks.
void StepLayout::reduce_embeddings(size_t node) {
  if (node >= facts_.layers.size()) return;
  const std::vector<size_t>& complete = facts_.layers[node].first_reads;
  if (facts_.alone()) {
    if (!complete.empty()) order(kCompute, kExchange);
    for (const size_t e : complete) {
      add(Part::send_gradients, kExchange, e);
      if (is_apart(e)) order(kExchange, kElements);
    }
    return;
  }
  for (const size_t e : complete) {
    if (facts_.tables[e].replicated_rows) {
      summed_[e] = plan_.event_crosses.size();
      plan_.event_crosses.push_back(false);
      recorded_.push_back({false, piece_});
      add(Part::sum_replicated, kCompute, e).end = *summed_[e];
    }
    if (is_apart(e)) {
      order(kCompute, kElements);
      add(Part::send_gradients, kElements, e);
    } else {
      wait(kExchange, record(kCompute), choices_.outside);
      add_exchange(Part::send_gradients, kExchange, e);
    }
  }
}

void StepLayout::add_wgrads(size_t node) {
  const LayerFacts& layer = facts_.layers[node];
  holds_ = holds_ || choices_.held_from == node;
  if (layer.wgrad == ops::WeightGradientRun::apart && choices_.wgrads_aside) {
    order(kCompute, On::weights);
    apart_.push_back(node);
  } else {
    waiting_.push_back({node, layer.wgrad == ops::WeightGradientRun::together});
  }
}

void StepLayout::flush_wgrads() {
  if (holds_) return;
  for (const auto& [node, grouped] : std::exchange(waiting_, {})) {
    const LayerFacts& layer = facts_.layers[node];
    if (layer.weight_gradients && !layer.weights_in_backward) {
      add(Part::weight_gradients, kCompute, node).grouped = grouped;
      grouped_ += grouped ? 1 : 0;
    }
    if (choices_.reads_wgrads[node]) start_grouped();
    if (layer.weight_gradients && facts_.penalty) add(Part::penalty_gradients, kCompute, node);
    if (layer.sums_over_ranks) add(Part::all_reduce_weights, kCompute, node);
  }
}

void StepLayout::start_grouped() {
  if (facts_.gpu) add(Part::grouped_all);
  grouped_ = 0;
}

/// Called after the next layer's backward pass is queued, so that the GPU starts the backward pass first.
void StepLayout::flush_apart() {
  for (const size_t node : apart_) add(Part::weight_gradients, On::weights, node);
  uses_weights_stream_ = uses_weights_stream_ || !apart_.empty();
  apart_.clear();
}

void StepLayout::finish_wgrads() {
  flush_wgrads();
  flush_apart();
  if (grouped_ == 0) {
    start_grouped();
  } else if (choices_.products_first) {
    order(kCompute, On::weights);
    uses_weights_stream_ = true;
    add(Part::grouped_products);
    add(Part::grouped_sums, On::weights);
    if (choices_.skip_known_early) know_skip_early();
  } else {
    add(Part::grouped_sums);
    add(Part::grouped_products);
  }
  if (uses_weights_stream_) order(On::weights, kCompute);
}

void StepLayout::know_skip_early() {
  add_tables(Part::receive_gradients);
  order(On::weights, kExchange);
  add(Part::search_operands, kExchange);
  skip_known_ = record(kExchange);
  update_rows(true, kExchange);
}

void StepLayout::update() {
  skip_known_ ? wait(kCompute, *skip_known_) : update_tables();
  wait(kCompute, loss_known_);
  if (facts_.fp8) add(Part::update_fp8_scales);
  add(Part::update_weights);
  if (plan_.has_prefetch_point) order(On::signal, kCompute);
  order(kExchange, kCompute, choices_.outside);
  end_piece();
}

/// Called once all gradients are queued.
void StepLayout::update_tables() {
  if (!facts_.may_skip) {
    add_tables(Part::receive_gradients);
    update_rows(false, kCompute);
    wait_all_reduces();  // waits here and not earlier, so that the last all-reduce overlaps the table updates
    return end_piece();
  }
  wait_all_reduces();
  // Waits for the overflow check of sent gradients. Received gradients are not checked.
  if (!facts_.alone() && !choices_.element_tables.empty()) order(kElements, kCompute);
  order(kExchange, kCompute, choices_.outside);
  end_piece();
  add_tables(Part::receive_gradients);
  add(Part::search_gradients);
  update_rows(true, kCompute);
}

/// `decided_on`: the stream of the skip decision, if the step may be skipped.
void StepLayout::update_rows(bool may_skip, On decided_on) {
  const bool elements = !choices_.element_tables.empty();
  if (!facts_.alone()) {
    const size_t complete = record(kCompute);
    wait(kExchange, complete, choices_.outside);
    if (elements) wait(kElements, complete, choices_.outside);
    add_tables(Part::update_rows);
  } else {
    if (may_skip && decided_on != kExchange) order(decided_on, kExchange);
    if (!main_.empty()) add(Part::update_rows, kExchange, group(main_, true));
    if (!elements) return;
    if (may_skip) order(decided_on, kElements);
    add(Part::update_rows, kElements, group(choices_.element_tables, true));
  }
  if (elements) order(kElements, kExchange, choices_.outside);
}

}  // namespace hctr
