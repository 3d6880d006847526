#include "train/step_timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kRounds = 3;           // number of rounds; each round times each part once
constexpr size_t kLeastTogether = 2;    // minimum number of parts that are timed together
constexpr double kShortestWait = 1e-6;  // seconds; a shorter gap is treated as a kernel start, not as a wait
constexpr double kEventsOfGap = 2;      // gaps of up to this multiple of an event's cost are treated as no gap
constexpr double kUnsure = 1e-6;        // tolerance, in seconds, for the cost of an event

bool of_next_batch(const Span& span) { return span.on == Span::On::prepare; }
bool computes(const Span& span) { return span.on == Span::On::compute; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns figure(sample) for the samples for which figure() has a value. The first sample's value is used only if no
/// other sample has a value.
template <class Figure>
auto figures(const std::vector<StepSample>& samples, const Figure& figure) {
  std::vector<typename decltype(figure(samples[0]))::value_type> out;
  for (size_t s = 1; s < samples.size(); ++s)
    if (const auto one = figure(samples[s])) out.push_back(*one);
  if (out.empty()) out.push_back(figure(samples[0]).value());
  return out;
}

/// A gap between two parts of the compute stream. If the compute stream waits in the gap for another stream, the cost
/// of earlier events shortens the visible wait, so only bounds are known.
struct Gap {
  double least, most;
};

/// The gap between a part and the next part on the compute stream. `next`: none means the first part of the next step.
Gap gap_after(const std::vector<StepSample>& samples, size_t part, std::optional<size_t> next, EventCost cost) {
  std::vector<Gap> gaps = figures(samples, [&](const StepSample& sample) -> std::optional<Gap> {
    const std::vector<Span>& parts = sample.recorded;
    if (!parts[part].timed || (next && !parts[*next].timed)) return std::nullopt;
    const double end = next ? parts[*next].begin : sample.period;
    const double seen = std::max(0.0, end - parts[part].end - cost.between);
    if (!next) return Gap{seen, seen};
    int64_t before = 0;
    for (size_t i = 0; i <= part; ++i) before += parts[i].timed && computes(parts[i]);
    // The events of each timed part up to this one can delay the stream. Do not count the first part, because other
    // streams wait for it too, and all samples have its events.
    return Gap{seen, seen + (cost.between + cost.around) * static_cast<double>(std::max<int64_t>(before - 1, 1))};
  });
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.least > b.least; });
  if (gaps[0].least < std::max(kShortestWait, kEventsOfGap * cost.between)) return {0, 0};
  const double least = gaps[gaps.size() > 1 ? 1 : 0].least;  // the longest gap may be an outlier
  double most = gaps[0].most;
  for (const Gap& gap : gaps) most = std::min(most, gap.most);
  return {least, std::max(least, most)};
}

/// Splits the parts into samples of adjacent parts. Each sample begins with the last part of the preceding sample, so
/// that each gap is timed too.
void add_rounds(const std::vector<size_t>& parts, size_t together, size_t round,
                std::vector<std::vector<size_t>>& samples) {
  const auto count = static_cast<int64_t>(parts.size()), step = static_cast<int64_t>(together);
  for (int64_t first = -static_cast<int64_t>(round * together / kRounds); first < count; first += step) {
    const auto begin = parts.begin() + std::max<int64_t>(first, 0),
               end = parts.begin() + std::min(first + step + 1, count);
    if (end - begin > 1 || (count == 1 && begin < end)) samples.emplace_back(begin, end);
  }
}

/// Adds a span to a repeating step. A span past the end of the step continues at the start; its work is counted once.
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

/// For each queued part, a span with the part's mean length over all samples. The span begins where the part
/// begins in the last sample.
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

/// The parts of a step as measured, in seconds, and the gaps between the parts on the compute stream.
struct MeasuredParts {
  std::vector<double> lengths, begins;  // [part] in seconds; lengths include the cost of events
  std::vector<size_t> compute;          // the parts on the compute stream
  std::vector<double> gaps, more;       // [compute] the gap after the part; how much longer it may be

  double sum_with(double events) const {
    double sum = 0;
    for (size_t c = 0; c < compute.size(); ++c) sum += std::max(0.0, lengths[compute[c]] - events) + gaps[c];
    return sum;
  }
};

