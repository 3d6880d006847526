#include "launch/start.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(ThreadsOfRank, ShareTheCoresOfTheProcess) {
  EXPECT_EQ(threads_of_rank(8, 8, 1, 1), 8);
  EXPECT_EQ(threads_of_rank(8, 8, 1, 3), 2);
  EXPECT_EQ(threads_of_rank(2, 2, 1, 4), 1);
}

TEST(ThreadsOfRank, ShareTheCoresOfTheHostWithOtherProcesses) {
  EXPECT_EQ(threads_of_rank(8, 8, 2, 1), 4);
  EXPECT_EQ(threads_of_rank(8, 8, 2, 2), 2);
  EXPECT_EQ(threads_of_rank(2, 2, 4, 1), 1);
}

TEST(ThreadsOfRank, AreAllThatTheLauncherHasGivenToTheProcess) {
  EXPECT_EQ(threads_of_rank(4, 8, 2, 1), 4);    // the process is bound to half of the host's cores
  EXPECT_EQ(threads_of_rank(8, 64, 2, 1), 8);   // a container with 8 of the host's 64 cores
  EXPECT_EQ(threads_of_rank(8, 64, 16, 1), 4);  // 16 processes that may use the same cores
}

}  // namespace
}  // namespace hctr::test
