// The side stream, on which embeddings exchange and sum gradients and update rows while dense layers compute: its order
// with the compute stream.
#pragma once

#include "device/context.h"
#include "device/stream.h"

namespace hctr {

/// Another stream of a GPU rank than the compute stream. On the CPU the side stream is the caller's stream, and
/// everything runs there in the order of the calls.
class SideStream {
 public:
  explicit SideStream(StreamRef stream)
      : stream_(stream), apart_(stream.device.is_cuda()), reached_(stream.device), done_(stream.device) {}

  Device device() const { return stream_.device; }

  /// A context of the side stream for the step of `ctx`. Work queued there is not ordered with that of `ctx`.
  Context context(Context& ctx) const { return apart_ ? Context(ctx.runtime(), stream_, ctx.state()) : ctx; }
  /// The same, after making the side stream wait for everything queued on `ctx` so far.
  Context after(Context& ctx) {
    if (apart_) {
      reached_.record(ctx.stream());
      reached_.make_wait(stream_);
    }
    return context(ctx);
  }
  /// Makes `ctx` wait for everything queued on the side stream so far.
  void join(Context& ctx) {
    if (!apart_) return;
    done_.record(stream_);
    done_.make_wait(ctx.stream());
  }

 private:
  StreamRef stream_;
  bool apart_;
  Event reached_, done_;
};

}  // namespace hctr
