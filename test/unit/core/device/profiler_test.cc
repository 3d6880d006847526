// Spans of a step are measured only between start() and stop().
#include "core/device/profiler.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "ops/common/fill.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "support/guarded_tensor.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::milliseconds;

TEST(Profiler, MeasuresEachPartAndCountsItsProducts) {
  for (const Device device : devices()) {
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream()), prepare(runtime, runtime.prepare_stream());
    Buffer memory(device, 3 * 256);
    const auto matrix = [&](size_t i, int64_t rows, int64_t columns) {
      return Tensor(memory.data() + i * 256, TensorSpec(DType::f32, {rows, columns}), device);
    };
    Profiler profiler(runtime);
    for (int times = 0; times < 2; ++times) {  // the second start() discards earlier spans
      profiler.start();
      {
        const ProfiledPart part(ctx, "forward", "InnerProduct", "fc1", {.bytes = 10});
        ops::matmul(ctx, matrix(0, 2, 3), ops::Transpose::no, matrix(1, 3, 4), ops::Transpose::no, matrix(2, 2, 4));
        ops::matmul(ctx, matrix(0, 3, 2), ops::Transpose::yes, matrix(1, 3, 4), ops::Transpose::no, matrix(2, 2, 4));
      }
      {
        const ProfiledPart part(runtime, "wait", "reader");
        std::this_thread::sleep_for(milliseconds(3));
      }
      {
        const ProfiledPart part(prepare, "upload", "batch", "");
        ops::fill(prepare, 1, matrix(0, 4, 4));
      }
      const double all = profiler.stop();
      const std::vector<Span>& spans = profiler.spans();
      ASSERT_EQ(spans.size(), 3u);
      EXPECT_EQ(spans[0].part, "forward");
      EXPECT_EQ(spans[0].type, "InnerProduct");
      EXPECT_EQ(spans[0].name, "fc1");
      EXPECT_EQ(spans[0].on, Span::On::compute);
      EXPECT_EQ(spans[0].work.flops, 2 * (2 * 2 * 3 * 4));
      EXPECT_EQ(spans[0].work.bytes, 10);
      EXPECT_EQ(spans[1].on, Span::On::host);
      EXPECT_EQ(spans[1].work.flops, 0);
      EXPECT_GE(spans[1].end - spans[1].begin, 3e-3);
      EXPECT_EQ(spans[2].on, device.is_cuda() ? Span::On::prepare : Span::On::compute);
      for (const Span& span : spans) {
        EXPECT_GE(span.begin, 0) << span.part;
        EXPECT_LE(span.begin, span.end) << span.part;
        EXPECT_LE(span.end, all) << span.part;
      }
    }
  }
}

/// Returns the profiled time of many short parts, divided by the profiled time of the same work as one part.
double time_of_parts(Device device) {
  Runtime& runtime = runtime_of(device);
  Context ctx(runtime, runtime.compute_stream());
  Buffer memory(device, 256);
  Profiler profiler(runtime);
  profiler.start();
  for (int i = 0; i < 200; ++i) {
    const ProfiledPart part(ctx, "forward", "one", "");
    zero_bytes(ctx.stream(), memory.data(), memory.bytes());
  }
  {
    const ProfiledPart part(ctx, "forward", "all", "");
    for (int i = 0; i < 200; ++i) zero_bytes(ctx.stream(), memory.data(), memory.bytes());
  }
  profiler.stop();
  double each = 0, together = 0;
  for (const Span& span : profiler.spans()) (span.type == "one" ? each : together) += span.end - span.begin;
  return each / together;
}

/// Each of the two events of a part costs one or two microseconds on a GPU. Other programs may disturb some of the
/// rounds, but not all.
TEST(Profiler, GivesPartsTheTimeThatTheyHaveTogether) {
  for (const Device device : devices()) {
    if (!device.is_cuda()) continue;
    double share = 0;
    for (int round = 0; round < 10 && (share < 0.3 || share > 2); ++round) share = time_of_parts(device);
    EXPECT_GT(share, 0.3);
    EXPECT_LT(share, 2);
  }
}

TEST(Profiler, KnowsWhatRecordedEventsCost) {
  for (const Device device : devices()) {
    Profiler profiler(runtime_of(device));
    const EventCost cost = profiler.cost_of_recorded_events();
    EXPECT_EQ(cost.between > 0, device.is_cuda());
    EXPECT_GE(cost.around, cost.between);
    EXPECT_LT(cost.around, 20e-6);
  }
}

