// The report of a profile: sums of spans, overlapping parts, and the sentence about the bottleneck.
#include "train/profile_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/traced_steps.h"

namespace hctr::test {
namespace {

constexpr Ceilings kCeilings = {.copy_bytes = 10e9, .product_flops = 100e9, .products = DType::f32};

Span span(Span::On on, std::string_view part, std::string_view type, std::string_view name, double begin, double end,
          Work work = {}) {
  return {part, type, name, on, work, begin, end};
}

StepTimes times_of(const std::vector<Span>& spans, int64_t steps, double time, bool gpu = false) {
  StepTimes times;
  times.gpu = gpu;
  times.ceilings = kCeilings;
  add_up(spans, steps, time, times);
  return times;
}

/// The bottleneck of a step of 10 ms in which layers of one type take 8 ms. `work`: the work of these layers.
std::string bottleneck_of(Work work, bool gpu = false) {
  return bottleneck(times_of({span(Span::On::compute, "forward", "InnerProduct", "fc1", 0, 8e-3, work),
                              span(Span::On::compute, "update", "weights", "all", 8e-3, 9.9e-3)},
                             1, 10e-3, gpu));
}

TEST(ProfileReport, AddsUpTheSpansOfEachPartAStep) {
  const Work work{.flops = 6, .bytes = 10};
  const StepTimes times = times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 2, work),
                                    span(Span::On::compute, "backward", "ReLU", "relu1", 2, 3),
                                    span(Span::On::compute, "forward", "ReLU", "relu1", 4, 5, work)},
                                   2, 5);
  EXPECT_EQ(times.steps, 2);
  EXPECT_DOUBLE_EQ(times.seconds, 2.5);
  ASSERT_EQ(times.parts.size(), 2u);
  EXPECT_EQ(times.parts[0].part, "forward");
  EXPECT_DOUBLE_EQ(times.parts[0].seconds, 1.5);
  EXPECT_DOUBLE_EQ(times.parts[0].work.flops, 6);
  EXPECT_DOUBLE_EQ(times.parts[0].work.bytes, 10);
  EXPECT_DOUBLE_EQ(times.parts[1].seconds, 0.5);
  EXPECT_DOUBLE_EQ(times.in_parts(), 2);
  EXPECT_DOUBLE_EQ(times.idle, 0.5);
}

TEST(ProfileReport, OnAGpuAnInstantBelongsToTheStreamThatTheStepWaitsFor) {
  const StepTimes times = times_of(
      {span(Span::On::compute, "forward", "ReLU", "relu1", 0, 4),
       span(Span::On::prepare, "prepare", "embedding", "all tables", 1, 6),
       span(Span::On::exchange, "forward", "embedding", "all tables", 3, 5),
       span(Span::On::compute, "backward", "ReLU", "relu1", 5, 8), span(Span::On::host, "wait", "reader", "", 0, 9)},
      1, 10, true);
  const auto share = [&](size_t part) { return times.parts[part].share; };
  EXPECT_DOUBLE_EQ(share(0), 4);
  EXPECT_DOUBLE_EQ(share(1), 0);  // part 1 is hidden behind other parts
  EXPECT_DOUBLE_EQ(share(2), 1);  // from 4 to 5 the compute stream waits for this part
  EXPECT_DOUBLE_EQ(share(3), 3);
  EXPECT_DOUBLE_EQ(share(4), 1);  // from 8 to 9 the GPU is idle while the host waits
  EXPECT_DOUBLE_EQ(times.idle, 1);
  EXPECT_DOUBLE_EQ(times.in_parts() + times.idle, times.seconds);
  EXPECT_DOUBLE_EQ(times.parts[1].seconds, 5);
  ASSERT_EQ(times.parts[2].beside.size(), 3u);
  EXPECT_EQ(times.parts[2].beside[0].part, 1u);  // `beside` is sorted, longest first
  EXPECT_DOUBLE_EQ(times.parts[2].beside[0].seconds, 2);
  ASSERT_EQ(times.streams.size(), 2u);
  EXPECT_EQ(times.streams[0].on, Span::On::prepare);
  EXPECT_DOUBLE_EQ(times.streams[0].seconds, 5);
  EXPECT_DOUBLE_EQ(times.streams[0].hidden, 4);  // hidden in [1, 4] and [5, 6]
}

TEST(ProfileReport, SaysWhatRunsBesideWhat) {
  const std::vector<std::string> lines =
      lines_of(times_of({span(Span::On::compute, "forward", "InnerProduct", "fc1", 0, 8e-3),
                         span(Span::On::exchange, "forward", "embedding", "all tables", 5e-3, 9e-3)},
                        1, 10e-3, true));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "Overlapping parts: 3.00 ms forward fc1 | forward all tables"), 1);
}

