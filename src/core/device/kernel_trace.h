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
  uint32_t part;       ///< its index among the parts of the recording, or among the queued parts
};

/// A kernel, copy or fill that has run.
struct TracedWork {
  std::optional<PartMark> mark;  ///< the mark that was set when it was queued or recorded
  uint32_t launch = 0;  ///< correlation of the call that started it: one number for everything in a recorded graph
  double begin = 0, end = 0;  ///< seconds
};

/// Traces the GPUs of the process from start() on until it is destroyed. One at a time.
class KernelTrace {
 public:
  /// Loads the required library. On failure returns null and the reason: "libcupti.so.13 was not found beside ...".
  static std::unique_ptr<KernelTrace> start(std::string& reason);
  virtual ~KernelTrace() = default;

  /// Work that the thread of start() records or queues from now on belongs to this part.
  virtual void set_mark(std::optional<PartMark>) = 0;
  /// In a graph, not executable yet: node `to` belongs to the part that `from` belongs to. No trace: does nothing.
  static void move_mark(void* from, void* to);
  /// Seconds, on the axis of TracedWork.
  virtual double now() const = 0;
  /// Kernels that ended since the last call, in no order. The devices must be idle.
  virtual std::vector<TracedWork> take() = 0;
};

}  // namespace hctr