/// A recorded step is timed in every replay. The timed parts are selected when the step is recorded.
TEST(Profiler, TimesSomePartsOfRecordedWork) {
  for (const Device device : devices()) {
    if (!device.is_cuda()) continue;
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    Buffer memory(device, 64 << 20);
    Profiler profiler(runtime);
    const auto body = [&] {
      for (const int mebibytes : {64, 1, 1, 32}) {
        {
          const ProfiledPart nothing(ctx, "backward", "zeros", "");
        }
        const ProfiledPart part(ctx, "forward", "zeros", "");
        zero_bytes(ctx.stream(), memory.data(), static_cast<size_t>(mebibytes) << 20);
      }
    };
    profiler.time_parts({1, 3});
    runtime.set_profiler(&profiler);
    profiler.begin_recording(7);
    Program program(ctx.stream(), true, body);
    profiler.end_recording();
    runtime.set_profiler(nullptr);
    double before = -1;
    for (int times = 0; times < 2; ++times) {
      profiler.start();
      program.run();
      program.run();
      const double all = profiler.stop();
      EXPECT_TRUE(profiler.spans().empty());
      const std::vector<Span>& parts = profiler.recorded(7);
      ASSERT_EQ(parts.size(), 4u);
      // time_parts() selected parts 1 and 3. Part 0 is timed because it is the first part of the stream.
      const bool timed[] = {true, true, false, true};
      for (size_t p = 0; p < 4; ++p) {
        EXPECT_EQ(parts[p].timed, timed[p]) << p;
        EXPECT_EQ(parts[p].part, "forward") << "nothing runs in the others";
        EXPECT_EQ(parts[p].work.launches, 1) << p;
      }
      EXPECT_GT(parts[0].begin, 0);
      EXPECT_LT(parts[0].begin, parts[0].end);
      EXPECT_LE(parts[0].end, parts[1].begin);
      EXPECT_LT(parts[1].end, parts[3].begin);
      EXPECT_LE(parts[3].end, all);
      EXPECT_GT(parts[0].end - parts[0].begin, parts[3].end - parts[3].begin) << "twice as many bytes";
      EXPECT_NE(parts[0].begin, before);
      before = parts[0].begin;
    }
  }
}

/// With CUPTI records, no part needs events, and each kernel or copy maps to its part.
TEST(Profiler, TracesWhatRecordedAndQueuedPartsDo) {
  for (const Device device : devices()) {
    if (!device.is_cuda()) continue;
    Runtime& runtime = runtime_of(device);
    Context compute(runtime, runtime.compute_stream()), side(runtime, runtime.exchange_stream()),
        prepare(runtime, runtime.prepare_stream());
    Buffer memory(device, 48 << 20), other(device, 48 << 20);
    HostBuffer host(device, 1 << 20);
    Event begun(device), ended(device);
    Profiler profiler(runtime);
    const std::string reason = profiler.begin_trace();
    if (!reason.empty()) {
      EXPECT_NE(reason.find("CUPTI"), std::string::npos) << reason;
      GTEST_SKIP() << reason;
    }
    const auto megabytes = [](size_t count) { return count << 20; };
    std::vector<std::unique_ptr<Program>> programs;
    runtime.set_profiler(&profiler);
    for (const size_t recording : {0, 3}) {
      profiler.begin_recording(recording);
      programs.push_back(std::make_unique<Program>(compute.stream(), true, [&] {
        {
          const ProfiledPart part(compute, "forward", "zeros", "");
          zero_bytes(compute.stream(), memory.data(), megabytes(8));
          ops::fill(compute, 1, Tensor(memory.data(), TensorSpec(DType::f32, {1 << 20}), device));
        }
        begun.record(compute.stream());
        begun.make_wait(side.stream());
        {
          const ProfiledPart part(side, "beside", "zeros", "");
          zero_bytes(side.stream(), other.data(), megabytes(16));
        }
        {
          const ProfiledPart part(compute, "backward", "copy", "");
          copy_bytes(compute.stream(), memory.data() + megabytes(24), memory.data(), megabytes(24));
        }
        ended.record(side.stream());
        ended.make_wait(compute.stream());
      }));
    }
    profiler.end_recording();
    runtime.set_profiler(nullptr);
    for (int times = 0; times < 2; ++times) {  // the second start() discards earlier spans
      profiler.start();
      for (int steps = 0; steps < 3; ++steps) {
        {
          const ProfiledPart part(prepare, "upload", "batch", "");
          copy_bytes(prepare.stream(), other.data() + megabytes(32), host.data(), host.bytes());
        }
        for (const auto& program : programs) program->run();
      }
      const double all = profiler.stop();
      const std::vector<TracedWork>& traced = profiler.traced();
      ASSERT_EQ(traced.size(), 3u * (1 + 2 * 4));
      ASSERT_EQ(profiler.spans().size(), 3u);
      std::map<std::string, int> runs;
      std::map<uint32_t, std::set<uint32_t>> recordings;  // key: graph launch; value: its recordings
      double before = 0;
      for (const TracedWork& work : traced) {
        ASSERT_TRUE(work.mark.has_value());
        const bool queued = work.mark->recording == PartMark::kQueued;
        const std::vector<Span>& parts = queued ? profiler.spans() : profiler.recorded(work.mark->recording);
        ASSERT_LT(work.mark->part, parts.size());
        ++runs[std::string(parts[work.mark->part].part)];
        if (!queued) recordings[work.launch].insert(work.mark->recording);
        EXPECT_GE(work.begin, before);
        EXPECT_LT(work.begin, work.end);
        EXPECT_LE(work.end, all + 1e-4) << "on the axis of start()";
        before = work.begin;
      }
      EXPECT_EQ(runs["upload"], 3);
      EXPECT_EQ(runs["forward"], 2 * 6);
      EXPECT_EQ(runs["beside"], 6);
      EXPECT_EQ(runs["backward"], 6);
      EXPECT_EQ(recordings.size(), 6u);
      for (const auto& [launch, of] : recordings) EXPECT_EQ(of.size(), 1u) << launch;
    }
    profiler.end_trace();
    profiler.start();
    { const ProfiledPart part(compute, "forward", "zeros", ""); }
    profiler.stop();
    EXPECT_TRUE(profiler.traced().empty());
    EXPECT_TRUE(profiler.spans()[0].timed) << "by events again";
  }
}

