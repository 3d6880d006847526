#include "core/device/profiler.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/program.h"
#include "core/device/recorded_parts.h"

namespace hctr {

std::string_view word(Span::On on) {
  switch (on) {
    case Span::On::host:
      return "host";
    case Span::On::compute:
      return "compute";
    case Span::On::prepare:
      return "prepare";
    case Span::On::exchange:
      return "exchange";
    default:
      return "other";
  }
}

Profiler::~Profiler() {
  if (runtime_.profiler() == this) runtime_.set_profiler(nullptr);
  if constexpr (kCudaBuild) {
    for (void* event : queued_.made) cuda::destroy_event(event);
    for (const auto& [id, parts] : recordings_)
      for (void* event : parts.made) cuda::destroy_event(event);
  }
}

void Profiler::Parts::clear() {
  spans.clear();
  events.clear();
  used = 0;
}

void Profiler::synchronize() const {
  for (const StreamRef stream :
       {runtime_.key_stream(), runtime_.prepare_stream(), runtime_.exchange_stream(), runtime_.compute_stream()})
    stream.synchronize();
}

void Profiler::start() {
  synchronize();
  queued_.clear();
  for (auto& [id, parts] : recordings_) parts.runs = true;
  open_ = false;
  traced_.clear();
  if (trace_) trace_->take();
  start_ = Clock::now();
  if (trace_) trace_start_ = trace_->now();
  const StreamRef compute = runtime_.compute_stream();
  first_ = new_event(&compute, queued_);
  if constexpr (kCudaBuild)
    if (first_) cuda::mark(first_, compute);
  runtime_.set_profiler(this);
}

double Profiler::stop() {
  runtime_.set_profiler(nullptr);
  synchronize();
  const double seconds = now();
  if (trace_) {
    traced_ = trace_->take();
    std::sort(traced_.begin(), traced_.end(),
              [](const TracedWork& a, const TracedWork& b) { return a.begin < b.begin; });
    for (TracedWork& work : traced_) {
      work.begin -= trace_start_;
      work.end -= trace_start_;
    }
  }
  if constexpr (kCudaBuild) {
    if (first_) read_times(queued_, recordings_.empty() ? seconds_added_to_a_part() : 0);
  }
  for (auto& [id, parts] : recordings_) {
    if (parts.runs)
      read_times(parts, 0);
    else
      for (Span& span : parts.spans) span.timed = false;
  }
  return seconds;
}

void Profiler::read_times(Parts& parts, double added) const {
  if constexpr (kCudaBuild) {
    for (size_t i = 0; i < parts.spans.size(); ++i) {
      Span& span = parts.spans[i];
      if (!parts.events[i].begin) continue;
      const std::optional<double> begin = cuda::seconds_between(first_, parts.events[i].begin),
                                  end = cuda::seconds_between(first_, parts.events[i].end);
      // an event is missing if the recording has not run, because a series of steps can end early
      span.timed = begin && end;
      if (!span.timed) continue;
      span.begin = *begin;
      span.end = std::max(span.begin, *end - added);
    }
  }
}

void Profiler::begin_recording(size_t id) {
  into_ = &recordings_[id];
  into_->clear();
  into_->runs = false;
  recording_ = static_cast<uint32_t>(id);
}

void Profiler::end_recording() {
  into_ = &queued_;
  recording_ = PartMark::kQueued;
}

std::string Profiler::begin_trace() {
  if (!runtime_.device().is_cuda()) return "this device is not a GPU";
  std::string reason;
  trace_ = KernelTrace::start(reason);
  return reason;
}

void Profiler::mark_open_part(bool on_stream) const {
  if (!trace_) return;
  trace_->set_mark(open_ && on_stream
                       ? std::optional(PartMark{recording_, static_cast<uint32_t>(into_->spans.size() - 1)})
                       : std::nullopt);
}

bool Profiler::times_next(const Span& span) const {
  const std::vector<Span>& before = into_->spans;
  if (parts_to_time_.empty() ||
      std::find(parts_to_time_.begin(), parts_to_time_.end(), before.size()) != parts_to_time_.end())
    return true;
  return span.on == Span::On::compute &&
         std::none_of(before.begin(), before.end(), [](const Span& one) { return one.on == Span::On::compute; });
}

double Profiler::seconds_added_to_a_part() {
  double added = 0;
  if constexpr (kCudaBuild) {
    constexpr int kWorks = 64;
    const StreamRef compute = runtime_.compute_stream();
    Buffer memory(compute.device, 256);
    const auto part = [&](int works) {
      const Events events{new_event(&compute, queued_), new_event(&compute, queued_)};
      cuda::mark(events.begin, compute);
      for (int i = 0; i < works; ++i) zero_bytes(compute, memory.data(), memory.bytes());
      cuda::mark(events.end, compute);
      return events;
    };
    const auto seconds = [](const Events& events) { return cuda::seconds_between(events.begin, events.end).value(); };
    std::vector<Events> parts;
    part(kWorks);
    for (int i = 0; i < kWorks; ++i) parts.push_back(part(1));
    const Events together = part(kWorks);
    compute.synchronize();
    std::vector<double> alone;
    for (const Events& events : parts) alone.push_back(seconds(events));
    std::nth_element(alone.begin(), alone.begin() + kWorks / 2, alone.end());
    added = std::max(0.0, alone[kWorks / 2] - seconds(together) / kWorks);
  }
  return added;
}

EventCost Profiler::cost_of_recorded_events() {
  EventCost cost;
  if constexpr (kCudaBuild) {
    constexpr int kParts = 32, kTogether = 64, kRuns = 5;
    const StreamRef compute = runtime_.compute_stream();
    if (!compute.device.is_cuda()) return cost;
    synchronize();
    Context ctx(runtime_, compute);
    std::vector<Events> alone, nothing;
    Events together;
    const auto part = [&](int kernels) {
      const Events events{new_event(&compute, queued_), new_event(&compute, queued_)};
      cuda::mark(events.begin, compute);
      for (int i = 0; i < kernels; ++i) cuda::start_empty_kernel(ctx);
      cuda::mark(events.end, compute);
      return events;
    };
    Program program(compute, true, [&] {
      for (int i = 0; i < kParts; ++i) {
        alone.push_back(part(1));
        nothing.push_back(part(0));
        cuda::start_empty_kernel(ctx);
      }
      together = part(kTogether);
    });
    for (int i = 0; i < kRuns; ++i) program.run();
    compute.synchronize();
    const auto median = [](const std::vector<Events>& of) {
      std::vector<double> seconds;
      for (const Events& events : of) seconds.push_back(cuda::seconds_between(events.begin, events.end).value());
      std::nth_element(seconds.begin(), seconds.begin() + kParts / 2, seconds.end());
      return seconds[kParts / 2];
    };
    cost.between = median(nothing);
    // Each median contains the event cost once, so the difference is the time of kTogether - 1 kernels alone.
    const double kernel = (median(std::vector<Events>(kParts, together)) - median(alone)) / (kTogether - 1);
    cost.around = std::max(cost.between, median(alone) - kernel);
  }
  return cost;
}

void* Profiler::new_event(const StreamRef* stream, Parts& parts) {
  if constexpr (kCudaBuild) {
    if (trace_ || !stream || !stream->device.is_cuda()) return nullptr;
    if (parts.used == parts.made.size()) parts.made.push_back(cuda::create_timing_event(stream->device.index));
    return parts.made[parts.used++];
  }
  return nullptr;
}

Span::On Profiler::place(const StreamRef& stream) const {
  if (!stream.device.is_cuda() || stream.handle == runtime_.compute_stream().handle) return Span::On::compute;
  if (stream.handle == runtime_.prepare_stream().handle || stream.handle == runtime_.key_stream().handle)
    return Span::On::prepare;
  return stream.handle == runtime_.exchange_stream().handle ? Span::On::exchange : Span::On::other;
}

void Profiler::begin_part(const StreamRef* stream, const Span& span) {
  std::vector<Span>& spans = into_->spans;
  HCTR_EXPECT(!open_, "part '", span.part, "' of '", span.name, "' begins inside of '", spans.back().part, "' of '",
              spans.back().name, "'");
  open_ = true;
  if constexpr (kCudaBuild) {
    if (runtime_.device().is_cuda()) cuda::push_range(cat(span.part, " ", span.type, " ", span.name).c_str());
  }
  Span next = span;
  next.on = stream ? place(*stream) : Span::On::host;
  if (into_ != &queued_) next.timed = times_next(next);
  if (trace_ && stream && stream->device.is_cuda()) next.timed = false;
  into_->events.push_back(next.timed ? Events{new_event(stream, *into_), new_event(stream, *into_)} : Events{});
  next.begin = now();
  spans.push_back(next);
  if constexpr (kCudaBuild)
    if (void* const event = into_->events.back().begin) cuda::mark(event, *stream);
  if constexpr (kCudaBuild)
    recorded_before_ =
        into_ != &queued_ && stream && stream->device.is_cuda() ? cuda::recorded_so_far(*stream) : std::nullopt;
  mark_open_part(stream != nullptr);
}

void Profiler::end_part(const StreamRef* stream) noexcept {
  mark_open_part(false);
  Span& span = into_->spans.back();
  span.end = now();
  if constexpr (kCudaBuild) {
    const std::optional<size_t> recorded = recorded_before_ ? cuda::recorded_so_far(*stream) : std::nullopt;
    if (recorded) span.work.launches = static_cast<double>(*recorded - *recorded_before_);
    if (recorded && span.work.launches == 0 && span.work.flops == 0) {
      into_->spans.pop_back();
      into_->events.pop_back();
      cuda::pop_range();
      open_ = false;
      return;
    }
    if (void* const event = into_->events.back().end) cuda::mark(event, *stream);
    if (runtime_.device().is_cuda()) cuda::pop_range();
  }
  open_ = false;
}

void Profiler::add_flops(double flops, bool fp8) {
  if (!open_) return;
  Work& work = into_->spans.back().work;
  work.flops += flops;
  if (fp8) work.fp8_flops += flops;
}

void count_flops(Context& ctx, double flops, bool fp8) {
  if (Profiler* const profiler = ctx.runtime().profiler()) profiler->add_flops(flops, fp8);
}

}  // namespace hctr
