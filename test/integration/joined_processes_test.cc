// Several processes without MPI train the same model as threads and as MPI processes, and detect lost processes.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <thread>

#include "core/base/build_info.h"
#include "core/base/host_name.h"
#include "core/comm/host_comm.h"
#include "program/program_surroundings.h"
#include "ranks_fixture.h"
#include "support/communicator_suite.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// Runs the test suite of all communicators in processes of this test program.
TEST(AsJoinedProcess, TheCommunicatorSuite) {
  const auto others = started_processes({.step = seconds(60)}, program_surroundings());
  if (!others) GTEST_SKIP() << "runs as one of several processes, which JoinedProcesses does";
  Runtime runtime(Device{}, {.threads = 1});
  RankGroup group(1, others.get(), seconds(60));
  HostComm comm(group, group.local_ranks().first);
  EXPECT_EQ(comm.size(), others->count());
  EXPECT_EQ(others->on_host()->count, others->count());
  EXPECT_EQ(others->on_host()->process, others->process());
  check_communicator(comm, runtime, false);
}

TEST(JoinedProcessesSuite, TheCommunicatorSuiteHolds) {
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
    ::unsetenv(share);  // otherwise GoogleTest in the child processes would run only a shard of the tests
  const TemporaryFolder folder;
  for (const int processes : {2, 3}) {
    const auto outcomes =
        run_joined(processes, "integration_tests", {"--gtest_filter=AsJoinedProcess.*"}, folder.path());
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
      EXPECT_NE(outcome.out.find("1 passed, 0 failed"), std::string::npos) << outcome.out;
    }
  }
}

class JoinedProcesses : public RanksTest {
 protected:
  std::vector<std::string> arguments(const std::string& config, const std::string& gpu, const std::string& name,
                                     std::vector<std::string> more = {}) {
    write_file(folder_ / (name + ".json"),
               with_change(with_change(config, "\"gpu\": [0]", "\"gpu\": " + gpu), "\"out/\"", "\"" + name + "/\""));
    more.insert(more.begin(), {"--train", name + ".json", "--run-dir", name + "-run", "--device", "cpu"});
    return more;
  }
  /// Ends one of three processes during training. Returns the outcomes of the other two.
  std::vector<Outcome> end_of(int process, int signal) {
    const std::vector<std::string> words =
        arguments(endless(), "\"all\"", "endless", {"--peer-timeout", std::to_string(kPeerTimeout)});
    fs::remove_all(folder_ / "endless-run");
    const auto begin = std::chrono::steady_clock::now();
    auto outcomes =
        run_joined(std::vector<JoinedProcess>(3, {"huge_ctr", words}), folder_.path(), "Iter: 20 ", process, signal);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(kSanitized ? 60 : 30));
    outcomes.erase(outcomes.begin() + process);
    return outcomes;
  }
};

TEST_F(JoinedProcesses, TrainTheModelOfThreads) {
  for (const auto& [threads, gpu, processes] :
       {std::tuple{"[0, 1]", "[[0], [0]]", 2}, {"[0, 1, 2]", "\"all\"", 3}, {"[0, 1, 2, 3]", "[0, 1, 2, 3]", 2}}) {
    if (kSanitized && processes == 3) continue;  // sanitizers need one case per code path
    SCOPED_TRACE(gpu);
    const Result one = train(config_, {threads}, "threads");
    for (const char* folder : {"joined", "joined-run"}) fs::remove_all(folder_ / folder);
    for (const Outcome& outcome : run_joined(processes, "huge_ctr", arguments(config_, gpu, "joined"), folder_.path()))
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Result joined = result("joined");
    EXPECT_EQ(joined.losses, one.losses);
    EXPECT_EQ(joined.metrics, one.metrics);
    EXPECT_EQ(joined.dense, one.dense);
    for (size_t e = 0; e < 2; ++e) EXPECT_EQ(joined.rows[e], one.rows[e]);
  }
}

