#include "net/model/embedding_schedule.h"

#include <algorithm>

#include "core/device/lockstep.h"
#include "core/device/profiler.h"
#include "ops/gemm/linear.h"

namespace hctr {
namespace {

constexpr const char* kTable = "embedding";

ops::OverflowSearch search(const LossScaler* scaler, DType exchange) {
  return scaler ? scaler->search(exchange) : ops::OverflowSearch{};
}

/// body(context, e) for these tables, whose kernels of one kind start as one on a GPU.
void run_together(const Embeddings& tables, const std::vector<size_t>& some, Context ctx, const char* part,
                  const std::function<void(Context&, size_t e)>& body) {
  if (some.empty()) return;
  Lockstep together(ctx);
  std::optional<ProfiledPart> all;  // of tables whose kernels start together
  if (together.collects()) all.emplace(ctx, part, kTable, "all tables");
  for (const size_t e : some) {
    Context own = together.next();
    const auto one =
        all ? std::nullopt : std::optional<ProfiledPart>(std::in_place, own, part, kTable, tables[e]->spec().name);
    body(own, e);
  }
  together.run();
}

/// Whether vectors are summed and updated element by element. Such tables have other kernels than those with four
/// elements an access: they never start together, so they run concurrently, on a stream of their own.
bool is_by_element(Embedding& table) { return table.spec().dim % 4 != 0; }

class LocalSchedule : public EmbeddingSchedule {
 public:
  LocalSchedule(const Embeddings& tables, const Network& network, const Runtime& runtime, SideStream& side_stream)
      : tables_(tables),
        network_(network),
        side_stream_(side_stream),
        element_stream_(side_stream.device()),
        element_side_(element_stream_),
        looks_up_aside_(!tables.empty() && network.computes_before_embeddings()) {
    if (looks_up_aside_ && tables.size() == 1 && network.has_relu_before_embeddings()) {
      const Tensor vectors = network.embedding_output(0);
      const bool tf32 = runtime.options().tf32 && !runtime.options().tf32x3;
      shares_ = ops::shares_beside_lookup(side_stream.device(), vectors.dtype(), tf32, vectors.dim(0));
    }
    for (size_t e = 0; e < tables.size(); ++e) (is_by_element(*tables[e]) ? by_element_ : by_four_).push_back(e);
    if (by_four_.empty()) by_four_.swap(by_element_);
  }

  void for_each(Context& ctx, const char* part, const std::function<void(Context&, size_t e)>& body) override {
    std::vector<size_t> together;
    for (size_t e = 0; e < tables_.size(); ++e) {
      if (!tables_[e]->may_be_on_disk()) {
        together.push_back(e);
        continue;
      }
      const ProfiledPart profiled(ctx, part, kTable, name(e));
      body(ctx, e);  // in evaluations the host reads what its kernels find, so they start at once
    }
    for_some(ctx, part, together, body);
  }

  Context before_forward(Context& ctx, int, size_t node) override {
    first_layers_ = first_layers_ ? network_.first_reads(node).empty() : node == 0;
    const std::vector<size_t>& needed = network_.first_reads(node);
    if (looks_up_aside_ && !needed.empty()) side_stream_.join(ctx);
    if (std::any_of(needed.begin(), needed.end(), [&](size_t e) { return is_apart(e); })) element_side_.join(ctx);
    return shares_ && first_layers_ ? ctx.with_multiprocessors(shares_->products) : ctx;
  }

  void begin_forward(Context& ctx, int buffer, const std::function<void(Context&)>& also) override {
    if (!by_element_.empty()) look_up(element_side_.after(ctx), buffer, by_element_);
    Context own = looks_up_aside_ ? side_stream_.after(ctx) : ctx;
    also(own);
    look_up(shares_ ? own.with_multiprocessors(shares_->others) : own, buffer, by_four_);
  }

  void after_backward(Context& ctx, int buffer, size_t node, const LossScaler* scaler) override {
    if (network_.first_reads(node).empty()) return;
    Context side = side_stream_.after(ctx);
    for (const size_t e : network_.first_reads(node)) {
      const ProfiledPart part(side, "overflow search", kTable, name(e));
      const LossScaler* const of_table = network_.searches_overflow(e) ? nullptr : scaler;
      tables_[e]->send_gradients(side, buffer, network_.embedding_gradient(e), search(of_table, DType::f32));
      if (is_apart(e)) element_side_.after(side);
    }
  }

  /// The side streams wait for the gradients of their embeddings alone: those of the weights of the first layers are
  /// computed at the same time.
  void receive_gradients(Context& ctx, int buffer) override {
    const auto body = [&](Context& own, size_t e) {
      tables_[e]->receive_gradients(own, buffer, network_.embedding_gradient(e));
    };
    for_some(side_stream_.context(ctx), "sum of gradients", by_four_, body);
    for_some(element_side_.context(ctx), "sum of gradients", by_element_, body);
  }

