// Streams, events and programs order work on a GPU, and have no effect on a CPU.
#include "core/device/stream.h"

#include <gtest/gtest.h>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/device.h"
#include "core/device/program.h"
#include "core/device/recording.h"
#include "ops/common/add.h"
#include "ops/common/fill.h"
#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

TEST(Event, DoesNotBlockOnTheCpu) {
  Event event(kCpu);
  const Stream stream(kCpu);
  event.make_wait(stream);
  event.synchronize();
  event.record(stream);
  event.make_wait(stream);
  event.synchronize();
  Event moved = std::move(event);
  moved.synchronize();
}

TEST(Event, OrdersTwoStreams) {
  for (const Device device : devices()) {
    constexpr size_t kBytes = size_t{16} << 20;
    const Stream first(device), second(device);
    Buffer a(device, kBytes), b(device, kBytes);
    Event done(device);
    std::vector<unsigned char> ones(kBytes, 1), out(kBytes);
    copy_bytes(first, a.data(), ones.data(), kBytes);
    done.record(first);
    done.make_wait(second);
    copy_bytes(second, b.data(), a.data(), kBytes);
    copy_bytes(second, out.data(), b.data(), kBytes);
    second.ref().synchronize();
    EXPECT_EQ(out, ones);
  }
}

TEST(Program, RunsItsWorkAgainWhetherRecordedOrNot) {
  for (const Device device : devices())
    for (const bool record : {false, true}) {
      Runtime& runtime = runtime_of(device);
      Context ctx(runtime, runtime.compute_stream());
      Buffer memory(device, 2 * 256);
      const Tensor one(memory.data(), TensorSpec(DType::f32, {4}), device),
          sum(memory.data() + 256, TensorSpec(DType::f32, {4}), device);
      ops::fill(ctx, 1, one);
      int calls = 0;
      Program program(runtime.compute_stream(), record, [&] {
        ++calls;
        ops::add_scaled(ctx, one, 2, sum);
      });
      for (int i = 0; i < 3; ++i) program.run();
      EXPECT_EQ(to_host<float>(runtime.compute_stream(), sum), std::vector<float>(4, 6.0f));
      EXPECT_EQ(calls, record && device.is_cuda() ? 1 : 3);
      Program moved = std::move(program);
      moved.run();
      EXPECT_EQ(to_host<float>(runtime.compute_stream(), sum), std::vector<float>(4, 8.0f));
    }
}

TEST(Program, ABodyThatFailsWhileRecordingThrowsItsOwnError) {
  for (const Device device : devices()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    const auto run = [&] {
      Program program(stream, true, [] { throw Error(Kind::config, "mine"); });
      program.run();
    };
    EXPECT_EQ(message_of(Kind::config, run), "mine");
    stream.synchronize();  // must not throw, because the stream is still usable
  }
}

/// Runs a body of two pieces: the first makes two calls, the second one. `log` gets the order of the calls.
struct OfPieces {
  explicit OfPieces(Device device)
      : ctx(runtime_of(device), runtime_of(device).compute_stream()), memory(device, 4 * 256) {
    for (int i = 0; i < 4; ++i) {
      numbers.emplace_back(memory.data() + 256 * i, TensorSpec(DType::f32, {4}), device);
      ops::fill(ctx, i == 0 ? 1 : 0, numbers.back());
    }
  }
  void body(Recording& recording) {
    outside(&recording, ctx, [this](Context& now) { add("before", now, 0, known, 1); });
    recording.cut();
    add("first", ctx, 1, 1, 2);
    outside(&recording, ctx, [this](Context& now) { add("outside", now, 2, known, 3); });
    add("second", ctx, 0, 10, 2);
    recording.cut();
    add("third", ctx, 3, 1, 2);
  }
  /// numbers[to] += by * numbers[from]
  void add(const char* name, Context& now, size_t from, float by, size_t to) {
    log += std::string(name) + " ";
    ops::add_scaled(now, numbers[from], by, numbers[to]);
  }
  float read(size_t i) { return to_host<float>(ctx.stream(), numbers[i])[3]; }

  Context ctx;
  Buffer memory;
  std::vector<Tensor> numbers;
  float known = 2;  // may differ in each batch, so a recording must not contain its value
  std::string log;
};

