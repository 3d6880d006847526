#include "device/profiler.h"

#include <algorithm>

#include "base/error.h"
#include "base/platform.h"
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
    const double empty = first_ ? seconds_of_an_empty_part() : 0;
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (!events_[i].begin) continue;
      spans_[i].begin = cuda::seconds_between(first_, events_[i].begin);
      spans_[i].end = std::max(spans_[i].begin, cuda::seconds_between(first_, events_[i].end) - empty);
    }
  }
  return seconds;
}

double Profiler::seconds_of_an_empty_part() {
  std::vector<double> seconds;
  if constexpr (kCudaBuild) {
    constexpr int kParts = 64;
    const StreamRef compute = runtime_.compute_stream();
    std::vector<Events> parts;
    for (int i = 0; i < kParts; ++i) {
      parts.push_back({new_event(&compute), new_event(&compute)});
      cuda::mark(parts.back().begin, compute);
      cuda::mark(parts.back().end, compute);
    }
    compute.synchronize();
    for (const Events& part : parts) seconds.push_back(cuda::seconds_between(part.begin, part.end));
    std::nth_element(seconds.begin(), seconds.begin() + kParts / 2, seconds.end());
  }
  return seconds.empty() ? 0 : seconds[seconds.size() / 2];
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
