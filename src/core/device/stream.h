// Streams and events. On the CPU all work is synchronous, so streams and events do nothing.
#pragma once

#include "core/device/device.h"

namespace hctr {

/// A reference to a stream owned elsewhere. `handle` is a cudaStream_t.
struct StreamRef {
  Device device;
  void* handle = nullptr;
  /// Blocks the host until all work queued so far is complete. Errors: Error(device) if that work failed.
  void synchronize() const;
  /// Whether the stream is being captured into a graph.
  bool is_capturing() const;
};

/// Stream priorities, lowest first. Recorded work keeps the priority of its stream. Among ready kernels, those of
/// higher priority get multiprocessors first. If a device has fewer priorities, the highest values of this enum become
/// one priority.
enum class StreamPriority { lowest, step, sums, exchange };

class Stream {
 public:
  explicit Stream(Device, StreamPriority = StreamPriority::lowest);
  ~Stream();
  Stream(Stream&& other) noexcept : ref_(other.ref_) { other.ref_.handle = nullptr; }
  Stream& operator=(Stream&&) = delete;
  operator StreamRef() const { return ref_; }
  StreamRef ref() const { return ref_; }

 private:
  StreamRef ref_;
};

class Event {
 public:
  explicit Event(Device);
  ~Event();
  Event(Event&& other) noexcept : device_(other.device_), handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&&) = delete;

  /// Captures the work queued on `stream` so far.
  void record(StreamRef stream);
  /// Makes later work on `stream` wait until the captured work is complete. Does nothing if the event was never
  /// recorded.
  void make_wait(StreamRef stream) const;
  /// Blocks the host until the captured work is complete. Errors: Error(device).
  void synchronize() const;

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace hctr
