// Combines samples of a step, each with few timed parts, into one timeline. Parts have their times without event
// overhead, and no part is lost.
#include "train/step_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>

namespace hctr::test {
namespace {

constexpr double us = 1e-6;

/// The true duration of a part, without event overhead.
struct True {
  Span::On on;
  std::string name;
  double seconds;
  std::optional<size_t> waits_for{};  // index of an earlier part
};

/// A step with 24 parts on the compute stream. Most of them take only as long as an event. Two parts wait for a side
/// stream. The next batch is prepared concurrently.
std::vector<True> step_of_short_parts() {
  std::vector<True> parts = {{Span::On::prepare, "unpack", 6 * us}, {Span::On::prepare, "sort", 50 * us}};
  for (int i = 0; i < 24; ++i) {
    if (i == 3) parts.push_back({Span::On::exchange, "lookup", 18 * us, parts.size() - 2});
    if (i == 20) parts.push_back({Span::On::exchange, "update", 30 * us, parts.size() - 1});
    True part{Span::On::compute, "layer" + std::to_string(i), (2 + 0.4 * (i * 7 % 11)) * us};
    if (i == 5) part.waits_for = 5;    // layer 5 waits for the lookup
    if (i == 22) part.waits_for = 23;  // layer 22 waits for the update
    parts.push_back(part);
  }
  return parts;
}

constexpr double kTail = 4 * us;  // from the end of a step's last part to the start of the next step
constexpr EventCost kCost = {.between = 1.2 * us, .around = 2.6 * us};

class Gpu {
 public:
  explicit Gpu(std::vector<True> parts, double jitter = 0.02) : parts_(std::move(parts)), jitter_(jitter) {}

  /// Simulates a step with events for the parts `timed` and for the first part of the compute stream. nullptr: events
  /// for all parts.
  StepSample run(const std::vector<size_t>* timed) {
    StepSample sample;
    std::map<Span::On, double> clock;
    std::vector<double> ends;
    std::optional<double> origin;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const True& part = parts_[i];
      Span span{.part = "part", .type = "type", .name = part.name, .on = part.on, .work = {.bytes = 8}};
      span.timed = !timed || std::count(timed->begin(), timed->end(), i) > 0;
      double& now = clock[part.on];
      if (part.waits_for) now = std::max(now, ends[*part.waits_for]);
      if (part.on == Span::On::compute && !origin) {
        span.timed = true;
        origin = now + kCost.between;
      }
      const double length = part.seconds * (1 + std::uniform_real_distribution(-jitter_, jitter_)(random_));
      if (span.timed) {
        span.begin = now + kCost.between;
        span.end = now = span.begin + length + kCost.around;
      } else {
        now += length;
        span.begin = span.end = 1e9;
      }
      ends.push_back(now);
      sample.recorded.push_back(span);
    }
    double end = 0;
    for (const auto& [on, at] : clock)
      if (on != Span::On::prepare) end = std::max(end, at);
    // The period is the time between two begin events. Both begin events have the same delay, so the period needs no
    // correction.
    sample.period = end + kTail;
    for (Span& span : sample.recorded) {
      span.begin -= *origin;
      span.end -= *origin;
    }
    return sample;
  }

  /// Returns the seconds of a step without events.
  double seconds() const {
    Gpu still(parts_, 0);
    const StepSample sample = still.run(&kNone);
    // The first part always has events. No stream waits for them, so their time is subtracted.
    return sample.period - kCost.around - kCost.between;
  }

  std::vector<StepSample> samples(size_t most) {
    std::vector<StepSample> out = {run(nullptr)};
    for (const std::vector<size_t>& timed : parts_to_time(out[0].recorded, most)) out.push_back(run(&timed));
    return out;
  }

