// What ranks exchange while dense layers compute: the order between two streams.
#pragma once

#include "comm/communicator.h"
#include "device/stream.h"

namespace hctr {

/// The exchange stream of a rank among several on a GPU. Elsewhere everything runs where the call stands, in the same
/// order.
class SideStream {
 public:
  SideStream(Runtime& runtime, const Communicator& comm)
      : apart_(runtime.device().is_cuda() && comm.size() > 1), reached_(runtime.device()), done_(runtime.device()) {}

  /// Where to give work that may start once everything given to `ctx` so far is done.
  Context after(Context& ctx) {
    if (!apart_) return ctx;
    reached_.record(ctx.stream());
    reached_.make_wait(ctx.runtime().exchange_stream());
    return Context(ctx.runtime(), ctx.runtime().exchange_stream(), ctx.state());
  }
  /// Work given to `ctx` from now on starts once everything given beside it so far is done.
  void join(Context& ctx) {
    if (!apart_) return;
    done_.record(ctx.runtime().exchange_stream());
    done_.make_wait(ctx.stream());
  }

 private:
  bool apart_;
  Event reached_, done_;
};

}  // namespace hctr
