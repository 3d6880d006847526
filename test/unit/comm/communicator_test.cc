// The suite of all communicators, on ranks that are threads; what happens when one of them fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/platform.h"
#include "comm/host_comm.h"
#include "comm/nccl_comm.h"
#include "comm/self_comm.h"
#include "device/buffer.h"
#include "support/communicator_suite.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

TEST(CommunicatorTest, ARankThatIsAlone) {
  for (const Device device : devices()) {
    SelfComm comm;
    check_communicator(comm, runtime_of(device));
  }
}

TEST(CommunicatorTest, RanksAsThreads) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    RankGroup group(ranks, nullptr, seconds(30));
    run_ranks(ranks, [&](int rank) {
      Runtime runtime(kCpu, {.threads = 1});
      HostComm comm(group, rank);
      check_communicator(comm, runtime);
    });
  }
}

TEST(CommunicatorTest, RanksAsGpus) {
  HCTR_SKIP_WITHOUT_GPU();
  if constexpr (kNcclBuild) {
    for (int ranks = 1; ranks <= std::min(4, find_gpus().count); ++ranks) {
      RankGroup group(ranks, nullptr, seconds(60));
      run_ranks(ranks, [&](int rank) {
        const Device device{DeviceKind::cuda, rank};
        const auto comm = make_nccl_comm(group, rank, device);
        Runtime runtime(device, {});
        check_communicator(*comm, runtime);
      });
    }
  } else {
    GTEST_SKIP() << "this build contains no NCCL";
  }
}

/// Each rank's call on one float; its message when it throws.
std::vector<std::string> messages_of_ranks(int ranks, seconds limit, const std::function<void(int rank, HostComm&, Context&, Tensor)>& body) {
  RankGroup group(ranks, nullptr, limit);
  std::vector<std::string> messages(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](int rank) {
    Runtime runtime(kCpu, {.threads = 1});
    Context ctx(runtime, runtime.compute_stream());
    HostComm comm(group, rank);
    const Buffer memory(kCpu, 4);
    try {
      body(rank, comm, ctx, Tensor(memory.data(), TensorSpec(DType::f32, {1}), kCpu));
    } catch (const Error& error) {
      messages[static_cast<size_t>(rank)] = error.what();
      comm.abort(error);
    }
  });
  return messages;
}

TEST(CommunicatorTest, SumsAreAddedInTheOrderOfRanks) {
  const float values[] = {1, 1e8f, -1e8f, 2};  // 2 in this order, 0 or 1 in others
  messages_of_ranks(4, seconds(30), [&](int rank, HostComm& comm, Context& ctx, Tensor x) {
    *x.data<float>() = values[rank];
    comm.all_reduce(ctx, x, Reduce::sum);
    EXPECT_EQ(*x.data<float>(), 2);
  });
}

TEST(CommunicatorTest, ARankThatFailsWakesTheOthersWithTheReason) {
  const auto messages = messages_of_ranks(3, seconds(30), [](int rank, HostComm& comm, Context& ctx, Tensor x) {
    if (rank == 1) throw Error(Kind::data, "record 7 is torn");
    comm.all_reduce(ctx, x, Reduce::sum);
  });
  EXPECT_EQ(messages[0], "rank 1 failed: record 7 is torn");
  EXPECT_EQ(messages[1], "record 7 is torn");
  EXPECT_EQ(messages[2], "rank 1 failed: record 7 is torn");
}

TEST(CommunicatorTest, ARankThatHangsIsNamed) {
  const auto messages = messages_of_ranks(3, seconds(1), [](int rank, HostComm& comm, Context& ctx, Tensor x) {
    if (rank == 2) std::this_thread::sleep_for(seconds(3));
    comm.all_reduce(ctx, x, Reduce::sum);
  });
  for (const std::string& message : messages) EXPECT_NE(message.find("rank 2 has not come to all_reduce for 1 s"), std::string::npos) << message;
}

TEST(CommunicatorTest, BetweenStepsARankMayTakeItsTime) {
  const auto messages = messages_of_ranks(2, seconds(1), [](int rank, HostComm& comm, Context&, Tensor) {
    if (rank == 1) std::this_thread::sleep_for(seconds(2));
    comm.barrier();
  });
  EXPECT_EQ(messages, std::vector<std::string>(2));
}

TEST(CommunicatorTest, PartsThatDoNotFitAreABug) {
  SelfComm comm;
  Context ctx(runtime_of(kCpu), runtime_of(kCpu).compute_stream());
  const Buffer memory(kCpu, 64);
  const Tensor x(memory.data(), TensorSpec(DType::f32, {4}), kCpu), y(memory.data() + 32, TensorSpec(DType::f32, {4}), kCpu);
  EXPECT_NE(message_of(Kind::bug, [&] { comm.all_to_all(ctx, x, Parts::equal(1, 5), y, Parts::equal(1, 4)); }).find("part 0 reaches from 0 over 5 of 4"),
            std::string::npos);
  EXPECT_NE(message_of(Kind::bug, [&] { comm.all_to_all(ctx, x, Parts::equal(2, 1), y, Parts::equal(1, 4)); }).find("2 parts on 1 ranks"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
