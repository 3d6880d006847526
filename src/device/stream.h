// Order of work on a device: a stream runs its work in order, an event marks a point in it. On the CPU work runs at
// once and both do nothing.
#pragma once

#include "device/device.h"

namespace hctr {

/// A stream somebody else owns. `handle` is a cudaStream_t.
struct StreamRef {
  Device device;
  void* handle = nullptr;
  /// Waits on the host until all work so far is done. Errors: Error(device) of any of that work.
  void synchronize() const;
};

class Stream {
 public:
  explicit Stream(Device);
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

  /// Marks the end of the work given to `stream` so far.
  void record(StreamRef stream);
  /// Work given to `stream` from now on starts after the mark. An event never recorded holds nobody up.
  void make_wait(StreamRef stream) const;
  /// Waits on the host for the mark. Errors: Error(device).
  void synchronize() const;

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace hctr
