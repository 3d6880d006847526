// The end of a job after a rank throws or hangs.
#include "launch/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "program/program_surroundings.h"
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

TEST(JobTest, SeveralGpusOfAProcessShareBuffersOfNcclWithoutFurtherMappings) {
  constexpr Device kSecond{DeviceKind::cuda, 1};
  const auto set_by = [](std::vector<Device> devices, std::optional<std::string> before) {
    std::optional<std::string> value = before;
    const Surroundings around{
        .environment =
            [&](const char* name) { return std::string(name) == "NCCL_CUMEM_ENABLE" ? value : std::nullopt; },
        .set_environment =
            [&](const char* name, const char* to) {
              EXPECT_STREQ(name, "NCCL_CUMEM_ENABLE");
              value = to;
            }};
    const Job job(std::move(devices), nullptr, seconds(30), Log::silent(), "training", around);
    return value;
  };
  EXPECT_EQ(set_by({kGpu, kSecond}, std::nullopt), "0");
  EXPECT_EQ(set_by({kGpu, kSecond}, "1"), "1") << "the user's value is kept";
  if (why_no_gpu().empty()) {  // the end of a job on one GPU makes this GPU current
    EXPECT_EQ(set_by({kGpu}, std::nullopt), std::nullopt) << "a process with one GPU";
  }
  EXPECT_EQ(set_by({kCpu, kCpu}, std::nullopt), std::nullopt) << "NCCL is not used";
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

TEST(JobTest, RanksKeepThreadAndCommunicatorUntilOneFails) {
  for (const size_t ranks : {1, 3}) {
    Job job(std::vector<Device>(ranks), nullptr, seconds(30));
    std::vector<std::pair<std::thread::id, Communicator*>> first(ranks);
    int for_caller = 0;
    const auto caller = std::this_thread::get_id();
    for (int call = 0; call < 3; ++call)
      job.run([&](Communicator& comm, Device) {
        const std::pair<std::thread::id, Communicator*> own(std::this_thread::get_id(), &comm);
        auto& known = first[static_cast<size_t>(comm.rank())];
        if (call == 0) known = own;
        EXPECT_EQ(own, known);
        comm.barrier();
        if (comm.rank() == 0)
          job.in_callers_thread([&] {
            EXPECT_EQ(std::this_thread::get_id(), caller);
            ++for_caller;
          });
      });
    EXPECT_EQ(for_caller, 3);
    const auto fail = [&] {
      job.run([](Communicator& comm, Device) {
        if (comm.rank() == 0) throw Error(Kind::data, "torn");
        comm.barrier();
      });
    };
    const std::string message = message_of(Kind::data, fail);
    std::atomic<int> called = 0, cleaned = 0;
    EXPECT_EQ(message_of(Kind::data, [&] { job.run([&](Communicator&, Device) { ++called; }); }), message);
    EXPECT_EQ(called, 0);
    job.clean_up([&](Communicator& comm, Device) {
      ++cleaned;
      EXPECT_EQ(std::this_thread::get_id(), first[static_cast<size_t>(comm.rank())].first);
    });
    EXPECT_EQ(cleaned, static_cast<int>(ranks));
  }
}

TEST(JobDeathTest, ARankThatCannotBeWokenDoesNotKeepTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Job job(std::vector<Device>(2), nullptr, seconds(30), Log::silent(), "training", program_surroundings());
    job.run([](Communicator& comm, Device) {
      if (comm.rank() == 0) throw Error(Kind::io, "the disk is gone");
      std::this_thread::sleep_for(std::chrono::hours(1));  // simulates a blocked disk access
    });
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(exit_code(Kind::io)),
              "error \\(io\\): the disk is gone\n  while training on rank 0 of 2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

/// A process in a job of two, which records the received messages.
class NotingProcesses : public Processes {
 public:
  int process() const override { return 1; }
  int count() const override { return 2; }
  std::optional<OnHost> on_host() const override { return std::nullopt; }
  LocalRanks join(int ranks) override { return {0, ranks, ranks}; }
  void exchange(const std::vector<const Transfer*>&, Wait) override {}
  void abort(int exit_code) noexcept override { told = exit_code; }

  int told = 0;
};

TEST(JobTest, WithoutAProgramARankThatHangsIsWaitedForAndTheProcessLives) {
  std::string said;
  Surroundings around;
  around.on_lost_peer = [&](const Error& error) { said = error.what(); };
  NotingProcesses others;
  Job job(std::vector<Device>(2), &others, seconds(30), Log::silent(), "training", around);
  const std::string message = message_of(Kind::io, [&] {
    job.run([](Communicator& comm, Device) {
      if (comm.rank() == 0) throw Error(Kind::io, "the disk is gone");
      std::this_thread::sleep_for(seconds(6));
    });
  });
  EXPECT_EQ(message, "the disk is gone\n  while training on rank 0 of 2");
  EXPECT_EQ(said, message);
  EXPECT_EQ(others.told, exit_code(Kind::io));
}

TEST(JobTest, AnErrorTellsTheOtherProcessesAndComesBackWhereNobodyEndsThisOne) {
  NotingProcesses others;
  end_job(others, Error(Kind::data, "torn"), {});
  EXPECT_EQ(others.told, exit_code(Kind::data));
  std::string order;
  Surroundings around;
  around.on_lost_peer = [&](const Error& error) { order += error.what(); };
  around.end_process = [&](int code) { order += cat(" ", code); };
  end_job(others, Error(Kind::io, "gone"), around);
  EXPECT_EQ(order, cat("gone ", exit_code(Kind::io)));
}

TEST(JobTest, TwoJobsOfAProcessFailEachForItself) {
  std::string messages[2];
  std::thread threads[2];
  for (int j : {0, 1})
    threads[j] = std::thread([&, j] {
      Job job(std::vector<Device>(2), nullptr, seconds(30));
      const auto body = [&](Communicator& comm, Device) {
        for (int step = 0; step < 200; ++step) {
          if (j == 0 && comm.rank() == 1 && step == 50) throw Error(Kind::data, "torn");
          comm.any(false);
        }
      };
      try {
        job.run(body);
      } catch (const Error& error) {
        messages[j] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(messages[0], "torn\n  while training on rank 1 of 2");
  EXPECT_EQ(messages[1], "");
}

}  // namespace
}  // namespace hctr::test