/// A part that is hidden behind other work is no bottleneck, however long it runs.
TEST(ProfileReport, NamesTheBottleneckByShares) {
  EXPECT_EQ(bottleneck(times_of({span(Span::On::prepare, "upload", "batch", "", 0, 9e-3),
                                 span(Span::On::compute, "forward", "ReLU", "relu1", 1e-3, 8e-3)},
                                1, 10e-3, true)),
            "The bottleneck is the layers of type ReLU: 7.00 of 10.00 ms (70 %).");
  EXPECT_EQ(bottleneck(times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 3e-3),
                                 span(Span::On::other, "update", "embedding", "all tables", 1e-3, 9e-3)},
                                1, 10e-3, true)),
            "The bottleneck is the embedding tables: 6.00 of 10.00 ms (60 %).");
}

TEST(ProfileReport, NamesTheLayersAndHowFarTheyAreFromTheMachine) {
  EXPECT_EQ(bottleneck_of({.flops = 0.72e9}),
            "The bottleneck is the layers of type InnerProduct: 8.00 of 10.00 ms (80 %), at 90 % of the rate of "
            "large GEMMs on this machine: limited by arithmetic; only fewer or cheaper multiplications would help.");
  EXPECT_EQ(bottleneck_of({.flops = 0.16e9}),
            "The bottleneck is the layers of type InnerProduct: 8.00 of 10.00 ms (80 %), at only 20 % of the rate "
            "of large GEMMs on this machine: limited by the code, not by the machine.");
  EXPECT_EQ(bottleneck_of({.bytes = 64e6}),
            "The bottleneck is the layers of type InnerProduct: 8.00 of 10.00 ms (80 %), at 80 % of the speed of a "
            "copy on this machine: limited by memory bandwidth; only moving fewer bytes would help.");
  EXPECT_EQ(bottleneck_of({}), "The bottleneck is the layers of type InnerProduct: 8.00 of 10.00 ms (80 %).");
}

TEST(ProfileReport, KernelsThatAreTooShortAreTheLimitThemselves) {
  EXPECT_EQ(bottleneck_of({.flops = 0.16e9, .launches = 2000}, true),
            "The bottleneck is the layers of type InnerProduct: 8.00 of 10.00 ms (80 %), in 2000 kernels of 4.0 "
            "us: limited by kernel launches; a larger batch would use the GPU better.");
  EXPECT_NE(bottleneck_of({.flops = 0.16e9, .launches = 1000}, true).find("limited by the code"), std::string::npos);
  EXPECT_NE(bottleneck_of({.flops = 0.72e9, .launches = 2000}, true).find("would help"), std::string::npos);
}

/// The preparation of keys is mostly hidden, so the sentence omits it.
TEST(ProfileReport, TheSentenceGoesByWhatIsNotHidden) {
  const std::string sentence =
      bottleneck(times_of({span(Span::On::compute, "update", "embedding", "all tables", 0, 4e-3, {.bytes = 32e6}),
                           span(Span::On::prepare, "prepare", "embedding", "all tables", 0, 4e-3, {.bytes = 1e6})},
                          1, 5e-3, true));
  EXPECT_NE(sentence.find("at 80 % of the speed of a copy"), std::string::npos) << sentence;
}

TEST(ProfileReport, ProductsInFp8AreHeldAgainstTheirOwnRate) {
  const auto sentence = [](Work work) {
    StepTimes times = times_of({span(Span::On::compute, "forward", "InnerProduct", "fc1", 0, 8e-3, work)}, 1, 8e-3);
    times.ceilings.fp8_flops = 2 * kCeilings.product_flops;
    return bottleneck(times);
  };
  // 0.4 GFLOP take 2 ms in FP8, or 4 ms in other types.
  const std::string some = sentence({.flops = 0.8e9, .fp8_flops = 0.4e9}), none = sentence({.flops = 0.8e9});
  EXPECT_NE(some.find("at 75 % of the rate of large GEMMs"), std::string::npos) << some;
  EXPECT_NE(none.find("at 100 % of the rate of large GEMMs"), std::string::npos) << none;
}

TEST(ProfileReport, SharesOfACeilingAreThoseOfTheSlowerOne) {
  // 2 ms of GEMMs and 6 ms of memory traffic, so memory bandwidth is the limit.
  const std::string sentence = bottleneck_of({.flops = 0.2e9, .bytes = 60e6});
  EXPECT_NE(sentence.find("at 75 % of the speed of a copy"), std::string::npos) << sentence;
}

