#include "device/profiler.h"

#include <algorithm>

#include "base/error.h"
#include "base/platform.h"
#include "device/buffer.h"
#include "device/copy.h"
#include "device/cuda_runtime_calls.h"

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
  if constexpr (kCudaBuild)
    for (void* event : made_) cuda::destroy_event(event);
}

void Profiler::synchronize() const {
  for (const StreamRef stream : {runtime_.prepare_stream(), runtime_.exchange_stream(), runtime_.compute_stream()})
    stream.synchronize();
}

void Profiler::start() {
  synchronize();
  spans_.clear();
  events_.clear();
  used_ = 0;
  open_ = false;
  start_ = Clock::now();
  const StreamRef compute = runtime_.compute_stream();
  first_ = new_event(&compute);
  if constexpr (kCudaBuild)
    if (first_) cuda::mark(first_, compute);
  runtime_.set_profiler(this);
}

double Profiler::stop() {
  runtime_.set_profiler(nullptr);
  synchronize();
  const double seconds = now();
  if constexpr (kCudaBuild) {
    const double added = first_ ? seconds_added_to_a_part() : 0;
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (!events_[i].begin) continue;
      spans_[i].begin = cuda::seconds_between(first_, events_[i].begin);
      spans_[i].end = std::max(spans_[i].begin, cuda::seconds_between(first_, events_[i].end) - added);
    }
  }
  return seconds;
}

double Profiler::seconds_added_to_a_part() {
  double added = 0;
  if constexpr (kCudaBuild) {
    constexpr int kWorks = 64;
    const StreamRef compute = runtime_.compute_stream();
    Buffer memory(compute.device, 256);
    const auto part = [&](int works) {
      const Events events{new_event(&compute), new_event(&compute)};
      cuda::mark(events.begin, compute);
      for (int i = 0; i < works; ++i) zero_bytes(compute, memory.data(), memory.bytes());
      cuda::mark(events.end, compute);
      return events;
    };
    const auto seconds = [](const Events& events) { return cuda::seconds_between(events.begin, events.end); };
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

void* Profiler::new_event(const StreamRef* stream) {
  if constexpr (kCudaBuild) {
    if (!stream || !stream->device.is_cuda()) return nullptr;
    if (used_ == made_.size()) made_.push_back(cuda::create_timing_event(stream->device.index));
    return made_[used_++];
  }
  return nullptr;
}

Span::On Profiler::place(const StreamRef& stream) const {
  if (!stream.device.is_cuda() || stream.handle == runtime_.compute_stream().handle) return Span::On::compute;
  if (stream.handle == runtime_.prepare_stream().handle) return Span::On::prepare;
  return stream.handle == runtime_.exchange_stream().handle ? Span::On::exchange : Span::On::other;
}

void Profiler::begin(const StreamRef* stream, const Span& span) {
  HCTR_EXPECT(!open_, "part '", span.part, "' of '", span.name, "' begins inside of '", spans_.back().part, "' of '",
              spans_.back().name, "'");
  open_ = true;
  if constexpr (kCudaBuild) {
    if (runtime_.device().is_cuda()) cuda::push_range(cat(span.part, " ", span.type, " ", span.name).c_str());
  }
  events_.push_back({new_event(stream), new_event(stream)});
  spans_.push_back(span);
  spans_.back().on = stream ? place(*stream) : Span::On::host;
  spans_.back().begin = now();
  if constexpr (kCudaBuild)
    if (events_.back().begin) cuda::mark(events_.back().begin, *stream);
}

void Profiler::end(const StreamRef* stream) noexcept {
  spans_.back().end = now();
  if constexpr (kCudaBuild) {
    if (events_.back().end) cuda::mark(events_.back().end, *stream);
    if (runtime_.device().is_cuda()) cuda::pop_range();
  }
  open_ = false;
}

void count_flops(Context& ctx, double flops, bool fp8) {
  Profiler* const profiler = ctx.runtime().profiler();
  if (!profiler || !profiler->open_) return;
  profiler->spans_.back().work.flops += flops;
  if (fp8) profiler->spans_.back().work.fp8_flops += flops;
}

}  // namespace hctr
