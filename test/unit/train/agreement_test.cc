// An error of one rank that all throw together.
#include "train/agreement.h"

#include <gtest/gtest.h>

#include "comm/host_comm.h"
#include "comm/self_comm.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

/// What each of three ranks throws; nothing where it goes on.
std::vector<std::string> thrown(const std::vector<std::string>& mine) {
  std::vector<std::string> messages(mine.size());
  RankGroup group(static_cast<int>(mine.size()), nullptr, std::chrono::seconds(30));
  run_ranks(static_cast<int>(mine.size()), [&](int rank) {
    HostComm comm(group, rank);
    const std::string& message = mine[static_cast<size_t>(rank)];
    try {
      throw_together(comm, message.empty() ? std::nullopt : std::optional(Error(Kind::data, message)));
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.kind(), Kind::data);
      messages[static_cast<size_t>(rank)] = error.what();
    }
    EXPECT_FALSE(comm.any(false)) << "ranks can still speak";
  });
  return messages;
}

TEST(Agreement, AllRanksThrowTheErrorOfTheFirstThatHasOne) {
  EXPECT_EQ(thrown({"", "", ""}), std::vector<std::string>(3));
  EXPECT_EQ(thrown({"", "table 'a' is full", ""}),
            std::vector<std::string>(3, "table 'a' is full\n  while training on rank 1 of 3"));
  EXPECT_EQ(thrown({"", "table 'a' is full", "table 'b' is full"}),
            std::vector<std::string>(3, "table 'a' is full\n  while training on rank 1 of 3"));
}

TEST(Agreement, ARankThatIsAloneThrowsItsOwn) {
  SelfComm comm;
  EXPECT_NO_THROW(throw_together(comm, std::nullopt));
  EXPECT_EQ(message_of(Kind::data, [&] { throw_together(comm, Error(Kind::data, "full")); }), "full");
}

}  // namespace
}  // namespace hctr::test