TEST_F(JoinedProcesses, OfSeveralHostsTrainTheModelOfThreadsAndSendLess) {
  struct Hosts {
    const char *threads, *gpu;
    std::vector<const char*> hosts;  // host name of each process
  };
  const Hosts all[] = {{"[0, 1, 2, 3]", "\"all\"", {"a", "a", "b", "b"}},
                       {"[0, 1, 2, 3, 4, 5]", "[[0, 1], [0, 1], [0, 1]]", {"a", "b", "c"}}};
  const std::string two_bytes = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"bf16\"");
  for (const std::string& config : {config_, with_policies(), two_bytes})
    for (const Hosts& of : all) {
      if (&config != &config_ && kSanitized) continue;
      SCOPED_TRACE(of.gpu);
      const Result one = train(config, {of.threads}, "threads");
      for (const char* folder : {"joined", "joined-run"}) fs::remove_all(folder_ / folder);
      std::vector<JoinedProcess> processes;
      for (const char* host : of.hosts)
        processes.push_back({"huge_ctr", arguments(config, of.gpu, "joined"), {{"NCCL_HOSTID", host}}});
      const auto outcomes = run_joined(processes, folder_.path());
      for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const Result joined = result("joined");
      EXPECT_EQ(joined.losses, one.losses);
      EXPECT_EQ(joined.metrics, one.metrics);
      EXPECT_EQ(joined.dense, one.dense);
      for (size_t e = 0; e < 2; ++e) EXPECT_EQ(joined.rows[e], one.rows[e]);
      EXPECT_EQ(joined.marks, one.marks);
      const Json summary = Json::read_file(folder_ / "joined-run" / "summary.json"),
                 &sent = *summary.find("sent_to_other_hosts");
      EXPECT_GT(*sent.find("bytes")->integer(), 0);
      EXPECT_LT(*sent.find("bytes")->integer(), *sent.find("of_full_size")->integer());
      EXPECT_NE(outcomes[0].out.find("embedding data sent to other hosts: "), std::string::npos) << outcomes[0].out;
      const std::string name = host_name();
      EXPECT_TRUE(std::regex_search(
          outcomes[0].err,
          std::regex(cat(" on ", of.hosts.size() == 4 ? 2 : 3, " hosts:\n.*sends to ", name, " \\(a\\)\n  0-1 +", name,
                         " \\(a\\) .*\n  2-3 +", name, " \\(b\\) .*[MG]B/s, .* ms\n"))))
          << outcomes[0].err;
    }
}

TEST_F(JoinedProcesses, NameOneThatWasKilled) {
  for (const int process : {0, 2})
    for (const Outcome& other : end_of(process, SIGKILL)) {
      EXPECT_EQ(other.exit_code, 7) << other.err;
      EXPECT_NE(other.err.find(cat("process ", process, " on ")), std::string::npos) << other.err;
      EXPECT_NE(other.err.find("ended before the other processes"), std::string::npos) << other.err;
    }
}

TEST_F(JoinedProcesses, NameOneThatIsSilentWhateverTheyAreDoing) {
  // With "--comm-timeout 0", waits within a step have no timeout of their own.
  const std::vector<JoinedProcess> three(
      3, {"huge_ctr", arguments(endless(), "\"all\"", "endless",
                                {"--comm-timeout", "0", "--peer-timeout", std::to_string(kPeerTimeout)})});
  const TemporaryFolder second;
  fs::copy(folder_.path(), second.path(), fs::copy_options::recursive);
  // Runs two jobs concurrently to save time. In the first job process 0 is silent, in the second job process 1.
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<Started>> jobs;
  for (const size_t silent : {0, 1}) {
    jobs.push_back(start_joined(three, silent == 0 ? folder_.path() : second.path()));
    wait_for_text(jobs[silent][0].err, "Iter: 20 ");
    ::kill(jobs[silent][silent].process, SIGSTOP);
  }
  for (const size_t silent : {0, 1}) {
    for (size_t p = 0; p < three.size(); ++p) {
      if (p == silent) continue;
      const Outcome other = finish_program(jobs[silent][p]);
      EXPECT_EQ(other.exit_code, 7) << other.err;
      EXPECT_NE(other.err.find(cat("process ", silent, " on ")), std::string::npos) << other.err;
      EXPECT_NE(other.err.find(cat("has sent no heartbeat for ", kPeerTimeout, " s")), std::string::npos) << other.err;
    }
    ::kill(jobs[silent][silent].process, SIGKILL);
    finish_program(jobs[silent][silent]);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(kSanitized ? 60 : 30));
}

