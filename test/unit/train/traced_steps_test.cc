// Steps reconstructed from traces of their kernels: parts and idle time add up to the step, for any overlap.
#include "train/traced_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "train/profile_report.h"

namespace hctr::test {
namespace {

using On = Span::On;

constexpr uint32_t kLookUp = 0, kForward = 1, kSideUpdate = 2, kBackward = 3, kPrepare = 4;

Span part(std::string_view name, On on) {
  return {.part = name, .type = "ReLU", .name = name, .on = on, .work = {.flops = 10, .bytes = 100, .launches = 2}};
}

/// The parts of every recording, in recording order.
const std::vector<Span>& recording() {
  static const std::vector<Span> parts = {part("look up", On::exchange), part("forward", On::compute),
                                          part("update", On::other), part("backward", On::compute),
                                          part("prepare", On::prepare)};
  return parts;
}

TracedWork work(uint32_t of, uint32_t launch, double begin, double end) {
  return {PartMark{.recording = launch % 2, .part = of}, launch, begin, end};
}

struct Traced {
  TracedSteps steps;
  StepTimes times;
  int64_t found = 0;
  double share(std::string_view name) const {
    double sum = 0;
    for (const PartTime& one : times.parts)
      if (one.part == name) sum += one.share;
    return sum;
  }
  const PartTime& of(std::string_view name) const {
    return *std::find_if(times.parts.begin(), times.parts.end(), [&](const PartTime& one) { return one.part == name; });
  }
};

Traced trace_of(std::vector<TracedWork> all, std::vector<Span> queued = {}) {
  std::sort(all.begin(), all.end(), [](const TracedWork& a, const TracedWork& b) { return a.begin < b.begin; });
  Traced out;
  out.found = add_series(
      {std::move(all), std::move(queued), [](size_t) -> const std::vector<Span>& { return recording(); }}, out.steps);
  out.times.gpu = true;
  if (out.found > 0) add_up(out.steps.spans, out.steps.steps, out.steps.seconds, out.times);
  return out;
}

constexpr int64_t kSteps = 4, kSeriesOf = kSteps + 1 + kIrregularFirst + kIrregularLast;

/// Equal steps of length `period`. `one(launch, begin)` returns the work of one step.
template <class One>
std::vector<TracedWork> series_of(double period, const One& one) {
  std::vector<TracedWork> all;
  for (uint32_t s = 0; s < kSeriesOf; ++s)
    for (const TracedWork& each : one(2 * s + 100, period * s)) all.push_back(each);
  return all;
}

TEST(TracedSteps, AreThoseBetweenTheirFirstKernelsAndAllPartsAreInThem) {
  const Traced traced = trace_of(series_of(16, [](uint32_t launch, double at) {
    return std::vector<TracedWork>{work(kForward, launch, at, at + 3), work(kForward, launch, at + 4, at + 5),
                                   work(kBackward, launch, at + 7, at + 12)};
  }));
  EXPECT_EQ(traced.found, kSteps);
  EXPECT_EQ(traced.times.seconds, 16);
  EXPECT_EQ(traced.of("forward").seconds, 4) << "kernels, not what lies between them";
  EXPECT_EQ(traced.share("forward"), 4);
  EXPECT_EQ(traced.share("backward"), 5);
  EXPECT_EQ(traced.share("start"), 3) << "between the first and the last kernel of a step";
  EXPECT_EQ(traced.times.idle, 4) << "between steps";
  EXPECT_EQ(traced.of("forward").work.launches, 2);
  EXPECT_EQ(traced.of("backward").work.flops, 10) << "once a step";
}

TEST(TracedSteps, WhatRunsBesideTheComputeStreamIsHidden) {
  const Traced traced = trace_of(series_of(16, [](uint32_t launch, double at) {
    return std::vector<TracedWork>{
        work(kForward, launch, at, at + 4),          work(kLookUp, launch, at + 1, at + 6),
        work(kBackward, launch, at + 6, at + 10),    work(kSideUpdate, launch, at + 8, at + 12),
        work(kPrepare, launch + 1, at + 9, at + 11), work(kPrepare, launch + 1, at + 13, at + 15)};
  }));
  EXPECT_EQ(traced.share("forward"), 4);
  EXPECT_EQ(traced.share("look up"), 2);
  EXPECT_EQ(traced.of("look up").seconds, 5);
  EXPECT_EQ(traced.share("update"), 2);
  EXPECT_EQ(traced.of("prepare").seconds, 4);
  EXPECT_EQ(traced.share("prepare"), 2) << "after the step, before the next one";
  EXPECT_EQ(traced.share("start"), 0) << "a gap in the preparation of a batch is none of the step";
  EXPECT_EQ(traced.times.idle, 2);
}

/// A kernel that starts early occupies multiprocessors and waits for the preceding kernel. Its time counts from the end
/// of that kernel.
TEST(TracedSteps, AKernelThatStartedEarlyHasNoTimeBeforeTheOneInFrontEnds) {
  const Traced traced = trace_of(series_of(8, [](uint32_t launch, double at) {
    return std::vector<TracedWork>{work(kForward, launch, at, at + 4), work(kBackward, launch, at + 2, at + 7)};
  }));
  EXPECT_EQ(traced.of("forward").seconds, 4);
  EXPECT_EQ(traced.of("backward").seconds, 3);
  EXPECT_EQ(traced.share("backward"), 3);
}

TEST(TracedSteps, KernelsOfOnePartOnSeveralStreamsCountOnce) {
  const Traced traced = trace_of(series_of(8, [](uint32_t launch, double at) {
    return std::vector<TracedWork>{work(kForward, launch, at, at + 1), work(kSideUpdate, launch, at + 1, at + 5),
                                   work(kSideUpdate, launch, at + 2, at + 4),
                                   work(kSideUpdate, launch, at + 4, at + 6)};
  }));
  EXPECT_EQ(traced.of("update").seconds, 5);
}

TEST(TracedSteps, QueuedWorkBelongsToItsPartAndUnknownWorkToNone) {
  std::vector<TracedWork> all = series_of(
      8, [](uint32_t launch, double at) { return std::vector<TracedWork>{work(kForward, launch, at, at + 2)}; });
  std::vector<Span> queued;
  const double first = 8 * kIrregularFirst;
  for (uint32_t s = 0; s < kSeriesOf; ++s) {
    const PartMark mark{PartMark::kQueued, static_cast<uint32_t>(queued.size())};
    all.push_back({mark, 1000 + 2 * s, 8.0 * s + 3, 8.0 * s + 4});
    all.push_back({mark, 1001 + 2 * s, 8.0 * s + 5, 8.0 * s + 6});
    all.push_back({std::nullopt, 2000 + s, 8.0 * s + 6.5, 8.0 * s + 7});
    queued.push_back(part("upload", On::prepare));
  }
  queued.push_back({.part = "wait", .type = "reader", .on = On::host, .begin = first + 7, .end = first + 7.5});
  const Traced traced = trace_of(all, queued);
  EXPECT_EQ(traced.share("upload"), 2);
  EXPECT_EQ(traced.of("upload").work.bytes, 100) << "two copies of one part";
  EXPECT_EQ(traced.share("other"), 0.5);
  EXPECT_EQ(traced.share("wait"), 0.5 / kSteps);
}

TEST(TracedSteps, AShortSeriesHasNone) {
  std::vector<TracedWork> all;
  for (uint32_t s = 0; s < 1 + kIrregularFirst + kIrregularLast; ++s) all.push_back(work(kForward, 2 * s, s, s + 0.5));
  const Traced traced = trace_of(all);
  EXPECT_EQ(traced.found, 0);
  EXPECT_TRUE(traced.steps.spans.empty());
  EXPECT_EQ(trace_of({}).found, 0);
}

TEST(TracedSteps, OfSeveralSeriesFollowEachOther) {
  TracedSteps steps;
  StepTimes times;
  for (const double period : {8.0, 16.0})
    add_series(
        {series_of(period, [](uint32_t launch,
                              double at) { return std::vector<TracedWork>{work(kForward, launch, at, at + 4)}; }),
         {},
         [](size_t) -> const std::vector<Span>& { return recording(); }},
        steps);
  EXPECT_EQ(steps.steps, 2 * kSteps);
  EXPECT_EQ(steps.seconds, kSteps * (8 + 16));
  add_up(steps.spans, steps.steps, steps.seconds, times);
  EXPECT_EQ(times.seconds, 12);
  EXPECT_EQ(times.in_parts(), 4);
  EXPECT_EQ(times.idle, 8);
}

/// Times are multiples of 1/8, so sums are exact.
TEST(TracedSteps, PartsAndIdleTimeAreTheStepWhateverOverlaps) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::minstd_rand random(seed);
    const auto eighths = [&](unsigned most) { return static_cast<double>(random() % most) / 8; };
    const Traced traced = trace_of(series_of(32, [&](uint32_t launch, double at) {
      std::vector<TracedWork> all = {work(kForward, launch, at + eighths(8), at + 2)};
      for (int i = 0; i < 12; ++i) {
        const double begin = at + 2 + eighths(160);
        const uint32_t of = random() % 5;
        all.push_back(work(of, of == kPrepare ? launch + 1 : launch, begin, begin + eighths(64)));
      }
      return all;
    }));
    ASSERT_EQ(traced.found, kSteps) << seed;
    EXPECT_EQ(traced.times.in_parts() + traced.times.idle, traced.times.seconds) << seed;
    for (const PartTime& one : traced.times.parts) {
      EXPECT_LE(one.share, one.seconds) << one.part << " " << seed;
      EXPECT_LE(one.seconds, traced.times.seconds) << one.part << " " << seed;
    }
  }
}

}  // namespace
}  // namespace hctr::test
