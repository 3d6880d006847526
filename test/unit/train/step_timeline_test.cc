// One step from samples in which few parts were timed: what events add is taken off, and nothing is counted twice.
#include "train/step_timeline.h"

#include <gtest/gtest.h>

#include <map>

namespace hctr::test {
namespace {

constexpr double us = 1e-6;

struct True {  // a part as it runs without events
  Span::On on;
  const char* name;
  double begin, end;
};

/// A compute stream with a gap in which it waits for a side stream, and the preparation of another batch.
const std::vector<True> kStep = {
    {Span::On::prepare, "sort", 0, 30 * us},    {Span::On::compute, "a", 0, 10 * us},
    {Span::On::compute, "b", 10 * us, 13 * us}, {Span::On::exchange, "lookup", 2 * us, 40 * us},
    {Span::On::compute, "c", 40 * us, 70 * us}, {Span::On::compute, "d", 70 * us, 98 * us}};
constexpr double kPeriod = 100 * us;

/// What a sample shows of it: the events of a timed part end it `events` later, and so all that follows on its stream.
/// Part c, which waits for the lookup, is as late as that is.
StepSample sample_of(size_t first, size_t every, double events) {
  StepSample sample;
  std::map<Span::On, double> late;
  for (size_t i = 0; i < kStep.size(); ++i) {
    const True& part = kStep[i];
    Span span{.part = "part", .type = "type", .name = part.name, .on = part.on, .work = {.bytes = 8}};
    span.timed = i % every == first || i == 1;
    double& delay = late[part.on];
    if (span.name == "c") delay = late[Span::On::exchange];
    span.begin = part.begin + delay;
    if (span.timed) delay += events;
    span.end = part.end + delay;
    if (!span.timed) span.begin = span.end = 1e9;
    sample.recorded.push_back(span);
  }
  sample.period = kPeriod + late[Span::On::compute];
  return sample;
}

const Span& named(const StepTimeline& timeline, const std::string& name) {
  for (const Span& span : timeline.spans)
    if (span.name == name) return span;
  ADD_FAILURE() << "no part " << name;
  return timeline.spans[0];
}

TEST(StepTimeline, TakesOffWhatEventsAdd) {
  const StepSample all = sample_of(0, 1, 2 * us);
  const double events = seconds_of_events(all, kPeriod);
  EXPECT_NEAR(events, 1.5 * us, 1e-12);               // those of a and b are hidden behind the lookup
  EXPECT_EQ(samples_for_all_parts(all, kPeriod), 2);  // 6 % of the step
  EXPECT_EQ(samples_for_all_parts(sample_of(0, 1, 0.5 * us), kPeriod), 1);
  EXPECT_EQ(seconds_of_events(all, 200 * us), 0);
  constexpr double kNear = 2.6 * us;  // where a wait hides events, they are taken off all the same
  for (const size_t rounds : {1, 3}) {
    std::vector<StepSample> samples = {all};
    for (size_t s = 0; rounds > 1 && s < 6; ++s) samples.push_back(sample_of(s % rounds, rounds, 2 * us));
    const StepTimeline timeline = timeline_of(samples, kPeriod, events);
    ASSERT_EQ(timeline.spans.size(), kStep.size());
    for (const True& part : kStep) {
      EXPECT_NEAR(named(timeline, part.name).begin, part.begin, kNear) << part.name << " of " << rounds;
      EXPECT_NEAR(named(timeline, part.name).end, part.end, kNear) << part.name << " of " << rounds;
    }
    EXPECT_NEAR(timeline.measured, 98 * us, kNear);
  }
}

TEST(StepTimeline, PartsOfAStreamTouchButWhereItWaits) {
  const StepTimeline timeline = timeline_of({sample_of(0, 1, us)}, kPeriod, us);
  EXPECT_EQ(named(timeline, "a").end, named(timeline, "b").begin);
  EXPECT_EQ(named(timeline, "c").end, named(timeline, "d").begin);
  EXPECT_GT(named(timeline, "c").begin - named(timeline, "b").end, 20 * us);
}

/// The preparation of a batch may run into the next step, in which that of the one before ends.
TEST(StepTimeline, AStepRepeats) {
  StepSample sample = sample_of(0, 1, 0);
  sample.recorded[0].begin = 90 * us;
  sample.recorded[0].end = 120 * us;
  sample.queued.push_back({.part = "wait", .type = "reader", .name = "wait", .on = Span::On::host});
  sample.queued[0].begin = -30 * us;
  sample.queued[0].end = -20 * us;
  const StepTimeline timeline = timeline_of({sample}, kPeriod, 0);
  ASSERT_EQ(timeline.spans.size(), kStep.size() + 2);
  EXPECT_NEAR(timeline.spans[0].begin, 90 * us, 1e-12);
  EXPECT_NEAR(timeline.spans[0].end, 100 * us, 1e-12);
  EXPECT_EQ(timeline.spans[0].work.bytes, 8);
  EXPECT_NEAR(timeline.spans[1].begin, 0, 1e-12);
  EXPECT_NEAR(timeline.spans[1].end, 20 * us, 1e-12);
  EXPECT_EQ(timeline.spans[1].work.bytes, 0) << "counted twice";
  EXPECT_NEAR(named(timeline, "wait").begin, 70 * us, 1e-12);
  EXPECT_NEAR(named(timeline, "wait").end, 80 * us, 1e-12);
}

TEST(StepTimeline, IsScaledToTheStepWhereItIsLonger) {
  const StepTimeline timeline = timeline_of({sample_of(0, 1, 0)}, 49 * us, 0);
  EXPECT_NEAR(timeline.measured, 98 * us, 1e-12);
  EXPECT_NEAR(named(timeline, "d").end, 49 * us, 1e-12);
  EXPECT_NEAR(named(timeline, "a").end, 5 * us, 1e-12);
}

TEST(StepTimeline, TimesOfQueuedPartsAreTheMeanOfAllSamples) {
  std::vector<StepSample> samples(4, sample_of(0, 1, 0));
  samples[1].queued.push_back({.part = "wait", .type = "reader", .name = "wait", .on = Span::On::host});
  samples[1].queued[0].begin = 50 * us;
  samples[1].queued[0].end = 70 * us;
  const Span wait = named(timeline_of(samples, kPeriod, 0), "wait");
  EXPECT_NEAR(wait.end - wait.begin, 5 * us, 1e-12);
}

}  // namespace
}  // namespace hctr::test
