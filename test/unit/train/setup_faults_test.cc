// Faults of the set-up: which are found, what is said of them, and whom they stop.
#include "train/setup_faults.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/host_comm.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

using Weight = SetupFault::Weight;

/// A sound set-up: two ranks on each of `hosts` hosts.
std::vector<RankSetup> sound(int hosts = 1) {
  std::vector<RankSetup> ranks;
  for (int h = 0; h < hosts; ++h)
    for (int gpu = 0; gpu < 2; ++gpu)
      ranks.push_back({.host = cat("node", h),
                       .gpu = "NVIDIA A",
                       .gpu_id = cat("id", gpu),
                       .unreachable = {},
                       .shared_memory = int64_t{1} << 30,
                       .interfaces = {"lo", "eth0"},
                       .wanted = "eth"});
  return ranks;
}

/// The only fault there is.
SetupFault only(const std::vector<RankSetup>& ranks) {
  const auto faults = setup_faults(ranks);
  EXPECT_EQ(faults.size(), 1u);
  return faults.empty() ? SetupFault{} : faults[0];
}

void expect_fault(const std::vector<RankSetup>& ranks, Weight weight, const std::vector<std::string>& words) {
  const SetupFault fault = only(ranks);
  EXPECT_EQ(fault.weight, weight) << fault.text;
  for (const std::string& word : words)
    EXPECT_NE(fault.text.find(word), std::string::npos) << "no \"" << word << "\" in " << fault.text;
}

TEST(SetupFaults, ASoundSetUpHasNone) {
  EXPECT_TRUE(setup_faults(sound()).empty());
  EXPECT_TRUE(setup_faults(sound(2)).empty()) << "GPUs of two hosts may have equal names";
  EXPECT_TRUE(setup_faults({sound()[0]}).empty());
}

TEST(SetupFaults, MixedGpusAreListed) {
  auto ranks = sound(2);
  ranks[3].gpu = "NVIDIA B";
  expect_fault(ranks, Weight::warns, {"NVIDIA A (ranks 0, 1 and 2)", "NVIDIA B (rank 3)", "CUDA_VISIBLE_DEVICES"});
}

TEST(SetupFaults, OneGpuForTwoRanksStops) {
  auto ranks = sound(2);
  ranks[3].gpu_id = ranks[2].gpu_id;
  expect_fault(ranks, Weight::stops, {"ranks 2 and 3 share one GPU of host node1", "\"gpu\""});
}

TEST(SetupFaults, GpusThatCannotReadEachOtherAreNamed) {
  auto ranks = sound(2);
  ranks[2].unreachable = {"id1", "of nobody"};
  expect_fault(ranks, Weight::warns, {"GPUs of ranks 2 and 3 on host node1 cannot", "nvidia-smi topo -m"});
  ranks[2].unreachable = {"of nobody"};
  EXPECT_TRUE(setup_faults(ranks).empty()) << "GPUs that no rank uses";
}

TEST(SetupFaults, LittleSharedMemoryIsMeasuredByRanks) {
  auto ranks = sound();
  for (RankSetup& rank : ranks) rank.shared_memory = 60 << 20;
  expect_fault(ranks, Weight::warns, {"host node0 has 62.9 M bytes", "for 2 ranks", "--shm-size=1g"});
  EXPECT_TRUE(setup_faults({ranks[0]}).empty()) << "a rank that is alone on its host needs none";
}

TEST(SetupFaults, AnInterfaceThatIsNotThereStops) {
  auto ranks = sound(2);
  ranks[2].wanted = ranks[3].wanted = "ib0";
  expect_fault(ranks, Weight::stops, {"NCCL_SOCKET_IFNAME=ib0", "host node1, where rank 2 runs (lo, eth0)"});
}

TEST(SetupFaults, AnInterfaceThatIsLeftToChanceIsSaidWhenConnectingFails) {
  auto ranks = sound(2);
  for (RankSetup& rank : ranks) rank.wanted = "";
  expect_fault(ranks, Weight::explains, {"lo, eth0", "NCCL_SOCKET_IFNAME"});
}

TEST(SetupFaults, InterfacesAreAskedForAsNcclReadsThem) {
  const auto allowed = [](const std::string& wanted) {
    std::string names;
    for (const char* each : {"lo", "eth0", "eth1", "ib0"})
      if (allows_interface(wanted, each)) names += cat(names.empty() ? "" : " ", each);
    return names;
  };
  EXPECT_EQ(allowed("eth"), "eth0 eth1");
  EXPECT_EQ(allowed("eth1,ib"), "eth1 ib0");
  EXPECT_EQ(allowed("=eth"), "");
  EXPECT_EQ(allowed("=eth0,ib0"), "eth0 ib0");
  EXPECT_EQ(allowed("^eth"), "lo ib0");
  EXPECT_EQ(allowed("^=eth0,lo"), "eth1 ib0");
}

TEST(SetupFaults, RanksTellEachOtherWhereTheyAre) {
  const RankSetup here = setup_of(Device{});
  EXPECT_FALSE(here.host.empty());
  EXPECT_FALSE(here.interfaces.empty());
  std::vector<std::string> warnings;
  const Log log([&](Level, std::string_view line) { warnings.emplace_back(line); });
  RankGroup group(2, nullptr, std::chrono::seconds(30));
  run_ranks(2, [&](int rank) {
    HostComm comm(group, rank);
    // On the CPU neither has a GPU of its own.
    EXPECT_NE(
        message_of(Kind::comm, [&] { look_for_setup_faults(comm, Device{}, log); }).find("ranks 0 and 1 share one GPU"),
        std::string::npos);
  });
}

}  // namespace
}  // namespace hctr::test
