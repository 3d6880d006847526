// Log lines about the ranks of a job, at the start of the job.
#include "train/rank_table.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

RankAbout gpu_of(const std::string& host, int process, const std::string& id, std::vector<std::string> nvlink,
                 std::vector<std::string> unreachable = {}) {
  return {.host = host,
          .process = process,
          .device = "H100",
          .driver = "570.1",
          .version = "0.1.0",
          .gpu_id = id,
          .nvlink = std::move(nvlink),
          .unreachable = std::move(unreachable)};
}

TEST(RankTable, HasALineForEachHostAndKindOfDevice) {
  std::vector<RankAbout> ranks = {gpu_of("a", 0, "g0", {"g1"}), gpu_of("a", 0, "g1", {"g0"}),
                                  gpu_of("long-name", 1, "g2", {}), gpu_of("long-name", 1, "g3", {}, {"g4"}),
                                  gpu_of("long-name", 2, "g4", {})};
  ranks[4].device = "A100";
  EXPECT_EQ(rank_table(ranks, {std::nullopt, HostLink{1.25e9, 0.0001}}),
            "5 ranks of huge_ctr 0.1.0 on 2 hosts:\n"
            "  ranks  host       processes  device  driver  links on the host  sends to a\n"
            "  0-1    a          0          H100    570.1   NVLink\n"
            "  4      long-name  2          A100    570.1   PCIe, host memory  1.25 GB/s, 0.10 ms\n"
            "  2-3    long-name  1          H100    570.1");
}

TEST(RankTable, HostsAreThoseOfTheExchange) {
  std::vector<RankAbout> ranks(6, {.host = "a", .device = "CPU", .version = "1"});
  for (size_t r = 0; r < 6; ++r) ranks[r].process = static_cast<int>(r);
  ranks[2].host_id = ranks[3].host_id = "rack 2";
  ranks[3].host = "b";  // NCCL_HOSTID assigns ranks 2 and 3 to the same host
  ranks[4].host = ranks[5].host = "c";
  ranks[5].host_id = "a";
  EXPECT_EQ(rank_table(ranks, {}),
            "6 ranks of huge_ctr 1 on 3 hosts:\n"
            "  ranks   host        processes  device  driver  links on the host  sends to a\n"
            "  0-1, 5  a           0-1, 5     CPU     -       other process\n"
            "  2-3     a (rack 2)  2-3        CPU     -       other process      not measured\n"
            "  4       c           4          CPU     -       -                  not measured");
}

TEST(RankTable, IsAsShortAsThereAreHosts) {
  std::vector<RankAbout> ranks;
  for (int r = 0; r < 512; ++r)
    ranks.push_back({.host = "h" + std::to_string(r / 8), .process = r, .device = "CPU", .version = "1"});
  const std::string table = rank_table(ranks, std::vector<std::optional<HostLink>>(64));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 65);
  EXPECT_NE(table.find("  504-511  h63   504-511 "), std::string::npos) << table;
  EXPECT_NE(table.find("other process      not measured"), std::string::npos) << table;
}

TEST(RankTable, AnotherProgramIsNamedWithItsHost) {
  std::vector<RankAbout> ranks(3, {.host = "a", .version = "0.1.0 (x)"});
  expect_one_program(ranks);
  ranks[2].host = "b";
  ranks[2].version = "0.1.0 (y)";
  EXPECT_EQ(message_of(Kind::comm, [&] { expect_one_program(ranks); }),
            "rank 2 on b runs 0.1.0 (y) and rank 0 on a runs 0.1.0 (x): all ranks must run the same program");
  ranks[2] = about_from_text(R"({"host": "c", "version": "0.0.9", "nvlink": 3})");
  EXPECT_EQ(message_of(Kind::comm, [&] { expect_one_program(ranks); }),
            "rank 2 on c runs 0.0.9 and rank 0 on a runs 0.1.0 (x): all ranks must run the same program")
      << "though it says less of itself";
}

TEST(RankTable, WhatARankSaysArrivesWhole) {
  const RankAbout about{.host = "a",
                        .process = 3,
                        .device = "H100",
                        .driver = "570.1",
                        .version = "1",
                        .gpu_id = "g0",
                        .nvlink = {"g1", "g2"},
                        .unreachable = {"g3"},
                        .clock_ms = 1'700'000'000'000,
                        .host_id = "rack 2"};
  const RankAbout arrived = about_from_text(about_to_text(about));
  EXPECT_EQ(about_to_text(arrived), about_to_text(about));
  EXPECT_EQ(arrived.host_label(), "a (rack 2)");
  EXPECT_EQ(arrived.nvlink, about.nvlink);
  EXPECT_EQ(arrived.unreachable, about.unreachable);
  EXPECT_EQ(arrived.clock_ms, about.clock_ms);
  EXPECT_EQ(arrived.process, 3);
}

TEST(RankTable, ClocksThatAreOffAreNamedOnceForEachHost) {
  std::vector<RankAbout> ranks(5, {.host = "a", .clock_ms = 1'000'000});
  for (size_t r = 1; r < 5; ++r) ranks[r].host = r < 3 ? "b" : r == 3 ? "c" : "d";
  ranks[1].clock_ms = ranks[2].clock_ms = 1'090'400;
  ranks[3].clock_ms = 1'004'000;
  ranks[4].clock_ms = 993'000;
  const auto sentences = wrong_clocks(ranks);
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_TRUE(sentences[0].starts_with("the clock of b is 90 s ahead of that of a: ")) << sentences[0];
  EXPECT_TRUE(sentences[1].starts_with("the clock of d is 7 s behind that of a: ")) << sentences[1];
}

}  // namespace
}  // namespace hctr::test
