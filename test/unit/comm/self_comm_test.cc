// A rank that is alone: every collective is a move.
#include "comm/self_comm.h"

#include <gtest/gtest.h>

#include "device/buffer.h"
#include "device/copy.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

TEST(SelfCommTest, CollectivesOfOneRankMoveTheData) {
  for (const Device device : devices()) {
    Context ctx(runtime_of(device), runtime_of(device).compute_stream());
    const Buffer a(device, 16), b(device, 16);
    const Tensor in(a.data(), TensorSpec(DType::f32, {4}), device), out(b.data(), TensorSpec(DType::f32, {4}), device);
    const std::vector<float> values = {1, 2, 3, 4}, zeros(4, 0.0f);
    SelfComm comm;
    EXPECT_EQ(comm.rank(), 0);
    EXPECT_EQ(comm.size(), 1);
    const auto moved = [&](auto&& call) {
      from_host(in, values, ctx.stream());
      from_host(out, zeros, ctx.stream());
      call();
      return to_host<float>(out, ctx.stream()) == values && to_host<float>(in, ctx.stream()) == values;
    };
    EXPECT_TRUE(moved([&] { comm.reduce_scatter(ctx, in, out, Reduce::sum); }));
    EXPECT_TRUE(moved([&] { comm.all_gather(ctx, in, out); }));
    EXPECT_TRUE(moved([&] { comm.all_to_all(ctx, in, out); }));
    comm.all_reduce(ctx, in, Reduce::max);
    comm.broadcast(ctx, in, 0);
    comm.all_gather(ctx, in, in);
    EXPECT_EQ(to_host<float>(in, ctx.stream()), values);
    EXPECT_THROW(comm.broadcast(ctx, in, 1), Error);
  }
}

}  // namespace
}  // namespace hctr::test
