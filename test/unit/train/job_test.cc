// The end of a job when a rank throws or hangs.
#include "train/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

TEST(JobTest, ARankThatThrowsWakesTheOthersAndIsNamed) {
  for (const int failing : {0, 1, 3}) {
    Job job(std::vector<Device>(4), nullptr, seconds(30));
    std::atomic<int> woken = 0;
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = message_of(Kind::data, [&] {
      job.run([&](Communicator& comm, Device) {
        for (int step = 0;; ++step) {
          if (comm.rank() == failing && step == 20) throw Error(Kind::data, "record 7 is torn");
          try {
            comm.any(false);
          } catch (const Error&) {
            ++woken;
            throw;
          }
        }
      });
    });
    EXPECT_EQ(message, cat("record 7 is torn\n  while training on rank ", failing, " of 4"));
    EXPECT_EQ(woken, 3);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  }
}

TEST(JobTest, WhatIsNoErrorOfOursIsABugOfTheRank) {
  Job job(std::vector<Device>(2), nullptr, seconds(30));
  const std::string message = message_of(Kind::bug, [&] {
    job.run([](Communicator& comm, Device) {
      if (comm.rank() == 1) throw std::runtime_error("vector::_M_range_check");
      comm.barrier();
    });
  });
  EXPECT_EQ(message, "vector::_M_range_check\n  while training on rank 1 of 2");
}

TEST(JobTest, ARankThatDoesNotComeIsNamedByThoseThatWait) {
  Job job(std::vector<Device>(3), nullptr, seconds(1));
  const std::string message = message_of(Kind::comm, [&] {
    job.run([](Communicator& comm, Device) {
      if (comm.rank() == 2) std::this_thread::sleep_for(seconds(3));
      comm.any(false);
    });
  });
  EXPECT_NE(message.find("rank 2 has not reached the next step within 1 s"), std::string::npos) << message;
}

TEST(JobDeathTest, ARankThatCannotBeWokenDoesNotKeepTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Job job(std::vector<Device>(2), nullptr, seconds(30));
    job.run([](Communicator& comm, Device) {
      if (comm.rank() == 0) throw Error(Kind::io, "the disk is gone");
      std::this_thread::sleep_for(std::chrono::hours(1));  // such as waiting for a disk
    });
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(exit_code(Kind::io)),
              "error \\(io\\): the disk is gone\n  while training on rank 0 of 2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

}  // namespace
}  // namespace hctr::test
