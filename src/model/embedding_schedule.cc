#include "model/embedding_schedule.h"

#include "device/lockstep.h"

namespace hctr {
namespace {

ops::OverflowSearch search(const LossScaler* scaler, DType exchange) {
  return scaler ? scaler->search(exchange) : ops::OverflowSearch{};
}

}  // namespace

void LocalSchedule::for_each(Context& ctx, const std::function<void(Context&, size_t e)>& body) {
  Lockstep tables(ctx);
  for (size_t e = 0; e < tables_.size(); ++e) {
    Context own = tables.next();
    body(own, e);
  }
  tables.run();
}

void LocalSchedule::begin_forward(Context& ctx, int buffer) {
  for_each(ctx, [&](Context& own, size_t e) { tables_[e]->forward(own, buffer, network_.embedding_output(e)); });
}

void LocalSchedule::after_backward(Context& ctx, int buffer, size_t node, const LossScaler* scaler) {
  for (const size_t e : network_.first_reads(node))
    tables_[e]->send_gradients(ctx, buffer, network_.embedding_gradient(e), search(scaler, DType::f32));
}

void LocalSchedule::receive_gradients(Context& ctx, int buffer) {
  for_each(ctx,
           [&](Context& own, size_t e) { tables_[e]->receive_gradients(own, buffer, network_.embedding_gradient(e)); });
}

void LocalSchedule::update(Context& ctx, int buffer) {
  for_each(ctx, [&](Context& own, size_t e) { tables_[e]->update(own, buffer, network_.embedding_gradient(e)); });
}

DistributedSchedule::DistributedSchedule(const Embeddings& tables, const Network& network, Runtime& runtime,
                                         SideStream& side_stream, GradientExchange& gradients)
    : tables_(tables), network_(network), side_stream_(side_stream), gradients_(gradients) {
  for (size_t e = 0; e < tables.size(); ++e) {
    vectors_sent_.emplace_back(runtime.device());
    gradients_summed_.emplace_back(runtime.device());
  }
}

/// In a fixed order, so that collectives have the same order on every rank.
void DistributedSchedule::for_each(Context& ctx, const std::function<void(Context&, size_t e)>& body) {
  for (size_t e = 0; e < tables_.size(); ++e) body(ctx, e);
}

void DistributedSchedule::begin_forward(Context& ctx, int buffer) {
  Context exchange = side_stream_.after(ctx);
  for (size_t e = 0; e < tables_.size(); ++e) {
    tables_[e]->send_vectors(exchange, buffer);
    if (!tables_[e]->has_replicated_rows()) vectors_sent_[e].record(exchange.stream());
  }
  for (size_t e = 0; e < tables_.size(); ++e) {  // last, since no other rank waits for it
    if (!tables_[e]->has_replicated_rows()) continue;
    tables_[e]->fill_local_vectors(exchange, buffer, network_.embedding_output(e));
    vectors_sent_[e].record(exchange.stream());
  }
}

void DistributedSchedule::before_forward(Context& ctx, int buffer, size_t node) {
  for (const size_t e : network_.first_reads(node))
    if (!tables_[e]->has_replicated_rows())  // these are zeros, and few
      tables_[e]->fill_local_vectors(ctx, buffer, network_.embedding_output(e));
  for (const size_t e : network_.first_reads(node)) {
    vectors_sent_[e].make_wait(ctx.stream());
    tables_[e]->forward(ctx, buffer, network_.embedding_output(e));
  }
}

void DistributedSchedule::after_backward(Context& ctx, int buffer, size_t node, const LossScaler* scaler) {
  const std::vector<size_t>& complete = network_.first_reads(node);
  if (complete.empty()) return;
  Context exchange = side_stream_.after(ctx);
  for (const size_t e : complete) {
    const Tensor gradient = network_.embedding_gradient(e);
    if (tables_[e]->has_replicated_rows())
      gradients_.sum_on_side_stream(
          exchange, [&](Context& own) { tables_[e]->sum_gradients(own, buffer, gradient); }, gradients_summed_[e]);
    tables_[e]->send_gradients(exchange, buffer, gradient, search(scaler, tables_[e]->spec().exchange));
  }
}

void DistributedSchedule::receive_gradients(Context& ctx, int buffer) {
  Context exchange = side_stream_.context(ctx);
  for_each(exchange,
           [&](Context& own, size_t e) { tables_[e]->receive_gradients(own, buffer, network_.embedding_gradient(e)); });
}

void DistributedSchedule::update(Context& ctx, int buffer) {
  Context exchange = side_stream_.after(ctx);
  for_each(exchange, [&](Context& own, size_t e) {
    if (tables_[e]->has_replicated_rows()) gradients_summed_[e].make_wait(own.stream());
    tables_[e]->update(own, buffer, network_.embedding_gradient(e));
  });
}

}  // namespace hctr
