// Streams, events and programs: they order work on a GPU, and do nothing on the CPU.
#include "device/stream.h"

#include <gtest/gtest.h>

#include "device/buffer.h"
#include "device/copy.h"
#include "device/device.h"
#include "device/program.h"
#include "ops/add.h"
#include "ops/fill.h"
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
    stream.synchronize();  // the stream is still usable
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