TEST(Profiler, DoesNotTraceACpu) {
  Runtime runtime(kCpu, {});
  Profiler profiler(runtime);
  EXPECT_EQ(profiler.begin_trace(), "this device is not a GPU");
}

/// Some recordings may not have run when measuring ends.
TEST(Profiler, KnowsNoTimesOfRecordedWorkBeforeItHasRun) {
  for (const Device device : devices()) {
    if (!device.is_cuda()) continue;
    Runtime& runtime = runtime_of(device);
    Context ctx(runtime, runtime.compute_stream());
    Buffer memory(device, 1 << 20);
    Profiler profiler(runtime);
    runtime.set_profiler(&profiler);
    profiler.begin_recording(0);
    Program program(ctx.stream(), true, [&] {
      const ProfiledPart part(ctx, "forward", "zeros", "");
      zero_bytes(ctx.stream(), memory.data(), memory.bytes());
    });
    profiler.end_recording();
    for (const bool runs : {false, true}) {
      profiler.start();
      if (runs) program.run();
      profiler.stop();
      ASSERT_EQ(profiler.recorded(0).size(), 1u);
      EXPECT_EQ(profiler.recorded(0)[0].timed, runs);
    }
  }
}

TEST(Profiler, KnowsNoTimesOfWhatWasRecordedMeanwhile) {
  Runtime runtime(kCpu, {});
  Context ctx(runtime, runtime.compute_stream());
  Profiler profiler(runtime);
  profiler.start();
  profiler.begin_recording(0);
  { const ProfiledPart part(ctx, "forward", "ReLU", "relu1"); }
  profiler.end_recording();
  { const ProfiledPart part(ctx, "backward", "ReLU", "relu1"); }
  profiler.stop();
  ASSERT_EQ(profiler.recorded(0).size(), 1u);
  EXPECT_FALSE(profiler.recorded(0)[0].timed);
  ASSERT_EQ(profiler.spans().size(), 1u);
  EXPECT_EQ(profiler.spans()[0].part, "backward");
}

TEST(Profiler, IsAskedForNothingWhileItIsStopped) {
  Runtime runtime(kCpu, {});
  Context ctx(runtime, runtime.compute_stream());
  const auto run = [&] { const ProfiledPart part(ctx, "forward", "ReLU", "relu1"); };
  {
    Profiler profiler(runtime);
    run();
    profiler.start();
    run();
    profiler.stop();
    run();
    EXPECT_EQ(profiler.spans().size(), 1u);
    profiler.start();
    EXPECT_EQ(runtime.profiler(), &profiler);
  }
  EXPECT_EQ(runtime.profiler(), nullptr) << "a Profiler that is gone";
  run();
}

TEST(Profiler, NamesAPartInsideOfAnother) {
  Runtime runtime(kCpu, {});
  Context ctx(runtime, runtime.compute_stream());
  Profiler profiler(runtime);
  profiler.start();
  const ProfiledPart outer(ctx, "forward", "ReLU", "relu1");
  EXPECT_NE(message_of(Kind::bug, [&] { const ProfiledPart inner(ctx, "update", "weights", "all"); })
                .find("part 'update' of 'all' begins inside of 'forward' of 'relu1'"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