TEST(ProfileReport, NamesTheReaderTheHostAndWhatNoPartHolds) {
  EXPECT_EQ(bottleneck(times_of({span(Span::On::host, "wait", "reader", "", 0, 6e-3),
                                 span(Span::On::compute, "forward", "ReLU", "relu1", 6e-3, 9e-3)},
                                1, 10e-3)),
            "The bottleneck is the reader: steps wait for data for 6.00 of 10.00 ms (60 %).");
  const std::vector<Span> gpu = {span(Span::On::host, "wait", "reader", "", 0, 6e-3),
                                 span(Span::On::compute, "forward", "ReLU", "relu1", 6e-3, 9e-3)};
  EXPECT_EQ(bottleneck(times_of(gpu, 1, 10e-3, true)),
            "The bottleneck is the reader: steps wait for data for 6.00 of 10.00 ms (60 %).");
  const std::vector<Span> idle = {span(Span::On::compute, "forward", "ReLU", "relu1", 6e-3, 9e-3)};
  EXPECT_EQ(bottleneck(times_of(idle, 1, 10e-3, true)),
            "The bottleneck is the host: the GPU is idle for 7.00 of 10.00 ms (70 %).");
  EXPECT_EQ(bottleneck(times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 3e-3)}, 1, 10e-3)),
            "The bottleneck is none of the parts: 7.00 of 10.00 ms (70 %) pass between parts.");
}

TEST(ProfileReport, SaysHowTheStepWasMeasured) {
  StepTimes times = times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 3e-3)}, 1, 4e-3, true);
  EXPECT_EQ(lines_of(times)[0], "Profile of 1 steps of 0 samples: 4.00 ms a step.");
  times.unmeasured = 3e-3;
  EXPECT_EQ(lines_of(times)[0], "Profile of 1 steps of 0 samples: 4.00 ms a step (3.00 without measuring parts).");
  times.trained_recorded = true;
  EXPECT_EQ(lines_of(times)[0],
            "Profile of 1 steps of 0 samples: 4.00 ms a step, not recorded (3.00 recorded, as in training).");
  times.recorded = true;
  times.measured = 4.1e-3;
  EXPECT_EQ(lines_of(times)[0],
            "Profile of 1 steps of 0 samples: 4.00 ms a step (sum of the times of its parts and gaps: 4.10).");
}

TEST(ProfileReport, SaysWhatTracingDoesToTheStepOrWhyThereIsNone) {
  StepTimes times = times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 3e-3)}, 1, 4e-3, true);
  times.recorded = times.trained_recorded = times.traced = true;
  times.unmeasured = 3.9e-3;
  EXPECT_EQ(lines_of(times)[0], "Profile of 1 steps of 0 samples: 4.00 ms a step, traced (3.90 as in training).");
  EXPECT_EQ(lines_of(times)[1].find("On this machine"), 0u);
  times.unmeasured = 3.6e-3;
  EXPECT_EQ(lines_of(times)[1],
            "Steps took 11 % more time while traced than untraced: all figures are from traced steps.");
  times.traced = false;
  times.not_traced = "libcupti.so.13 was not found";
  EXPECT_EQ(lines_of(times)[1],
            "Kernels were not traced: libcupti.so.13 was not found. Parts are measured with events instead, which "
            "lengthen short parts by a few microseconds.");
}

TEST(ProfileReport, TheStartOfKernelsIsABottleneckOfItsOwn) {
  EXPECT_EQ(
      bottleneck(times_of({span(Span::On::compute, "forward", "ReLU", "relu1", 0, 3e-3, {.launches = 40}),
                           span(Span::On::prepare, "prepare", "embedding", "e", 0, 1e-3, {.launches = 7}),
                           span(Span::On::compute, "start", kStartOfKernels, "of a step", 3e-3, 8e-3),
                           span(Span::On::compute, "backward", "Add", "add1", 8e-3, 10e-3, {.launches = 10})},
                          1, 10e-3, true)),
      "The bottleneck is launching kernels: for 5.00 of 10.00 ms (50 %) the GPU is idle between the 50 kernels of "
      "a step: a larger batch would use the GPU better.");
}

TEST(ProfileReport, LinesHaveEveryPartAndJoinThoseTooSmallToMatter) {
  const std::vector<std::string> lines = lines_of(
      times_of({span(Span::On::compute, "forward", "InnerProduct", "fc1", 0, 5, {.flops = 100e9, .bytes = 5e9}),
                span(Span::On::compute, "forward", "ReLU", "tiny", 5, 5.001),
                span(Span::On::compute, "forward", "Add", "tiny2", 5.001, 5.002)},
               1, 10));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (const char* piece :
       {"forward", "InnerProduct", "fc1", "5000.0", "20.0", "2 smaller parts", "all parts", "the rest"})
    EXPECT_NE(text.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << text;
  EXPECT_EQ(text.find("tiny"), std::string::npos) << text;
}

}  // namespace
}  // namespace hctr::test
