// When the calls of all embeddings run in a training step, among those of the dense layers: one schedule for a single
// rank, and one for several ranks, which exchange vectors and gradients while dense layers compute.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/comm/communicator.h"
#include "engine/exchange/rank_embedding.h"
#include "net/model/gradient_exchange.h"
#include "net/model/loss_scaler.h"
#include "net/model/network.h"
#include "net/model/side_stream.h"

namespace hctr {

using Embeddings = std::vector<std::unique_ptr<Embedding>>;

/// Calls are made in the order of their declarations. Nodes ascend in forward and descend in backward. `ctx`: a context
/// of the compute stream.
class EmbeddingSchedule {
 public:
  virtual ~EmbeddingSchedule() = default;

  /// Starts the lookups of the batch in `buffer`. `also`: queues work that must come before the loss, on any stream.
  virtual void begin_forward(Context& ctx, int buffer, const std::function<void(Context&)>& also) = 0;
  /// Call before `node` is queued, on the context that is returned. The vectors that `node` is the first to read are
  /// complete for work queued from now on.
  virtual Context before_forward(Context& ctx, int buffer, size_t node) = 0;
  /// Call once the gradients of the inputs of `node` are queued. The gradients of the embeddings that `node` is the
  /// first to read are then complete, and are sent to the owners of their rows. `scaler`: searches them for overflow;
  /// null: no search.
  virtual void after_backward(Context& ctx, int buffer, size_t node, const LossScaler* scaler) = 0;
  /// Ends the exchange of gradients, and does what does not depend on whether the step is skipped.
  virtual void receive_gradients(Context& ctx, int buffer) = 0;
  /// Updates all tables. `may_skip`: work queued on `ctx` decides whether the step is skipped, so the update waits for
  /// it. Without it, one rank's update waits for receive_gradients() alone. Join the side stream after it.
  virtual void update(Context& ctx, int buffer, bool may_skip) = 0;

  /// body(context, e) for every embedding e, as `part` of a profile. Outside of training steps, and on any stream.
  virtual void for_each(Context& ctx, const char* part, const std::function<void(Context&, size_t e)>& body) = 0;
  /// The same for calls of a step or its preparation in which ranks wait for each other at most once: on a GPU the
  /// tables' kernels of one kind run as one, on several ranks too where these exchange by kernels.
  virtual void for_each_together(Context& ctx, const char* part, const std::function<void(Context&, size_t e)>& body) {
    for_each(ctx, part, body);
  }
};

/// On one rank: lookups run on the compute stream, or on the side stream where layers come first that need no vectors
/// (the lookup of a single table and these layers have shares of the multiprocessors, where products can be held to
/// some); those of tables with other kernels on a stream of their own. What follows the gradients runs on the side
/// stream, concurrently with the gradients and the update of dense weights. On a GPU the tables' kernels of one kind
/// run as one. The arguments outlive the schedule.
std::unique_ptr<EmbeddingSchedule> local_schedule(const Embeddings&, const Network&, const Runtime&, SideStream&);

/// On several ranks: exchanges run on the side stream, in one order on every rank. Where ranks write to each other's
/// memory, the tables' kernels of one kind run as one, and those of tables with other kernels on a stream of their own.
/// All-reduces of the gradients of replicated rows are ordered with those of dense weights. `outside`: whether the side
/// stream stays outside of what is recorded. Its recording has two pieces then: one to the end of the backward pass,
/// and what follows. The arguments outlive the schedule.
std::unique_ptr<EmbeddingSchedule> distributed_schedule(const Embeddings&, const Network&, Runtime&, SideStream&,
                                                        GradientExchange&, bool outside);

}  // namespace hctr
