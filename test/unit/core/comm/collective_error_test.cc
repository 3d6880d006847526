// If one rank has an error, all ranks throw this error.
#include "core/comm/collective_error.h"

#include <gtest/gtest.h>

#include "core/comm/host_comm.h"
#include "core/comm/self_comm.h"
#include "support/message_of.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

/// The message that each rank throws; empty if the rank throws nothing. `own`: the rank's own error.
std::vector<std::string> thrown(const std::vector<std::string>& own) {
  std::vector<std::string> messages(own.size());
  RankGroup group(static_cast<int>(own.size()), nullptr, std::chrono::seconds(30));
  run_ranks(static_cast<int>(own.size()), [&](int rank) {
    HostComm comm(group, rank);
    const std::string& message = own[static_cast<size_t>(rank)];
    try {
      throw_on_all_ranks(comm, message.empty() ? std::nullopt : std::optional(Error(Kind::data, message)));
    } catch (const CollectiveError& error) {
      EXPECT_EQ(error.kind(), Kind::data);
      messages[static_cast<size_t>(rank)] = error.what();
    }
    EXPECT_FALSE(comm.any(false)) << "ranks can still communicate";
  });
  return messages;
}

TEST(CollectiveError, AllRanksThrowTheErrorOfTheFirstThatHasOne) {
  EXPECT_EQ(thrown({"", "", ""}), std::vector<std::string>(3));
  EXPECT_EQ(thrown({"", "table 'a' is full", ""}),
            std::vector<std::string>(3, "table 'a' is full\n  while training on rank 1 of 3"));
  EXPECT_EQ(thrown({"", "table 'a' is full", "table 'b' is full"}),
            std::vector<std::string>(3, "table 'a' is full\n  while training on rank 1 of 3"));
}

TEST(CollectiveError, ASingleRankThrowsItsOwnError) {
  SelfComm comm;
  EXPECT_NO_THROW(throw_on_all_ranks(comm, std::nullopt));
  EXPECT_EQ(message_of(Kind::data, [&] { throw_on_all_ranks(comm, Error(Kind::data, "full")); }), "full");
}

}  // namespace
}  // namespace hctr::test
