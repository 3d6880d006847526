// The side stream, on which embeddings exchange and sum gradients and update rows while dense layers compute: its order
// with the compute stream.
#pragma once

#include "core/device/context.h"
#include "core/device/recording.h"
#include "core/device/stream.h"

namespace hctr {

/// Another stream of a GPU rank than the compute stream. On the CPU the side stream is the caller's stream, and
/// everything runs there in the order of the calls.
class SideStream {
 public:
  explicit SideStream(StreamRef stream)
      : stream_(stream), apart_(stream.device.is_cuda()), reached_(stream.device), done_(stream.device) {}

  Device device() const { return stream_.device; }
  /// From now on what runs by call(), run(), run_after() and join() stays outside of this recording; null: of none.
  void stay_outside(Recording* recording) { recording_ = recording; }

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
  /// body(context) with `ctx`. Bodies copy what they need.
  template <class Body>
  void call(Context& ctx, Body body) {
    outside(recording_, ctx, std::move(body));
  }
  /// body(context) on the side stream.
  template <class Body>
  void run(Context& ctx, Body body) {
    call(ctx, [this, body = std::move(body)](Context& own) {
      Context side = context(own);
      body(side);
    });
  }
  /// The same, after everything queued on `ctx` so far, which `reached` stands for.
  template <class Body>
  void run_after(Context& ctx, CrossingEvent& reached, Body body) {
    if (apart_) reached.record(ctx.stream());
    run(ctx, [this, &reached, body = std::move(body)](Context& side) {
      if (apart_) reached.make_wait(stream_);
      body(side);
    });
  }
  /// Makes `ctx` wait for everything queued on the side stream so far. Ends the piece of the recording.
  void join(Context& ctx) {
    call(ctx, [this](Context& own) {
      if (!apart_) return;
      done_.record(stream_);
      done_.make_wait(own.stream());
    });
    end_piece();
  }
  /// What is queued on `ctx` from now on may wait for events that the side stream has recorded so far.
  void end_piece() {
    if (recording_) recording_->cut();
  }

 private:
  StreamRef stream_;
  bool apart_;
  Recording* recording_ = nullptr;
  Event reached_, done_;
};

}  // namespace hctr
