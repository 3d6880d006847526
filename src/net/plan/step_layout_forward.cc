// The calls of a step from the look-up to the loss.
#include <algorithm>

#include "net/plan/step_layout.h"

namespace hctr {

void StepLayout::begin_alone() {
  if (!choices_.element_tables.empty()) {
    order(kCompute, kElements);
    add(Part::look_up, kElements, group(choices_.element_tables, true));
  }
  const On stream = choices_.lookups_aside ? kExchange : kCompute;
  if (choices_.lookups_aside) order(kCompute, kExchange);
  if (facts_.may_skip) add(Part::begin_scale, stream);
  if (choices_.copies_early) early_weight_copies();
  if (!main_.empty())
    add(Part::look_up, stream, group(main_, true)).multiprocessors = choices_.shares ? choices_.shares->others : 0;
}

void StepLayout::early_weight_copies() {
  if (facts_.computes_before_embeddings()) {
    add(Part::copy_weights).end = facts_.first_reader();
  } else {
    order(kCompute, On::layers);
    add(Part::copy_weights, On::layers).end = facts_.layers.size();
  }
}

void StepLayout::begin_on_ranks() {
  if (facts_.may_skip) add_exchange(Part::begin_scale, kCompute);
  order(kCompute, kExchange, choices_.outside);
  if (!choices_.element_tables.empty()) order(kCompute, kElements, choices_.outside);
  send_vectors();
  add_tables(Part::expect_gradients);  // posts receives early, so that no rank waits for them later
  end_piece();
}

void StepLayout::send_vectors() {
  if (!choices_.element_tables.empty())
    add_tables(Part::send_vectors);
  else if (choices_.tables_merged)
    add_exchange(Part::send_vectors, kExchange, group(all_, true));
  for (const size_t e : all_) {
    if (!choices_.tables_merged) add_exchange(Part::send_vectors, kExchange, group({e}, false));
    if (!facts_.tables[e].replicated_rows)
      vectors_sent_[e] = record(is_apart(e) ? kElements : kExchange, choices_.outside);
  }
  for (const size_t e : all_) {  // replicated rows come last, because other ranks do not wait for them
    if (!facts_.tables[e].replicated_rows) continue;
    add_exchange(Part::fill_vectors, kExchange, e);
    vectors_sent_[e] = record(kExchange, choices_.outside);
  }
}

void StepLayout::forward() {
  if (facts_.bag_lengths) add(Part::bag_lengths);
  if (facts_.copies_dense) add(Part::convert_dense);
  if (facts_.any_weight_copies()) weight_copies();
  for (size_t n = 0; n < facts_.layers.size(); ++n) {
    before_forward(n);
    if (forward_joins_.contains(n)) order(On::layers, kCompute);
    if (!facts_.layers[n].run_by_loss) forward_layer(n);
  }
}

/// Queues the weight copies that early_weight_copies() has not queued. If copies run on the layers stream, the first
/// layer that may read them waits for that stream.
void StepLayout::weight_copies() {
  if (!choices_.copies_early) {
    add(Part::copy_weights).end = facts_.layers.size();
  } else if (facts_.computes_before_embeddings()) {
    order(kCompute, On::layers);
    PlannedCall& rest = add(Part::copy_weights, On::layers, facts_.first_reader());
    rest.end = facts_.layers.size();
    forward_joins_.insert(facts_.first_reader());
  } else {
    forward_joins_.insert(0);
  }
}

/// Completes, on the compute stream, the vectors of all tables whose first reader is `node`.
void StepLayout::before_forward(size_t node) {
  const std::vector<size_t>& needed = facts_.layers[node].first_reads;
  if (needed.empty()) return;
  if (facts_.alone()) {
    if (choices_.lookups_aside) order(kExchange, kCompute);
    if (std::ranges::any_of(needed, [&](size_t e) { return is_apart(e); })) order(kElements, kCompute);
    return;
  }
  for (const size_t e : needed)
    // queues a short call, which zeroes the vectors that are not received
    if (!facts_.tables[e].replicated_rows) add(Part::fill_vectors, kCompute, e);
  for (const size_t e : needed) {
    wait(kCompute, vectors_sent_[e]);
    add(Part::combine_vectors, kCompute, e);
  }
}

void StepLayout::forward_layer(size_t node) {
  const LayerFacts& layer = facts_.layers[node];
  if (choices_.layers_aside && layer.concurrent_until) {
    order(kCompute, On::layers);
    add(Part::forward, On::layers, node);
    forward_joins_.insert(*layer.concurrent_until);
  } else {
    const bool shares = choices_.shares && node < facts_.first_reader();
    add(Part::forward, kCompute, node).multiprocessors = shares ? choices_.shares->products : 0;
  }
}

void StepLayout::end_forward() {
  if (facts_.several_losses) add(Part::sum_losses);
  if (facts_.penalty) add(Part::penalty);
  wait(kExchange, record(kCompute), choices_.outside);
  if (!facts_.alone()) add_exchange(Part::all_reduce_loss);
  // The table updates come after report_loss: they are queued later on this stream, or start later on another stream.
  add_exchange(Part::report_loss);
  loss_known_ = record(kExchange, choices_.outside);
}

}  // namespace hctr
