// Times of single kernels, copies and fills as the GPU's driver notes them (CUPTI). Nothing is added to the work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hctr {

/// The part of a step that work belongs to.
struct PartMark {
  static constexpr uint32_t kQueued = UINT32_MAX;
  uint32_t recording;  ///< kQueued: the part is queued in each step
  uint32_t part;       ///< its place among the parts of the recording, or among those that were queued
};

/// A kernel, copy or fill that has run.
struct TracedWork {
  std::optional<PartMark> mark;  ///< that was set when it was queued or recorded
  uint32_t launch = 0;           ///< of the call that started it: one number for all that a recorded graph holds
  double begin = 0, end = 0;     ///< seconds
};

/// Traces the GPUs of the process from start() on until it is destroyed. One at a time.
class KernelTrace {
 public:
  /// Loads the library that it needs. Where that cannot be, returns null and says why in `reason`: "libcupti.so.13 was
  /// not found beside ...".
  static std::unique_ptr<KernelTrace> start(std::string& reason);
  virtual ~KernelTrace() = default;

  /// What the thread that called start() records or queues from now on belongs to this part.
  virtual void set_mark(std::optional<PartMark>) = 0;
  /// In a graph, not executable yet: node `to` belongs to the part that `from` belongs to. No trace: does nothing.
  static void move_mark(void* from, void* to);
  /// Seconds, on the axis of TracedWork.
  virtual double now() const = 0;
  /// What has ended since the last call, in no order. The devices are idle.
  virtual std::vector<TracedWork> take() = 0;
};

}  // namespace hctr