 private:
  inline static const std::vector<size_t> kNone = {};
  std::vector<True> parts_;
  double jitter_;
  std::mt19937 random_{7};
};

/// The total length of each part over all its intervals.
std::map<std::string, double> lengths_of(const StepTimeline& timeline) {
  std::map<std::string, double> lengths;
  for (const Span& span : timeline.spans) lengths[std::string(span.name)] += span.end - span.begin;
  return lengths;
}

const Span& named(const StepTimeline& timeline, const std::string& name) {
  for (const Span& span : timeline.spans)
    if (span.name == name) return span;
  ADD_FAILURE() << "no part " << name;
  return timeline.spans[0];
}

double idle_of_compute(const StepTimeline& timeline, double step) {
  double busy = 0;
  for (const Span& span : timeline.spans)
    if (span.on == Span::On::compute) busy += span.end - span.begin;
  return step - busy;
}

void expect_true_lengths(const StepTimeline& timeline, const std::vector<True>& parts, double near = 0.5 * us) {
  std::map<std::string, double> lengths = lengths_of(timeline);
  EXPECT_EQ(lengths.size(), parts.size());
  for (const True& part : parts)
    EXPECT_NEAR(lengths[part.name], part.seconds, std::max(near, 0.05 * part.seconds)) << part.name;
}

TEST(StepTimeline, GivesShortPartsTheTimeThatTheyTakeWithoutEvents) {
  const std::vector<True> parts = step_of_short_parts();
  for (const size_t most : {60, 20, 8}) {
    SCOPED_TRACE(most);
    Gpu gpu(parts);
    const double step = gpu.seconds();
    const StepTimeline timeline = timeline_of(gpu.samples(most), step, kCost);
    expect_true_lengths(timeline, parts);
    EXPECT_NEAR(timeline.measured, step, 0.1 * step) << "less what events hide of two waits";
    EXPECT_NEAR(timeline.events, kCost.around, 0.5 * us);
    double work = 0;
    for (const True& part : parts) work += part.on == Span::On::compute ? part.seconds : 0;
    EXPECT_NEAR(idle_of_compute(timeline, step), step - work, 0.05 * step);
    EXPECT_NEAR(named(timeline, "layer22").begin - named(timeline, "layer21").end, 21.2 * us, 5 * us) << "a wait";
    // Layer 5 waits for less than the cost of two events, so the wait cannot be detected.
    EXPECT_DOUBLE_EQ(named(timeline, "layer7").begin, named(timeline, "layer6").end);
  }
}

/// If the assumed cost of an event is wrong, the sum of the parts differs from the step. The timeline then corrects the
/// cost, so the times of the parts are right.
TEST(StepTimeline, WhatEventsCostFollowsFromTheStep) {
  const std::vector<True> parts = step_of_short_parts();
  Gpu gpu(parts);
  const double step = gpu.seconds();
  const std::vector<StepSample> samples = gpu.samples(60);
  for (const double wrong : {-0.7 * us, 0.7 * us}) {
    const StepTimeline timeline = timeline_of(samples, step, {kCost.between, kCost.around + wrong});
    EXPECT_GT(std::abs(timeline.measured - step), 0.03 * step);
    expect_true_lengths(timeline, parts, 0.6 * us);
  }
}

TEST(StepTimeline, NeighboursAreTimedTogetherInEachRound) {
  Gpu gpu(step_of_short_parts());
  const std::vector<Span> parts = gpu.run(nullptr).recorded;
  for (const size_t most : {1, 5, 20, 100}) {
    const auto samples = parts_to_time(parts, most);
    EXPECT_LE(samples.size(), most + 6) << "two kinds of streams in three rounds";
    std::optional<size_t> before;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto times = [&](size_t one, size_t other) {
        return std::count_if(samples.begin(), samples.end(), [&](const std::vector<size_t>& timed) {
          return std::count(timed.begin(), timed.end(), one) > 0 && std::count(timed.begin(), timed.end(), other) > 0;
        });
      };
      EXPECT_GE(times(i, i), 3) << parts[i].name;
      if (parts[i].on != Span::On::compute) continue;
      if (before) {
        EXPECT_GE(times(*before, i), 3) << parts[i].name;
      }
      before = i;
    }
  }
}

