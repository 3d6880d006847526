// Measures where the time of steps goes: time spans on streams, and the work queued in each span.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/context.h"
#include "core/device/kernel_trace.h"

namespace hctr {

/// The amount of work in a part of a step.
struct Work {
  double flops = 0;      ///< floating-point operations of GEMMs and dot products: two per multiply-add
  double bytes = 0;      ///< bytes of the tensors read or written, each tensor counted once
  double fp8_flops = 0;  ///< the part of `flops` that is in GEMMs with FP8 operands
  double launches = 0;   ///< number of kernels and copies, if the part is recorded
};

/// One part of one step.
struct Span {
  enum class On { host, compute, prepare, exchange, other };  ///< the host thread or a stream of the Runtime
  std::string_view part;                                      ///< "forward"
  std::string_view type;                                      ///< layer type, or the kind of other work
  std::string_view name;                                      ///< name of the layer or table
  On on = On::host;
  Work work{};
  double begin = 0, end = 0;  ///< seconds since Profiler::start()
  bool timed = true;          ///< whether begin and end are known
};
std::string_view word(Span::On);

/// GPU seconds that the two events of a part cost in recorded work.
struct EventCost {
  double between = 0;  ///< between two events without work in between
  double around = 0;   ///< between two events around a kernel, minus the kernel's own time
};

/// Measures spans between start() and stop(). The Runtime points to the Profiler during that time. Used by the thread
/// that queues work. On a GPU, events time the streams, and spans are also NVTX ranges. On a CPU, the clock times
/// spans, because work is complete when its call returns.
///
/// Events make a part take longer. For work queued in each step, stop() subtracts the cost of the events. Recorded work
/// (Program) is timed when it runs, if it was recorded between begin_recording() and end_recording(). time_parts()
/// selects the parts of a recording that have events. The spans of these parts include the cost of the events. A part
/// that records no work is skipped.
///
/// During a trace no events are recorded on the GPU. Spans of GPU parts have no times then; traced() returns the
/// kernels of these parts.
class Profiler {
 public:
  /// `runtime` must outlive the Profiler.
  explicit Profiler(Runtime& runtime) : runtime_(runtime) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Starts a measurement after queued work is complete.
  void start();
  /// Waits for queued work and returns the seconds since start().
  double stop();
  /// The spans between the last start() and the last stop(), in the order in which they began on the host. Does not
  /// include recorded work.
  const std::vector<Span>& spans() const { return queued_.spans; }

  /// Spans until end_recording() belong to recording `id` and replace its previous spans. The Runtime must point to
  /// this Profiler during that time.
  void begin_recording(size_t id);
  void end_recording();
  /// Selects the parts that have events in later recordings, by their index in recorded(). The first part on the
  /// compute stream always has events. Empty: all parts.
  void time_parts(std::vector<size_t> parts) { parts_to_time_ = std::move(parts); }
  /// Call after stop(). Returns the parts of recording `id` with the times of their last run. If the recording was made
  /// after start(), its parts have no times.
  const std::vector<Span>& recorded(size_t id) const { return recordings_.at(id).spans; }
  /// Traces GPU kernels that are recorded or queued until end_trace(). Returns "" or the reason why tracing is
  /// impossible.
  std::string begin_trace();
  void end_trace() { trace_.reset(); }
  /// Kernels that ran on the GPU between the last start() and the last stop(), ordered by begin. Times are in seconds
  /// since start(). A kernel's mark is an index of recorded() or spans().
  const std::vector<TracedWork>& traced() const { return traced_; }
  /// Measures EventCost on a GPU with empty kernels. Waits for queued work.
  EventCost cost_of_recorded_events();

  // Queueing code calls these functions through ProfiledPart and count_flops(). `stream`: null for a part on the host.
  void begin_part(const StreamRef* stream, const Span&);
  void end_part(const StreamRef* stream) noexcept;
  /// Adds to the work of the open part, if there is one.
  void add_flops(double flops, bool fp8);

 private:
  using Clock = std::chrono::steady_clock;
  struct Events {
    void *begin = nullptr, *end = nullptr;
  };
  struct Parts {
    std::vector<Span> spans;
    std::vector<Events> events;  // [span]
    std::vector<void*> made;     // all created events; spans use the first `used` of them
    size_t used = 0;
    bool runs = true;  // false if recorded after start(), so the parts have not run
    void clear();
  };

  void synchronize() const;
  /// How much longer a small memset takes as a separate part than inside a larger part. Measured on the idle compute
  /// stream of a GPU.
  double seconds_added_to_a_part();
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  Span::On place(const StreamRef&) const;
  /// Returns an event for the stream, or null if the clock times spans.
  void* new_event(const StreamRef*, Parts&);
  /// Whether the next span of the recording gets events.
  bool times_next(const Span&) const;
  void read_times(Parts&, double added) const;
  /// Assigns later kernels to the open part in the trace.
  void mark_open_part(bool on_stream) const;

  Runtime& runtime_;
  Clock::time_point start_;
  Parts queued_;
  std::map<size_t, Parts> recordings_;
  Parts* into_ = &queued_;                  // destination of new spans
  std::vector<size_t> parts_to_time_;       // empty: all parts
  std::optional<size_t> recorded_before_;   // number of graph nodes at the start of the open part
  void* first_ = nullptr;                   // event recorded by start()
  bool open_ = false;                       // whether the last span has not ended
  uint32_t recording_ = PartMark::kQueued;  // the recording that `into_` belongs to
  std::unique_ptr<KernelTrace> trace_;
  double trace_start_ = 0;
  std::vector<TracedWork> traced_;
};

/// Measures a part of a step from construction to destruction. Parts must not nest. Does nothing without a Profiler.
/// The texts must outlive the Profiler.
class ProfiledPart {
 public:
  /// A part on the stream of `ctx`. Does nothing while a Lockstep collects launches, because starting these launches is
  /// a separate part.
  ProfiledPart(Context& ctx, std::string_view part, std::string_view type, std::string_view name, Work work = {})
      : ProfiledPart(ctx.queue() ? nullptr : ctx.runtime().profiler(), ctx.stream(), true, {part, type, name}, work) {}
  /// A part on the host.
  ProfiledPart(Runtime& runtime, std::string_view part, std::string_view type)
      : ProfiledPart(runtime.profiler(), {}, false, {part, type, {}}, {}) {}
  ~ProfiledPart() {
    if (profiler_) profiler_->end_part(on_stream_ ? &stream_ : nullptr);
  }
  ProfiledPart(const ProfiledPart&) = delete;
  ProfiledPart& operator=(const ProfiledPart&) = delete;

 private:
  ProfiledPart(Profiler* profiler, StreamRef stream, bool on_stream, Span span, Work work)
      : profiler_(profiler), stream_(stream), on_stream_(on_stream) {
    span.work = work;
    if (profiler) profiler->begin_part(on_stream ? &stream_ : nullptr, span);
  }
  Profiler* profiler_;
  StreamRef stream_;
  bool on_stream_;
};

/// Adds to the work of the open part. Called by operators, which know the sizes of their GEMMs.
void count_flops(Context&, double flops, bool fp8 = false);

}  // namespace hctr
