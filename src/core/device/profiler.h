// Where the time of steps goes: time spans on streams, and the work queued in them.
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

/// The work of a part of a step.
struct Work {
  double flops = 0;      ///< operations of GEMMs and dot products: two for each multiplication
  double bytes = 0;      ///< bytes of the tensors read or written, each once
  double fp8_flops = 0;  ///< the part of flops that GEMMs with FP8 operands compute
  double launches = 0;   ///< number of kernels and copies, if recorded
};

/// One part of one step.
struct Span {
  enum class On { host, compute, prepare, exchange, other };  ///< the host's thread, or a stream of the Runtime
  std::string_view part;                                      ///< "forward"
  std::string_view type;                                      ///< type of the layer, or of other work
  std::string_view name;                                      ///< name of the layer or table
  On on = On::host;
  Work work{};
  double begin = 0, end = 0;  ///< seconds since Profiler::start()
  bool timed = true;          ///< whether begin and end are known
};
std::string_view word(Span::On);

/// Seconds of a GPU that the two events of a part cost in recorded work, if they follow each other ...
struct EventCost {
  double between = 0;  ///< time with nothing between them
  double around = 0;   ///< cost of events around a kernel, beyond the kernel's own cost to its stream
};

/// Measures spans between start() and stop(), while the Runtime points to it. Used by the thread that queues work. On a
/// GPU, events time the streams, and the spans are NVTX ranges too. On a CPU, where all work is done when its call
/// returns, the clock times them.
///
/// Events lengthen a part. For work queued in each step, their cost is subtracted. Recorded work (Program) is timed
/// when it runs, if it was recorded between begin_recording() and end_recording(); a few parts of each recording can
/// have events at a time (time_parts), and their spans include the events. Parts in which nothing is recorded are
/// skipped.
///
/// During a trace there are no events on a GPU: spans of its parts have no times, and traced() has their kernels.
class Profiler {
 public:
  /// The Runtime outlives it.
  explicit Profiler(Runtime& runtime) : runtime_(runtime) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Waits for queued work first.
  void start();
  /// Waits for queued work, and returns the seconds since start().
  double stop();
  /// The spans between the last start() and stop(), in the order of their begin on the host, without recorded ones.
  const std::vector<Span>& spans() const { return queued_.spans; }

  /// Work recorded until end_recording() is recording `id` and replaces its previous content. The Runtime calls this
  /// Profiler meanwhile.
  void begin_recording(size_t id);
  void end_recording();
  /// In recordings that begin later, these parts have events, given by their index in recorded(), and so has the first
  /// part on the compute stream. Empty: all parts.
  void time_parts(std::vector<size_t> parts) { parts_to_time_ = std::move(parts); }
  /// After stop(): the parts of a recording as they have run last. None is timed if it was recorded after start().
  const std::vector<Span>& recorded(size_t id) const { return recordings_.at(id).spans; }
  /// Traces kernels on the GPU up to end_trace(), for work recorded or queued from now on. Returns the reason if that
  /// is impossible; else "".
  std::string begin_trace();
  void end_trace() { trace_.reset(); }
  /// Kernels that ran on the GPU between the last start() and stop(), in seconds since start(), ordered by begin. Their
  /// marks index recorded() and spans().
  const std::vector<TracedWork>& traced() const { return traced_; }
  /// On a GPU, by work of its own. Waits for queued work.
  EventCost cost_of_recorded_events();

 private:
  friend class ProfiledPart;
  friend void count_flops(Context&, double, bool);
  using Clock = std::chrono::steady_clock;
  struct Events {
    void *begin = nullptr, *end = nullptr;
  };
  struct Parts {
    std::vector<Span> spans;
    std::vector<Events> events;  // events of each span
    std::vector<void*> made;     // all events; the first `used` of them belong to spans
    size_t used = 0;
    bool runs = true;  // since start() as they are
    void clear();
  };

  void begin(const StreamRef*, const Span&);
  void end(const StreamRef*) noexcept;
  void synchronize() const;
  /// The additional time of a small piece of work as a part of its own compared to within others of its kind, on the
  /// idle compute stream of a GPU.
  double seconds_added_to_a_part();
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  Span::On place(const StreamRef&) const;
  /// An event for the stream; null where spans are timed by the clock.
  void* new_event(const StreamRef*, Parts&);
  /// Whether the next span of the recording has events.
  bool times_next(const Span&) const;
  void read_times(Parts&, double added) const;
  /// For the trace: following kernels belong to the open part.
  void mark_open_part(bool on_stream) const;

  Runtime& runtime_;
  Clock::time_point start_;
  Parts queued_;
  std::map<size_t, Parts> recordings_;
  Parts* into_ = &queued_;                  // where spans go
  std::vector<size_t> parts_to_time_;       // empty: all
  std::optional<size_t> recorded_before_;   // nodes, when the open part began
  void* first_ = nullptr;                   // recorded by start()
  bool open_ = false;                       // the last span has not ended
  uint32_t recording_ = PartMark::kQueued;  // recording whose parts are in `into_`
  std::unique_ptr<KernelTrace> trace_;
  double trace_start_ = 0;
  std::vector<TracedWork> traced_;
};

/// A part of a step, from its construction to its destruction. Parts do not contain each other. Without a Profiler it
/// does nothing. The texts outlive the Profiler.
class ProfiledPart {
 public:
  /// Marks a part on the stream of `ctx`. Does nothing while launches are collected (Lockstep): starting them is a part
  /// of its own.
  ProfiledPart(Context& ctx, std::string_view part, std::string_view type, std::string_view name, Work work = {})
      : ProfiledPart(ctx.queue() ? nullptr : ctx.runtime().profiler(), ctx.stream(), true, {part, type, name}, work) {}
  /// On the host.
  ProfiledPart(Runtime& runtime, std::string_view part, std::string_view type)
      : ProfiledPart(runtime.profiler(), {}, false, {part, type, {}}, {}) {}
  ~ProfiledPart() {
    if (profiler_) profiler_->end(on_stream_ ? &stream_ : nullptr);
  }
  ProfiledPart(const ProfiledPart&) = delete;
  ProfiledPart& operator=(const ProfiledPart&) = delete;

 private:
  ProfiledPart(Profiler* profiler, StreamRef stream, bool on_stream, Span span, Work work)
      : profiler_(profiler), stream_(stream), on_stream_(on_stream) {
    span.work = work;
    if (profiler) profiler->begin(on_stream ? &stream_ : nullptr, span);
  }
  Profiler* profiler_;
  StreamRef stream_;
  bool on_stream_;
};

/// Adds to the work of the open part. For operators, which know the sizes of their GEMMs.
void count_flops(Context&, double flops, bool fp8 = false);

}  // namespace hctr