/// If Slurm suspends and resumes the whole job, no process reports another as lost or late.
TEST_F(JoinedProcesses, GoOnAfterAllWereStoppedForLongerThanTheyWaitForEachOther) {
  const std::string limit = std::to_string(kPeerTimeout);
  const std::vector<JoinedProcess> two(2, {"huge_ctr", arguments(endless(), "[[0, 1], [0, 1]]", "endless",
                                                                 {"--peer-timeout", limit, "--comm-timeout", limit})});
  const std::vector<Started> started = start_joined(two, folder_.path());
  wait_for_text(started[0].err, "Iter: 20 ");
  for (const int signal : {SIGSTOP, SIGCONT, SIGTERM}) {
    for (const Started& each : started) ::kill(each.process, signal);
    std::this_thread::sleep_for(seconds(signal == SIGSTOP ? kPeerTimeout + 2 : signal == SIGCONT ? 2 : 0));
  }
  for (const Started& each : started) {
    const Outcome outcome = finish_program(each);
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  }
}

TEST_F(JoinedProcesses, StopTogetherOnASignalAndSaveTheModel) {
  const auto outcomes =
      run_joined(std::vector<JoinedProcess>(2, {"huge_ctr", arguments(endless(), "\"all\"", "endless")}),
                 folder_.path(), "Iter: 20 ", 1, SIGTERM);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(Json::read_file(folder_ / "endless-run" / "summary.json").find("model_files")->array()->size(), 5u);
}

TEST_F(JoinedProcesses, MustReadOneConfigButMayReadTheirOwnFiles) {
  const auto words = arguments(config_, "\"all\"", "each");
  const auto run = [&](const std::string& change) {
    std::vector<JoinedProcess> processes(2, {"huge_ctr", words});
    processes[1].arguments.insert(processes[1].arguments.end(), {"--set", change});
    return run_joined(processes, folder_.path());
  };
  const auto refused = run("optimizer.adam_hparam.beta1=0.8");
  for (const Outcome& outcome : refused) EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  const std::string said = refused[0].err;
  EXPECT_NE(said.find("/optimizer/adam_hparam/beta1 is 0.9 for rank 0 and 0.8 for rank 1 on "), std::string::npos)
      << said;
  fs::copy(folder_ / "train.txt", folder_ / "here.txt");
  for (const Outcome& outcome : run("layers.Data.source=here.txt")) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Lists each file twice, which doubles the number of samples.
  std::istringstream names(read_file(folder_ / "train.txt"));
  std::string list, name;
  std::getline(names, name);
  const int count = std::stoi(name);
  while (std::getline(names, name)) list += cat(name, "\n", name, "\n");
  write_file(folder_ / "here.txt", cat(2 * count, "\n", list));
  const auto larger = run("layers.Data.source=here.txt");
  for (const Outcome& outcome : larger) EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_TRUE(std::regex_search(larger[0].err,
                                std::regex(cat("samples for rank 1 on ", host_name(), " and [0-9]+ for rank 0"))))
      << larger[0].err;
}

TEST_F(JoinedProcesses, WarnOfAClockThatIsOff) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want to be loaded first";
  std::vector<JoinedProcess> processes(2, {"huge_ctr", arguments(config_, "\"all\"", "clock")});
  processes[1].environment = {{"LD_PRELOAD", (bin_dir() / "libclock_off.so").string()},
                              {"HCTR_TEST_CLOCK_OFF", "-100"}};
  const auto outcomes = run_joined(processes, folder_.path());
  EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].err;
  EXPECT_TRUE(std::regex_search(outcomes[0].err, std::regex("warning: the clock of .* is (99|100) s behind that of")))
      << outcomes[0].err;
}

