// How the body of a Program excludes work from the recording: calls whose sizes are known only with the batch.
#pragma once

#include <functional>
#include <utility>

#include "core/device/context.h"

namespace hctr {

/// A recorded body is a sequence of pieces with calls between them. At the end of a piece, its streams must have joined
/// the program's stream. A piece waits for work queued before it; outside work may wait for any point of the previous
/// piece (CrossingEvent).
class Recording {
 public:
  virtual ~Recording() = default;
  /// In each run `work` is called once the present piece has been queued, in the order of these calls; not during
  /// recording. `work` is copied, and objects it refers to must outlive the program.
  virtual void outside(std::function<void()> work) = 0;
  /// Ends the piece. Later work is queued after the outside work so far.
  virtual void cut() = 0;
};

/// Calls body(context) outside the recording; at once if there is no recording. The body copies its data.
template <class Body>
void outside(Recording* recording, Context& ctx, Body body) {
  if (!recording) return body(ctx);
  recording->outside([ctx, body = std::move(body)] {
    Context own = ctx;
    body(own);
  });
}

/// An Event between a piece and work outside, or between two pieces. Nothing else in a step records it.
class CrossingEvent {
 public:
  explicit CrossingEvent(Device);
  ~CrossingEvent();
  CrossingEvent(CrossingEvent&& other) noexcept
      : device_(other.device_), crosses_(other.crosses_), handle_(std::exchange(other.handle_, nullptr)) {}
  CrossingEvent& operator=(CrossingEvent&&) = delete;

  /// From now on it does not cross: it is recorded and waited for in one piece, or outside.
  void stay_inside() { crosses_ = false; }
  void record(StreamRef stream);
  void make_wait(StreamRef stream) const;

 private:
  Device device_;
  bool crosses_ = true;
  void* handle_ = nullptr;
};

}  // namespace hctr
