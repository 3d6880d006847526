#include "train/step_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"

namespace hctr {
namespace {

constexpr double kMostOfEvents = 4e-6;  // two events take a GPU less
constexpr double kTouch = 4e-6;         // parts of a stream that are nearer touch: nothing is waited for so shortly
constexpr double kMuchOfStep = 0.03;    // that the events of one sample may take
constexpr int kMostSamples = 16;

bool of_next_batch(const Span& span) { return span.on == Span::On::prepare; }
bool computes(const Span& span) { return span.on == Span::On::compute; }

int64_t timed_on_compute(const StepSample& sample) {
  return std::count_if(sample.recorded.begin(), sample.recorded.end(),
                       [](const Span& span) { return span.timed && computes(span); });
}

int64_t timed(const StepSample& sample) {
  return std::count_if(sample.recorded.begin(), sample.recorded.end(), [](const Span& span) { return span.timed; });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Begin and end of part `i` of the sample as they would be without the events of this and of earlier parts.
std::pair<double, double> without_events(const StepSample& sample, size_t i, double events) {
  const Span& span = sample.recorded[i];
  int64_t before = 0;  // parts whose events have delayed it
  for (size_t other = 0; other < sample.recorded.size(); ++other) {
    const Span& earlier = sample.recorded[other];
    if (other == i || !earlier.timed || earlier.end > span.begin) continue;
    before += of_next_batch(span) ? of_next_batch(earlier) : computes(earlier);
  }
  const double delay = events * static_cast<double>(before);
  return {span.begin - delay, std::max(span.begin, span.end - events) - delay};
}

/// The span in a step that repeats. What it has to do is counted once.
void add_in_step(Span span, double step, std::vector<Span>& out) {
  const double length = std::min(span.end - span.begin, step);
  span.begin -= step * std::floor(span.begin / step);
  span.end = std::min(step, span.begin + length);
  out.push_back(span);
  const double left = length - (span.end - span.begin);
  if (left <= 0) return;
  span.begin = 0;
  span.end = left;
  span.work = {};
  out.push_back(span);
}

/// The mean time of each of these parts, where the last sample has it.
std::vector<Span> mean_of_queued(const std::vector<StepSample>& samples) {
  std::map<std::tuple<Span::On, std::string_view, std::string_view, std::string_view>, Span> by_part;
  for (const StepSample& sample : samples)
    for (const Span& span : sample.queued) {
      const auto [at, is_new] = by_part.try_emplace({span.on, span.part, span.type, span.name}, span);
      const double length = (is_new ? 0 : at->second.end - at->second.begin) +
                            (span.end - span.begin) / static_cast<double>(samples.size());
      at->second = span;
      at->second.end = span.begin + length;
    }
  std::vector<Span> out;
  for (const auto& [part, span] : by_part) out.push_back(span);
  return out;
}

}  // namespace

double seconds_of_events(const StepSample& all, double step) {
  const int64_t parts = timed_on_compute(all);
  return parts == 0 ? 0 : std::clamp((all.period - step) / static_cast<double>(parts), 0.0, kMostOfEvents);
}

int samples_for_all_parts(const StepSample& all, double step) {
  const double share = seconds_of_events(all, step) * static_cast<double>(timed_on_compute(all)) / step;
  return static_cast<int>(std::clamp(std::ceil(share / kMuchOfStep), 1.0, static_cast<double>(kMostSamples)));
}

StepTimeline timeline_of(const std::vector<StepSample>& samples, double step, double seconds_of_events) {
  HCTR_EXPECT(!samples.empty(), "no step has been looked at");
  int64_t fewest = timed(samples[0]);
  for (const StepSample& sample : samples) {
    HCTR_EXPECT(sample.recorded.size() == samples[0].recorded.size(), "steps of different parts");
    fewest = std::min(fewest, timed(sample));
  }
  StepTimeline out;
  std::map<Span::On, double> ended;  // by stream
  std::vector<Span> recorded;
  for (size_t i = 0; i < samples[0].recorded.size(); ++i) {
    std::vector<double> begins, ends;
    for (const bool few : {true, false})  // steps with many events only for parts that no other has timed
      for (const StepSample& sample : samples) {
        if (!sample.recorded[i].timed || (few ? timed(sample) > 2 * fewest : !begins.empty())) continue;
        const auto [begin, end] = without_events(sample, i, seconds_of_events);
        begins.push_back(begin);
        ends.push_back(end);
        if (!few) break;
      }
    if (begins.empty()) continue;
    Span span = samples[0].recorded[i];
    span.begin = median(std::move(begins));
    span.end = median(std::move(ends));
    if (!of_next_batch(span)) span.begin = std::max(0.0, span.begin);
    const auto [last, is_first] = ended.try_emplace(span.on, span.begin);
    if (!is_first && span.begin < last->second + kTouch) span.begin = last->second;
    span.end = std::max(span.begin, span.end);
    last->second = span.end;
    if (!of_next_batch(span)) out.measured = std::max(out.measured, span.end);
    recorded.push_back(span);
  }
  const double scale = out.measured > step ? step / out.measured : 1;
  for (Span& span : recorded) {
    span.begin *= scale;
    span.end *= scale;
    add_in_step(span, step, out.spans);
  }
  for (const Span& span : mean_of_queued(samples)) add_in_step(span, step, out.spans);
  return out;
}

}  // namespace hctr