TEST_F(JoinedProcesses, ReadTheFilesOfTheirHostAndRank) {
  const Result shared = train(config_, {"[0, 1, 2]"}, "shared");
  std::string own = config_;
  for (const char* set : {"train.txt", "eval.txt"}) {
    own = with_change(own, cat("\"", set, "\""), cat("\"of-{host}/{rank}-", set, "\""));
    for (int rank = 0; rank < 3; ++rank) {
      const fs::path copy = folder_ / ("of-" + host_name()) / cat(rank, "-", set);
      fs::create_directories(copy.parent_path());
      fs::copy(folder_ / set, copy);
    }
    fs::rename(folder_ / set, folder_ / cat("no-", set));
  }
  // One process with one rank, and one with two ranks.
  for (const Outcome& outcome : run_joined(2, "huge_ctr", arguments(own, "[[0], [1, 2]]", "joined"), folder_.path()))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(result("joined").dense, shared.dense);
  EXPECT_EQ(result("joined").metrics, shared.metrics);
}

TEST_F(JoinedProcesses, SayOfEachRankWhereItIs) {
  const auto outcomes = run_joined(3, "huge_ctr", arguments(config_, "\"all\"", "table"), folder_.path());
  EXPECT_NE(outcomes[0].err.find(cat("3 ranks of huge_ctr ", version(), " (")), std::string::npos) << outcomes[0].err;
  EXPECT_TRUE(std::regex_search(outcomes[0].err, std::regex("  0-2 +[^ ]+ +0-2 +.* -  +other process\n")))
      << outcomes[0].err;
  EXPECT_EQ(outcomes[1].err.find("ranks of"), std::string::npos) << outcomes[1].err;
}

TEST_F(JoinedProcesses, WarnOfAFolderOfCheckpointsThatIsNotShared) {
  const std::string saves = with_change(config_, "\"solver\": {", R"("solver": {"checkpoint": {"every": 1000}, )");
  const auto words = arguments(saves, "\"all\"", "each");
  const std::string text = "does not see 'ckpt/lock', which rank 0 created";
  const TemporaryFolder other;
  fs::copy(folder_.path(), other.path(), fs::copy_options::recursive);
  const auto shared = run_joined(2, "huge_ctr", words, folder_.path());
  EXPECT_EQ(shared[0].err.find(text), std::string::npos) << shared[0].err;
  std::string command = "exec " + (bin_dir() / "huge_ctr").string();
  for (const std::string& word : words) command += " " + word;
  const auto apart =
      run_joined({{"/bin/sh", {"-c", command}}, {"/bin/sh", {"-c", "cd " + other.path().string() + " && " + command}}},
                 folder_.path());
  EXPECT_NE(apart[0].err.find(cat("a process on ", host_name(), " ", text)), std::string::npos) << apart[0].err;
}

TEST_F(JoinedProcesses, EndTogetherAfterTheErrorOfOne) {
  // The second process reads data files that are truncated in the middle of a record.
  const TemporaryFolder other;
  fs::copy(folder_.path(), other.path(), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(other.path()))
    if (entry.path().extension() == ".data") fs::resize_file(entry.path(), entry.file_size() / 2);
  const std::string program = (bin_dir() / "huge_ctr").string();
  std::string command = "exec " + program;
  for (const std::string& word :
       arguments(with_change(config_, "\"max_iter\": 20", "\"max_iter\": 500"), "\"all\"", "each"))
    command += " " + word;
  fs::copy(folder_ / "each.json", other / "each.json");
  const auto outcomes =
      run_joined({{"/bin/sh", {"-c", command}}, {"/bin/sh", {"-c", "cd " + other.path().string() + " && " + command}}},
                 folder_.path());
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_NE(outcomes[0].err.find("on rank 1 of 2"), std::string::npos) << outcomes[0].err;
}

}  // namespace
}  // namespace hctr::test