MeasuredParts measured_parts(const std::vector<StepSample>& samples, double step, EventCost cost) {
  const std::vector<Span>& parts = samples[0].recorded;
  MeasuredParts measured;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto if_timed = [&](const StepSample& sample, double seconds) {
      return sample.recorded[i].timed ? std::optional(seconds) : std::nullopt;
    };
    measured.lengths.push_back(median(figures(samples, [&](const StepSample& sample) {
      return if_timed(sample, sample.recorded[i].end - sample.recorded[i].begin);
    })));
    // The events make measured steps longer, so multiply each begin by (step without events / measured step).
    measured.begins.push_back(median(figures(samples, [&](const StepSample& sample) {
      return if_timed(sample, sample.recorded[i].begin * std::min(1.0, step / sample.period));
    })));
    if (computes(parts[i])) measured.compute.push_back(i);
  }
  const std::vector<size_t>& compute = measured.compute;
  for (size_t c = 0; c < compute.size(); ++c) {
    const Gap gap =
        gap_after(samples, compute[c], c + 1 < compute.size() ? std::optional(compute[c + 1]) : std::nullopt, cost);
    measured.gaps.push_back(gap.least);
    measured.more.push_back(gap.most - gap.least);
  }
  return measured;
}

/// Returns the cost of a part's events with which all parts and gaps add up to the time of the step.
double cost_of_events(const MeasuredParts& measured, double step, EventCost cost) {
  double least = std::max(cost.between, cost.around - kUnsure), most = cost.around + kUnsure;
  for (int i = 0; i < 40; ++i) {  // bisection: the sum decreases as the cost of events grows
    const double middle = (least + most) / 2;
    (measured.sum_with(middle) > step ? least : most) = middle;
  }
  return most;
}

}  // namespace

std::vector<std::vector<size_t>> parts_to_time(const std::vector<Span>& parts, size_t samples) {
  std::vector<size_t> compute, others;
  for (size_t i = 0; i < parts.size(); ++i) (computes(parts[i]) ? compute : others).push_back(i);
  const size_t together = std::max(kLeastTogether, (kRounds * parts.size() + samples) / std::max<size_t>(samples, 1));
  std::vector<std::vector<size_t>> out;
  for (size_t round = 0; round < kRounds; ++round)
    for (const auto& of_streams : {compute, others}) add_rounds(of_streams, together, round, out);
  return out;
}

StepTimeline timeline_of(const std::vector<StepSample>& samples, double step, EventCost cost) {
  HCTR_EXPECT(!samples.empty(), "no step has been measured");
  const std::vector<Span>& parts = samples[0].recorded;
  MeasuredParts measured = measured_parts(samples, step, cost);
  const std::vector<size_t>& compute = measured.compute;
  const std::vector<double>&lengths = measured.lengths, &more = measured.more;
  std::vector<double>&begins = measured.begins, &gaps = measured.gaps;
  StepTimeline out;
  out.measured = measured.sum_with(cost.around);
  // If the parts and gaps add up to less than the step, the difference is added to gaps that contain a wait, up to the
  // upper bound of each gap.
  const double all_more = std::accumulate(more.begin(), more.end(), 0.0);
  const double filled = all_more > 0 ? std::clamp((step - out.measured) / all_more, 0.0, 1.0) : 0;
  for (size_t c = 0; c < compute.size(); ++c) gaps[c] += filled * more[c];
  out.events = cost_of_events(measured, step, cost);
  const double scale = std::min(1.0, step / measured.sum_with(out.events));

  double at = 0;
  for (size_t c = 0; c < compute.size(); ++c) {
    begins[compute[c]] = at;
    at += (std::max(0.0, lengths[compute[c]] - out.events) + gaps[c]) * scale;
  }
  std::map<Span::On, double> ended;  // for each stream: the end of the last part
  for (size_t i = 0; i < parts.size(); ++i) {
    Span span = parts[i];
    span.begin = of_next_batch(span) ? begins[i] : std::max(0.0, begins[i]);
    const auto [last, is_first] = ended.try_emplace(span.on, span.begin);
    if (!is_first) span.begin = std::max(span.begin, last->second);
    span.end = last->second = span.begin + std::max(0.0, lengths[i] - out.events) * scale;
    add_in_step(span, step, out.spans);
  }
  for (const Span& span : mean_of_queued(samples)) add_in_step(span, step, out.spans);
  return out;
}

}  // namespace hctr
