#include "core/comm/rank_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace hctr::test {
namespace {

using std::chrono::seconds;

Transfer equal_pieces(std::vector<std::byte>& send, std::vector<std::byte>& receive, size_t ranks) {
  Transfer transfer;
  const size_t bytes = send.size() / ranks;
  for (size_t r = 0; r < ranks; ++r) {
    transfer.send.push_back({send.data() + r * bytes, bytes});
    transfer.receive.push_back({receive.data() + r * bytes, bytes});
  }
  return transfer;
}

/// Simulates processes whose exchange fails with an out-of-memory error.
class RefusingProcesses : public Processes {
 public:
  int process() const override { return 0; }
  int count() const override { return 2; }
  std::optional<OnHost> on_host() const override { return std::nullopt; }
  LocalRanks join(int ranks) override { return {0, ranks, ranks}; }
  void exchange(const std::vector<const Transfer*>&, Wait) override {
    if (++calls_ > 1) throw std::bad_alloc();
  }
  void abort(int) noexcept override { std::terminate(); }

 private:
  int calls_ = 0;  // calls so far; the first call, by the constructor of RankGroup, succeeds
};

TEST(RankGroup, MemoryRefusedInAnExchangeEndsEveryRankWithThatReason) {
  RefusingProcesses others;
  RankGroup group(3, &others, seconds(0));
  std::vector<std::thread> ranks;
  std::atomic<int> failed = 0;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      std::vector<std::byte> send(3), receive(3);
      try {
        group.exchange(rank, equal_pieces(send, receive, 3), Wait::limited, "all_to_all");
      } catch (const Error&) {
        ++failed;
      }
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(failed, 3);
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->error.kind(), Kind::device);
  EXPECT_NE(std::string(group.failure()->error.what()).find("out of memory"), std::string::npos);
}

/// A rank fails repeatedly while other ranks are in an exchange. They must not read memory of the failed rank. The
/// buffers are freed together with the exchange, so AddressSanitizer would detect a read.
TEST(RankGroup, ARankThatFailsTakesNoMemoryAwayThatOthersRead) {
  constexpr int kRanks = 4, kFailing = 2;
  for (int round = 0; round < 50; ++round) {
    RankGroup group(kRanks, nullptr, seconds(0));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        try {
          for (int step = 0;; ++step) {
            std::vector<std::byte> send(size_t{kRanks} << 12), receive(send.size());
            std::memset(send.data(), rank + 1, send.size());
            if (rank == kFailing && step == round % 7) {
              group.fail(rank, Error(Kind::device, "no memory"));
              return;
            }
            group.exchange(rank, equal_pieces(send, receive, kRanks), Wait::unlimited, "all_to_all");
            for (int r = 0; r < kRanks; ++r)
              ASSERT_EQ(receive[static_cast<size_t>(r) << 12], static_cast<std::byte>(r + 1));
          }
        } catch (const Error& error) {
          EXPECT_NE(rank, kFailing);
          EXPECT_STREQ(error.what(), "rank 2 failed: no memory");
        }
      });
    for (std::thread& rank : ranks) rank.join();
  }
}

TEST(RankGroup, ARankThatLeavesWakesTheOthersAndSaysWhyLater) {
  RankGroup group(2, nullptr, seconds(0));
  std::thread waiting([&] {
    std::vector<std::byte> send(2), receive(2);
    EXPECT_THROW(group.exchange(0, equal_pieces(send, receive, 2), Wait::unlimited, "barrier"), Error);
  });
  group.leave(1);
  waiting.join();
  group.fail(0, Error(Kind::comm, "rank 1 failed: it has ended"));
  group.fail(1, Error(Kind::device, "no memory"));
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->rank, 1);
  EXPECT_STREQ(group.failure()->error.what(), "no memory");
}

TEST(RankGroup, PiecesOfDifferentSizesFailEveryRank) {
  RankGroup group(2, nullptr, seconds(0));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      std::vector<std::byte> send(rank == 0 ? 2 : 4), receive(2);
      EXPECT_THROW(
          for (;;) group.exchange(rank, {equal_pieces(send, send, 2).send, equal_pieces(receive, receive, 2).receive},
                                  Wait::unlimited, "broadcast"),
          Error);
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(group.failure()->error.kind(), Kind::bug);
}

}  // namespace
}  // namespace hctr::test