TEST(Program, CallsWorkOutsideAnewBehindItsPiece) {
  for (const Device device : devices())
    for (const bool record : {false, true}) {
      OfPieces of(device);
      Program program(of.ctx.stream(), record, [&](Recording& recording) { of.body(recording); });
      const bool in_graphs = record && device.is_cuda();
      EXPECT_EQ(of.log, in_graphs ? "first second third " : "");
      EXPECT_EQ(program.pieces(), in_graphs ? 2 : 0);  // pieces without work are dropped
      of.log.clear();
      program.run();
      EXPECT_EQ(of.log, in_graphs ? "before outside "
                        : record  ? "before first second outside third "
                                  : "before first outside second third ");
      // "before" and "first" give numbers[1] = 2 and numbers[2] = 2. "second" adds 10 * numbers[0] to numbers[2].
      // "outside" adds 2 * numbers[2] to numbers[3]. "second" runs before "outside" in a recorded program, and after
      // "outside" in an unrecorded program.
      EXPECT_EQ(of.read(1), 2);
      EXPECT_EQ(of.read(3), record ? 24 : 4);
      EXPECT_EQ(of.read(2), record ? 36 : 16);
      of.known = 0;
      program.run();
      EXPECT_EQ(of.read(1), 2);
      EXPECT_EQ(of.read(3), record ? 24 : 4);
      of.log.clear();
      program.run(false);
      EXPECT_EQ(of.log, "before first outside second third ");
    }
}

TEST(Program, PiecesAndWorkOutsideWaitForEachOthersEvents) {
  for (const Device device : devices()) {
    constexpr int64_t kMany = int64_t{1} << 20;
    Runtime& runtime = runtime_of(device);
    const StreamRef main = runtime.compute_stream(), other = runtime.exchange_stream();
    Buffer memory(device, 4 * kMany * sizeof(float));
    const auto part = [&](int i) {
      return Tensor(memory.data() + i * kMany * static_cast<int64_t>(sizeof(float)), TensorSpec(DType::f32, {kMany}),
                    device);
    };
    CrossingEvent sent(device), reached(device), answered(device);
    float known = 0;
    Program program(main, true, [&](Recording& recording) {
      Context ctx(runtime, main);
      const auto elsewhere = [&recording, &runtime, other](auto body) {
        recording.outside([&runtime, other, body] {
          Context side(runtime, other);
          body(side);
        });
      };
      elsewhere([&](Context& side) {
        ops::fill(side, known, part(0));
        sent.record(other);
      });
      recording.cut();
      ops::fill(ctx, 0, part(1));
      sent.make_wait(main);
      ops::add_scaled(ctx, part(0), 1, part(1));
      reached.record(main);
      elsewhere([&](Context& side) {
        reached.make_wait(other);
        ops::fill(side, 0, part(2));
        ops::add_scaled(side, part(1), 2, part(2));
        answered.record(other);
      });
      ops::fill(ctx, 1, part(3));
      recording.cut();
      answered.make_wait(main);
      ops::add_scaled(ctx, part(2), 1, part(3));
    });
    for (const float value : {3.0f, 5.0f, 7.0f}) {
      known = value;
      program.run();
      other.synchronize();  // the next run overwrites the data that `other` reads
      EXPECT_EQ(to_host<float>(main, part(3)), std::vector<float>(kMany, 1 + 2 * value));
    }
  }
}

TEST(Program, AnErrorBehindACutLeavesTheStreamUsable) {
  for (const Device device : devices()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    const auto run = [&] {
      Program program(stream, true, [](Recording& recording) {
        recording.cut();
        throw Error(Kind::config, "mine");
      });
      program.run();
    };
    EXPECT_EQ(message_of(Kind::config, run), "mine");
    stream.synchronize();
  }
}

TEST(Device, DescribesItself) {
  EXPECT_EQ(to_string(kCpu), "cpu");
  EXPECT_EQ(to_string(Device{DeviceKind::cuda, 3}), "cuda:3");
  EXPECT_NE(describe(kCpu).find(" core"), std::string::npos) << describe(kCpu);
  EXPECT_GT(free_memory(kCpu), 1 << 20);
  const GpuSearch found = find_gpus();
  EXPECT_EQ(found.count == 0, !found.why_none.empty());
  if (!kCudaBuild) {
    EXPECT_EQ(message_of(Kind::device, [] { describe(kGpu); }), "cuda:0: this build contains no CUDA code");
  }
}

}  // namespace
}  // namespace hctr::test
