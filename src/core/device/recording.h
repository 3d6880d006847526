// Lets the body of a Program exclude work from its recording: calls whose sizes depend on the batch.
#pragma once

#include <functional>
#include <utility>

#include "core/device/context.h"

namespace hctr {

/// A recorded body is a sequence of pieces (one CUDA graph each) with calls between them. At the end of a piece, its
/// streams must have joined the program's stream. A piece waits for work queued before it. Work outside may wait for
/// any point of the previous piece (CrossingEvent).
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

/// An event between a piece and work outside, or between two pieces. Recorded at one point of a step only.
class CrossingEvent {
 public:
  explicit CrossingEvent(Device);
  ~CrossingEvent();
  CrossingEvent(CrossingEvent&& other) noexcept
      : device_(other.device_), crosses_(other.crosses_), handle_(std::exchange(other.handle_, nullptr)) {}
  CrossingEvent& operator=(CrossingEvent&&) = delete;

  /// Declares that the event is recorded and waited for within one piece, or outside pieces. A normal event then
  /// suffices.
  void stay_inside() { crosses_ = false; }
  void record(StreamRef stream);
  void make_wait(StreamRef stream) const;

 private:
  Device device_;
  bool crosses_ = true;
  void* handle_ = nullptr;
};

}  // namespace hctr