  void update(Context& ctx, int buffer, bool may_skip) override {
    const auto body = [&](Context& own, size_t e) { tables_[e]->update(own, buffer, network_.embedding_gradient(e)); };
    Context side = may_skip ? side_stream_.after(ctx) : side_stream_.context(ctx);
    for_some(side, "update", by_four_, body);
    if (by_element_.empty()) return;
    for_some(may_skip ? element_side_.after(ctx) : element_side_.context(ctx), "update", by_element_, body);
    element_side_.join(side);
  }

 private:
  bool is_apart(size_t e) const { return !by_element_.empty() && is_by_element(*tables_[e]); }

  void look_up(Context ctx, int buffer, const std::vector<size_t>& some) {
    for_some(ctx, "forward", some,
             [&](Context& own, size_t e) { tables_[e]->forward(own, buffer, network_.embedding_output(e)); });
  }

  void for_some(Context ctx, const char* part, const std::vector<size_t>& some,
                const std::function<void(Context&, size_t e)>& body) {
    run_together(tables_, some, ctx, part, body);
  }

  const std::string& name(size_t e) const { return tables_[e]->spec().name; }
  const Embeddings& tables_;
  const Network& network_;
  SideStream& side_stream_;
  Stream element_stream_;
  SideStream element_side_;
  std::optional<ops::MultiprocessorShares> shares_;  // of the first layers, and of the lookup beside them
  bool first_layers_ = false;                        // the last node that was queued is one of them
  bool looks_up_aside_;  // while layers run that need no vectors, as the first ones of DLRM for its dense values
  std::vector<size_t> by_four_,
      by_element_;  // by_element_: those on a stream of their own; none if there are no others
};

class DistributedSchedule : public EmbeddingSchedule {
 public:
  DistributedSchedule(const Embeddings& tables, const Network& network, Runtime& runtime, SideStream& side_stream,
                      GradientExchange& gradients, bool outside)
      : tables_(tables),
        network_(network),
        side_stream_(side_stream),
        gradients_(gradients),
        gradients_complete_(runtime.device()),
        element_stream_(runtime.device(), StreamPriority::exchange),
        element_side_(element_stream_),
        by_kernels_(std::all_of(tables.begin(), tables.end(),
                                [](const auto& table) { return table->exchanges_by_kernels(); })) {
    for (size_t e = 0; e < tables.size(); ++e) {
      all_.push_back(e);
      (may_be_apart(*tables[e]) ? apart_ : others_).push_back(e);
    }
    if (others_.empty()) others_.swap(apart_);
    for (size_t e = 0; e < tables.size(); ++e)
      for (auto* events : {&vectors_sent_, &gradient_complete_, &gradients_summed_}) {
        events->emplace_back(runtime.device());
        if (!outside) events->back().stay_inside();
      }
    if (!outside) gradients_complete_.stay_inside();
  }

  /// In a fixed order, so that collectives have the same order on every rank.
  void for_each(Context& ctx, const char* part, const std::function<void(Context&, size_t e)>& body) override {
    for (size_t e = 0; e < tables_.size(); ++e) {
      const ProfiledPart profiled(ctx, part, kTable, name(e));
      body(ctx, e);
    }
  }

  /// Kernels of all tables that wait for other ranks come in one order on every rank: each table has the same calls.
  void for_each_together(Context& ctx, const char* part, const std::function<void(Context&, size_t e)>& body) override {
    const auto on_disk = [](const auto& table) { return table->may_be_on_disk(); };
    if (!by_kernels_ || std::any_of(tables_.begin(), tables_.end(), on_disk)) return for_each(ctx, part, body);
    run_together(tables_, all_, ctx, part, body);
  }

  void begin_forward(Context& ctx, int buffer, const std::function<void(Context&)>& also) override {
    side_stream_.call(ctx, [this, buffer, also](Context& own) {
      also(own);
      Context exchange = side_stream_.after(own);
      if (!apart_.empty()) element_side_.after(own);
      send_vectors(exchange, buffer);
      // Early, so that nobody waits for it later.
      on_streams(exchange, "send gradients", [&](Context& each, size_t e) { tables_[e]->expect_gradients(each); });
    });
    side_stream_.end_piece();
  }

  Context before_forward(Context& ctx, int buffer, size_t node) override {
    for (const size_t e : network_.first_reads(node))
      if (!tables_[e]->has_replicated_rows())  // these are zeros, and few
        tables_[e]->fill_local_vectors(ctx, buffer, network_.embedding_output(e));
    for (const size_t e : network_.first_reads(node)) {
      vectors_sent_[e].make_wait(ctx.stream());
      const ProfiledPart part(ctx, "forward", kTable, name(e));
      tables_[e]->forward(ctx, buffer, network_.embedding_output(e));
    }
    return ctx;
  }

