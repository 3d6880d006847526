// Times of single kernels, copies and memsets, recorded by the driver through CUPTI without extra GPU work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hctr {

/// Identifies the part of a step that work belongs to.
struct PartMark {
  static constexpr uint32_t kQueued = UINT32_MAX;
  uint32_t recording;  ///< id of the recording, or kQueued if each step queues the part without a recording
  uint32_t part;       ///< index among the parts of the recording, or among the queued parts
};

/// A kernel, copy or memset that has run.
struct TracedWork {
  std::optional<PartMark> mark;  ///< the mark that was set when the work was queued or recorded
  uint32_t launch = 0;           ///< correlation id of the launching call; all work of a graph launch has the same id
  double begin = 0, end = 0;     ///< seconds
};

/// Traces the process's GPUs from start() until destruction. Only one trace can exist at a time.
class KernelTrace {
 public:
  /// Loads CUPTI and starts tracing. On failure returns null and a reason: "libcupti.so.13 was not found next to ...".
  static std::unique_ptr<KernelTrace> start(std::string& reason);
  virtual ~KernelTrace() = default;

  /// From now on, all work that the thread of start() records or queues is assigned to this part.
  virtual void set_mark(std::optional<PartMark>) = 0;
  /// Assigns graph node `to` to the part of node `from`. The graph must not be instantiated yet. Does nothing without a
  /// trace.
  static void move_mark(void* from, void* to);
  /// The current time in seconds, on the time axis of TracedWork.
  virtual double now() const = 0;
  /// Returns the work that ended since the last call, in unspecified order. The devices must be idle.
  virtual std::vector<TracedWork> take() = 0;
};

}  // namespace hctr
