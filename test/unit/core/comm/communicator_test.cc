// Runs the suite of all communicators on ranks that are threads, and tests failures of a rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "core/base/platform.h"
#include "core/comm/host_comm.h"
#include "core/comm/nccl_comm.h"
#include "core/comm/peer_exchange.h"
#include "core/comm/self_comm.h"
#include "core/device/buffer.h"
#include "core/device/gpu_links.h"
#include "program/program_surroundings.h"
#include "support/communicator_suite.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

TEST(CommunicatorTest, ASingleRank) {
  for (const Device device : devices()) {
    SelfComm comm;
    check_communicator(comm, runtime_of(device), false);
  }
}

TEST(CommunicatorTest, RanksAsThreads) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    RankGroup group(ranks, nullptr, seconds(30));
    run_ranks(ranks, [&](int rank) {
      Runtime runtime(kCpu, {.threads = 1});
      HostComm comm(group, rank);
      check_communicator(comm, runtime, true);
    });
  }
}

TEST(CommunicatorTest, RanksAsGpus) {
  HCTR_SKIP_WITHOUT_GPU();
  if constexpr (kNcclBuild) {
    const int gpus = find_gpus().count;
    bool reached = true;
    for (int g = 0; g < gpus; ++g) reached = reached && gpu_links({DeviceKind::cuda, g}).unreachable.empty();
    for (int ranks = 1; ranks <= std::min(4, gpus); ++ranks) {
      RankGroup group(ranks, nullptr, seconds(60), system_environment());
      run_ranks(ranks, [&](int rank) {
        const Device device{DeviceKind::cuda, rank};
        const auto comm = make_nccl_comm(group, rank, device);
        Runtime runtime(device, {});
        const char* off = std::getenv("NCCL_P2P_DISABLE");
        check_communicator(*comm, runtime, reached && (!off || std::string(off) == "0"));
      });
    }
  } else {
    GTEST_SKIP() << "this build contains no NCCL";
  }
}

TEST(CommunicatorTest, ReceiveBufferOfARankThatFailsWithinARoundOutlivesTheWritesOfOthers) {
  constexpr int64_t kEach = 1 << 16;
  RankGroup group(3, nullptr, seconds(30));
  std::atomic<bool> gone = false;
  std::atomic<int> wrote = 0;
  run_ranks(3, [&](int rank) {
    Runtime runtime(kCpu, {.threads = 1});
    Context ctx(runtime, runtime.compute_stream());
    HostComm comm(group, rank);
    try {
      const Buffer memory(kCpu, 3 * kEach * sizeof(float));
      const auto exchange = comm.make_peer_exchange(
          {Tensor(memory.data(), TensorSpec(DType::f32, {3 * kEach}), kCpu), RankRanges::equal(3, kEach)});
      for (int round = 0; round < 2; ++round) {
        exchange->begin_write(ctx);
        if (round == 1 && rank == 0) throw Error(Kind::data, "a rank that leaves");
        for (int peer = 0; peer < 3; ++peer) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough for rank 0 to throw first
          EXPECT_FALSE(gone) << "rank " << rank << " was still writing";
          std::memset(exchange->destination(peer), round, kEach * sizeof(float));
        }
        if (round == 1) ++wrote;
        exchange->end_write(ctx);
        exchange->wait(ctx);
      }
    } catch (const Error& error) {
      if (rank == 0) gone = true;
      comm.abort(error);
    }
  });
  EXPECT_EQ(wrote, 2);
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(std::string(group.failure()->error.what()), "a rank that leaves");
}

/// Runs `body` on every rank with a tensor of one float. Returns the error message of each rank, or "".
std::vector<std::string> messages_of_ranks(int ranks, seconds limit,
                                           const std::function<void(int rank, HostComm&, Context&, Tensor)>& body) {
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
  const float values[] = {1, 1e8f, -1e8f, 2};  // the sum is 2 in this order, and 0 or 1 in other orders
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
  for (const std::string& message : messages)
    EXPECT_NE(message.find("rank 2 has not reached all_reduce within 1 s"), std::string::npos) << message;
}

TEST(CommunicatorTest, BarriersBetweenStepsHaveNoLimit) {
  const auto messages = messages_of_ranks(2, seconds(1), [](int rank, HostComm& comm, Context&, Tensor) {
    if (rank == 1) std::this_thread::sleep_for(seconds(2));
    comm.barrier();
  });
  EXPECT_EQ(messages, std::vector<std::string>(2));
}

TEST(CommunicatorTest, RangesOutsideTheTensorAreABug) {
  SelfComm comm;
  Context ctx(runtime_of(kCpu), runtime_of(kCpu).compute_stream());
  const Buffer memory(kCpu, 64);
  const Tensor x(memory.data(), TensorSpec(DType::f32, {4}), kCpu),
      y(memory.data() + 32, TensorSpec(DType::f32, {4}), kCpu);
  EXPECT_NE(message_of(Kind::bug, [&] { comm.all_to_all(ctx, x, RankRanges::equal(1, 5), y, RankRanges::equal(1, 4)); })
                .find("range 0 begins at 0 and has 5 elements, but the tensor has 4"),
            std::string::npos);
  EXPECT_NE(message_of(Kind::bug, [&] { comm.all_to_all(ctx, x, RankRanges::equal(2, 1), y, RankRanges::equal(1, 4)); })
                .find("2 ranges on 1 ranks"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
