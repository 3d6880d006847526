// GPU setup problems: detection, messages and severity.
#include "launch/gpu_setup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/comm/host_comm.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

using Severity = SetupProblem::Severity;

/// A correct setup with two ranks on each of `hosts` hosts.
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

/// Expects exactly one problem, and returns it.
SetupProblem only(const std::vector<RankSetup>& ranks) {
  const auto problems = find_setup_problems(ranks);
  EXPECT_EQ(problems.size(), 1u);
  return problems.empty() ? SetupProblem{} : problems[0];
}

void expect_problem(const std::vector<RankSetup>& ranks, Severity severity, const std::vector<std::string>& words) {
  const SetupProblem problem = only(ranks);
  EXPECT_EQ(problem.severity, severity) << problem.text;
  for (const std::string& word : words)
    EXPECT_NE(problem.text.find(word), std::string::npos) << "no \"" << word << "\" in " << problem.text;
}

TEST(GpuSetup, ASoundSetUpHasNone) {
  EXPECT_TRUE(find_setup_problems(sound()).empty());
  EXPECT_TRUE(find_setup_problems(sound(2)).empty()) << "GPUs of two hosts may have equal names";
  EXPECT_TRUE(find_setup_problems({sound()[0]}).empty());
}

TEST(GpuSetup, MixedGpusAreListed) {
  auto ranks = sound(2);
  ranks[3].gpu = "NVIDIA B";
  expect_problem(ranks, Severity::warning,
                 {"NVIDIA A (ranks 0, 1 and 2)", "NVIDIA B (rank 3)", "CUDA_VISIBLE_DEVICES"});
}

TEST(GpuSetup, OneGpuForTwoRanksStops) {
  auto ranks = sound(2);
  ranks[3].gpu_id = ranks[2].gpu_id;
  expect_problem(ranks, Severity::error, {"ranks 2 and 3 share one GPU of host node1", "\"gpu\""});
}

TEST(GpuSetup, GpusThatCannotReadEachOtherAreNamed) {
  auto ranks = sound(2);
  ranks[2].unreachable = {"id1", "of nobody"};
  expect_problem(ranks, Severity::warning, {"GPUs of ranks 2 and 3 on host node1 cannot", "nvidia-smi topo -m"});
  ranks[2].unreachable = {"of nobody"};
  EXPECT_TRUE(find_setup_problems(ranks).empty()) << "GPUs that no rank uses";
}

TEST(GpuSetup, LittleSharedMemoryIsMeasuredByRanks) {
  auto ranks = sound();
  for (RankSetup& rank : ranks) rank.shared_memory = 60 << 20;
  expect_problem(ranks, Severity::warning, {"host node0 has 62.9 M bytes", "for 2 ranks", "--shm-size=1g"});
  EXPECT_TRUE(find_setup_problems({ranks[0]}).empty()) << "a rank that is alone on its host needs none";
}

TEST(GpuSetup, AnInterfaceThatIsNotThereStops) {
  auto ranks = sound(2);
  ranks[2].wanted = ranks[3].wanted = "ib0";
  expect_problem(ranks, Severity::error, {"NCCL_SOCKET_IFNAME=ib0", "host node1, where rank 2 runs (lo, eth0)"});
}

TEST(GpuSetup, AnInterfaceThatIsLeftToChanceIsSaidWhenConnectingFails) {
  auto ranks = sound(2);
  for (RankSetup& rank : ranks) rank.wanted = "";
  expect_problem(ranks, Severity::hint, {"lo, eth0", "NCCL_SOCKET_IFNAME"});
}

TEST(GpuSetup, InterfacesAreAskedForAsNcclReadsThem) {
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

TEST(GpuSetup, RanksTellEachOtherWhereTheyAre) {
  const RankSetup here = setup_of(Device{}, {});
  EXPECT_FALSE(here.host.empty());
  EXPECT_FALSE(here.interfaces.empty());
  std::vector<std::string> warnings;
  const Log log([&](Level, std::string_view line) { warnings.emplace_back(line); });
  RankGroup group(2, nullptr, std::chrono::seconds(30));
  run_ranks(2, [&](int rank) {
    HostComm comm(group, rank);
    // Both ranks run on the CPU, so neither has its own GPU.
    EXPECT_NE(
        message_of(Kind::comm, [&] { check_gpu_setup(comm, Device{}, {}, log); }).find("ranks 0 and 1 share one GPU"),
        std::string::npos);
  });
}

}  // namespace
}  // namespace hctr::test