  void after_backward(Context& ctx, int buffer, size_t node, const LossScaler* scaler) override {
    const std::vector<size_t>& complete = network_.first_reads(node);
    for (const size_t e : complete) {
      const Tensor gradient = network_.embedding_gradient(e);
      if (tables_[e]->has_replicated_rows())
        gradients_.sum_on_side_stream(
            ctx,
            [&](Context& own) {
              const ProfiledPart part(own, "sum of gradients", kTable, name(e));
              tables_[e]->sum_gradients(own, buffer, gradient);
            },
            gradients_summed_[e]);
      // A gradient that is sent as it is has been searched where it was written; between hosts sums are sent.
      const DType exchanged = tables_[e]->spec().exchange;
      const bool searched = network_.searches_overflow(e) && gradient.dtype() == exchanged && tables_[e]->fixed_sizes();
      const auto send = [this, e, buffer, gradient,
                         found = search(searched ? nullptr : scaler, exchanged)](Context& exchange) {
        const ProfiledPart part(exchange, "send gradients", kTable, name(e));
        tables_[e]->send_gradients(exchange, buffer, gradient, found);
      };
      if (is_apart(e)) {
        Context element = element_side_.after(ctx);
        send(element);
      } else {
        side_stream_.run_after(ctx, gradient_complete_[e], send);
      }
    }
  }

  void receive_gradients(Context& ctx, int buffer) override {
    side_stream_.run(ctx, [this, buffer](Context& exchange) {
      on_streams(exchange, "sum of gradients", [&](Context& own, size_t e) {
        tables_[e]->receive_gradients(own, buffer, network_.embedding_gradient(e));
      });
    });
  }

  void update(Context& ctx, int buffer, bool) override {
    side_stream_.run_after(ctx, gradients_complete_, [this, buffer](Context& exchange) {
      if (!apart_.empty()) gradients_complete_.make_wait(element_stream_);
      on_streams(exchange, "update", [&](Context& own, size_t e) {
        if (tables_[e]->has_replicated_rows()) gradients_summed_[e].make_wait(own.stream());
        tables_[e]->update(own, buffer, network_.embedding_gradient(e));
      });
      if (!apart_.empty()) element_side_.join(exchange);
    });
  }

 private:
  bool may_be_apart(Embedding& table) const {
    return by_kernels_ && is_by_element(table) && !table.may_be_on_disk() && !table.has_replicated_rows();
  }
  bool is_apart(size_t e) const { return std::ranges::find(apart_, e) != apart_.end(); }

  /// As for_each_together(), but those of apart_ on their stream.
  void on_streams(Context& exchange, const char* part, const std::function<void(Context&, size_t e)>& body) {
    if (apart_.empty()) return for_each_together(exchange, part, body);
    run_together(tables_, apart_, element_side_.context(exchange), part, body);
    run_together(tables_, others_, exchange, part, body);
  }

  void send_vectors(Context& exchange, int buffer) {
    const auto send = [&](Context& own, size_t e) { tables_[e]->send_vectors(own, buffer); };
    if (!apart_.empty())
      on_streams(exchange, "send vectors", send);
    else if (by_kernels_)
      run_together(tables_, all_, exchange, "send vectors", send);
    for (size_t e = 0; e < tables_.size(); ++e) {
      if (!by_kernels_) {
        const ProfiledPart part(exchange, "send vectors", kTable, name(e));
        send(exchange, e);
      }
      if (!tables_[e]->has_replicated_rows())
        vectors_sent_[e].record(is_apart(e) ? element_stream_ : exchange.stream());
    }
    for (size_t e = 0; e < tables_.size(); ++e) {  // last, since no other rank waits for it
      if (!tables_[e]->has_replicated_rows()) continue;
      const ProfiledPart part(exchange, "forward", kTable, name(e));
      tables_[e]->fill_local_vectors(exchange, buffer, network_.embedding_output(e));
      vectors_sent_[e].record(exchange.stream());
    }
  }

  const std::string& name(size_t e) const { return tables_[e]->spec().name; }
  const Embeddings& tables_;
  const Network& network_;
  SideStream& side_stream_;
  GradientExchange& gradients_;
  std::vector<CrossingEvent> vectors_sent_;       // [table] the side stream has sent and filled its vectors
  std::vector<CrossingEvent> gradient_complete_;  // [table] of its vectors
  std::vector<CrossingEvent> gradients_summed_;   // [table] the all-reduce of its replicated rows
  CrossingEvent gradients_complete_;              // of everything, and it is known whether the step is skipped
  Stream element_stream_;
  SideStream element_side_;
  bool by_kernels_;                           // Embedding::exchanges_by_kernels(), of all tables
  std::vector<size_t> all_, apart_, others_;  // tables; apart_: those on a stream of their own, or none
};

}  // namespace

std::unique_ptr<EmbeddingSchedule> local_schedule(const Embeddings& tables, const Network& network,
                                                  const Runtime& runtime, SideStream& side_stream) {
  return std::make_unique<LocalSchedule>(tables, network, runtime, side_stream);
}

std::unique_ptr<EmbeddingSchedule> distributed_schedule(const Embeddings& tables, const Network& network,
                                                        Runtime& runtime, SideStream& side_stream,
                                                        GradientExchange& gradients, bool outside) {
  return std::make_unique<DistributedSchedule>(tables, network, runtime, side_stream, gradients, outside);
}

}  // namespace hctr
