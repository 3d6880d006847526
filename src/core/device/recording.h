// Lets the body of a Program exclude work from its recording: calls whose sizes depend on the batch.
#pragma once

#include <functional>
#include <utility>

#include "core/device/context.h"

namespace hctr {

/// The body of a Program records a sequence of pieces, each of which is a CUDA graph. Calls between the pieces queue
/// work outside the recording. At the end of a piece, all its streams must have joined the program's stream. A piece
/// starts after the work queued before the piece. Work outside may wait for any point of the previous piece
/// (CrossingEvent).
class Recording {
 public:
  virtual ~Recording() = default;
  /// In each run, calls `work` after the current piece has been queued, in the order of the outside() calls. Does not
  /// call `work` during recording. `work` is copied; objects that `work` refers to must outlive the program.
  virtual void outside(std::function<void()> work) = 0;
  /// Ends the current piece. Later work is queued after all work passed to outside() so far.
  virtual void cut() = 0;
};

/// Calls body(context) outside the recording, or immediately without a recording. `body` must own copies of its data.
template <class Body>
void outside(Recording* recording, Context& ctx, Body body) {
  if (!recording) return body(ctx);
  recording->outside([ctx, body = std::move(body)] {
    Context own = ctx;
    body(own);
  });
}

/// An event that connects a piece with work outside the recording, or two pieces. A step records the event at one point
/// only.
class CrossingEvent {
 public:
  explicit CrossingEvent(Device);
  ~CrossingEvent();
  CrossingEvent(CrossingEvent&& other) noexcept
      : device_(other.device_), crosses_(other.crosses_), handle_(std::exchange(other.handle_, nullptr)) {}
  CrossingEvent& operator=(CrossingEvent&&) = delete;

  /// Declares that one piece both records the event and waits for it, or that both happen outside the pieces. A normal
  /// event is then enough.
  void stay_inside() { crosses_ = false; }
  void record(StreamRef stream);
  void make_wait(StreamRef stream) const;

 private:
  Device device_;
  bool crosses_ = true;
  void* handle_ = nullptr;
};

}  // namespace hctr