/// A run may end before all samples are taken.
TEST(StepTimeline, APartThatNoOtherSampleHasIsThatOfTheFirstOne) {
  const std::vector<True> parts = step_of_short_parts();
  Gpu gpu(parts);
  const double step = gpu.seconds();
  std::vector<StepSample> samples = gpu.samples(60);
  for (const size_t left : {1, 4}) {
    samples.resize(std::min<size_t>(samples.size(), 5 - left + 1));
    std::map<std::string, double> lengths = lengths_of(timeline_of(samples, step, kCost));
    EXPECT_EQ(lengths.size(), parts.size());
    for (const True& part : parts) EXPECT_NEAR(lengths[part.name], part.seconds, 1.1 * us + 0.05 * part.seconds);
  }
}

const std::vector<True> kFewParts = {
    {Span::On::prepare, "sort", 30 * us}, {Span::On::compute, "a", 40 * us}, {Span::On::compute, "b", 56 * us}};
constexpr double kPeriod = 100 * us;

/// The preparation of a batch may extend into the next step, which therefore contains the end of the previous
/// preparation.
TEST(StepTimeline, AStepRepeats) {
  Gpu gpu(kFewParts, 0);
  StepSample sample = gpu.run(nullptr);
  sample.period = kPeriod;
  sample.recorded[0].begin = 90 * us;
  sample.recorded[0].end = 120 * us + kCost.around;
  sample.queued.push_back({.part = "wait", .type = "reader", .name = "wait", .on = Span::On::host});
  sample.queued[0].begin = -30 * us;
  sample.queued[0].end = -20 * us;
  const StepTimeline timeline = timeline_of({sample}, kPeriod, kCost);
  ASSERT_EQ(timeline.spans.size(), kFewParts.size() + 2);
  EXPECT_NEAR(timeline.spans[0].begin, 90 * us, 1e-12);
  EXPECT_NEAR(timeline.spans[0].end, 100 * us, 1e-12);
  EXPECT_EQ(timeline.spans[0].work.bytes, 8);
  EXPECT_NEAR(timeline.spans[1].begin, 0, 1e-12);
  EXPECT_NEAR(timeline.spans[1].end, 20 * us, 2 * us);
  EXPECT_EQ(timeline.spans[1].work.bytes, 0) << "counted twice";
  EXPECT_NEAR(named(timeline, "wait").begin, 70 * us, 1e-12);
  EXPECT_NEAR(named(timeline, "wait").end, 80 * us, 1e-12);
}

TEST(StepTimeline, IsScaledToTheStepWhereEventsDoNotExplainIt) {
  Gpu gpu(kFewParts, 0);
  StepSample sample = gpu.run(nullptr);
  const StepTimeline timeline = timeline_of({sample}, kPeriod / 2, kCost);
  EXPECT_NEAR(timeline.measured, kPeriod, us);
  EXPECT_NEAR(named(timeline, "a").end, 20 * us, us);
  EXPECT_NEAR(idle_of_compute(timeline, kPeriod / 2), kTail / 2, us);
  const StepTimeline longer = timeline_of({sample}, 2 * kPeriod, kCost);
  EXPECT_NEAR(named(longer, "b").end, 96 * us, 2.1 * us);
  EXPECT_NEAR(idle_of_compute(longer, 2 * kPeriod), kPeriod + kTail, 2.1 * us);
}

TEST(StepTimeline, TimesOfQueuedPartsAreTheMeanOfAllSamples) {
  Gpu gpu(kFewParts, 0);
  std::vector<StepSample> samples(4, gpu.run(nullptr));
  samples[1].queued.push_back({.part = "wait", .type = "reader", .name = "wait", .on = Span::On::host});
  samples[1].queued[0].begin = 50 * us;
  samples[1].queued[0].end = 70 * us;
  const Span wait = named(timeline_of(samples, kPeriod, kCost), "wait");
  EXPECT_NEAR(wait.end - wait.begin, 5 * us, 1e-12);
}

}  // namespace
}  // namespace hctr::test
