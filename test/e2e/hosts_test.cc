// Processes train across several hosts, joined by TCP or by MPI, and detect failures of a host. Network namespaces of
// this machine act as hosts.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <regex>
#include <thread>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/platform.h"
#include "support/host_network.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// Host n runs the ranks 2n and 2n + 1.
class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300"});
  }
  std::vector<std::string> arguments(const std::string& config, const std::string& step_limit = "0") {
    write_file(folder_ / "config.json", with_change(config, "\"gpu\": [0]", "\"gpu\": \"all\""));
    return {"--train",        "config.json",
            "--run-dir",      "run",
            "--device",       "cpu",
            "--comm-timeout", step_limit,
            "--peer-timeout", std::to_string(kPeerTimeout)};
  }
  /// Two processes on each host, joined over TCP.
  static std::vector<JoinedProcess> processes(const HostNetwork& hosts, const std::vector<std::string>& arguments) {
    std::vector<JoinedProcess> all;
    for (int p = 0; p < 2 * hosts.size(); ++p) {
      std::vector<std::string> words = {std::to_string(p / 2), (bin_dir() / "huge_ctr").string()};
      words.insert(words.end(), arguments.begin(), arguments.end());
      all.push_back(
          {hosts.on_host().string(), words, {{"MASTER_ADDR", HostNetwork::address(0)}, {"MASTER_PORT", "29500"}}});
    }
    return all;
  }
  /// Two processes on each host, joined by MPI: mpirun runs on host 0, and starts processes on the other hosts through
  /// a substitute for ssh.
  Started start_under_mpi(const HostNetwork& hosts, const std::vector<std::string>& arguments,
                          std::map<std::string, std::string> environment = {}) {
    std::string list;
    for (int h = 0; h < hosts.size(); ++h) list += cat(h == 0 ? "" : ",", HostNetwork::name(h), ":2");
    std::vector<std::string> words = {"0",
                                      "/usr/bin/mpirun",
                                      "--allow-run-as-root",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none",
                                      "--mca",
                                      "plm_rsh_agent",
                                      hosts.ssh().string(),
                                      "--mca",
                                      "btl",
                                      "tcp,self",
                                      "--tag-output",
                                      "--host",
                                      list,
                                      "--wdir",
                                      folder_.path().string(),
                                      (bin_dir() / "huge_ctr").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    environment.insert(kMpiEnvironment.begin(), kMpiEnvironment.end());
    return start_program(hosts.on_host().string(), words, folder_.path(), environment, "mpi");
  }
  /// A config whose tables are sharded by key, sharded by slot, and hybrid with replicated frequent keys.
  static std::string with_every_placement() {
    const std::string config =
        with_change(small_config(), R"({"name": "wide", "type": "Reshape")",
                    R"({"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "deep_data", "top": "frequent_emb",
     "placement": "hybrid", "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000,
     "num_iterations_statistics": 5, "embedding_vec_size": 4, "combiner": 0}},
    {"type": "Reshape", "bottom": "frequent_emb", "top": "frequent", "leading_dim": 12},
    {"name": "wide", "type": "Reshape")");
    return with_change(config, R"("bottom": ["deep", "dense"])", R"("bottom": ["deep", "frequent", "dense"])");
  }
  /// Returns `config` changed such that each rank reads its own copy of the data. Creates the copies.
  std::string with_own_files(std::string config, int hosts) {
    for (int host = 0; host < hosts; ++host)
      std::filesystem::create_directories(folder_ / cat("of-", HostNetwork::name(host)));
    for (const std::string set : {"train.txt", "eval.txt"}) {
      config = with_change(config, cat("\"", set, "\""), cat("\"of-{host}/{rank}-", set, "\""));
      for (int rank = 0; rank < 2 * hosts; ++rank)
        write_file(folder_ / cat("of-", HostNetwork::name(rank / 2)) / cat(rank, "-", set), read_file(folder_ / set));
    }
    return config;
  }
  static std::string endless() {
    return with_change(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100000000"),
                       "\"eval_interval\": 30", "\"eval_interval\": 0");
  }
  /// Trains endlessly on two hosts, and calls `strike` after training has started. Each process outside host 1 must
  /// report host 1 within half a minute of `strike`. Returns all outcomes.
  std::vector<Outcome> train_and_strike(const HostNetwork& hosts, const std::function<void()>& strike) {
    std::vector<Started> started;
    const std::vector<JoinedProcess> all = processes(hosts, arguments(endless()));
    for (size_t p = 0; p < all.size(); ++p) {
      std::map<std::string, std::string> environment = all[p].environment;
      environment.insert({{"RANK", std::to_string(p)}, {"WORLD_SIZE", std::to_string(all.size())}});
      started.push_back(start_program(all[p].program, all[p].arguments, folder_.path(), environment, cat("host-", p)));
    }
    wait_for_text(started[0].err, "Iter: 20 ");
    const auto begin = std::chrono::steady_clock::now();
    strike();
    std::vector<Outcome> outcomes;
    for (const Started& each : started) {
      // Host 1 may be stopped by SIGSTOP, so continue its processes to let them end.
      if (outcomes.size() == 2) {
        const auto took = std::chrono::steady_clock::now() - begin;
        EXPECT_LT(took, seconds(kSanitized ? 60 : 30));
        RecordProperty("seconds", static_cast<int>(std::chrono::duration_cast<seconds>(took).count()));
        hosts.signal(1, SIGCONT);
      }
      outcomes.push_back(finish_program(each));
    }
    for (size_t p = 0; p < 2; ++p) {
      EXPECT_EQ(outcomes[p].exit_code, 7) << outcomes[p].err;
      EXPECT_TRUE(std::regex_search(outcomes[p].err, std::regex("process [23] on host1"))) << outcomes[p].err;
    }
    return outcomes;
  }
  /// Does the same as train_and_strike() with processes joined by MPI. Processes on host 0 must report a process of
  /// host 1 with `why`, and end. mpirun itself is not checked, because it does not detect a silent host and blocks.
  void strike_under_mpi(const HostNetwork& hosts, const std::string& why, const std::function<void()>& strike) {
    const Started mpi = start_under_mpi(hosts, arguments(endless()));
    wait_for_text(mpi.err, "Iter: 20 ");
    const auto begin = std::chrono::steady_clock::now(), end = begin + seconds(kSanitized ? 60 : 30);
    strike();
    while (hosts.runs(0, "huge_ctr") && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(hosts.runs(0, "huge_ctr"));
    // mpirun forwards the output of its processes late, up to a second after ending them.
    const auto named_by = [&](int rank, const std::string& text) {
      return std::regex_search(text,
                               std::regex(cat("1,", rank, "]<stderr>:error \\(comm\\): process [23] on host1 ", why)));
    };
    const auto passed_on = [&] {
      const std::string text = read_file(mpi.err);
      return named_by(0, text) && named_by(1, text);
    };
    while (!passed_on() && hosts.runs(0, "mpirun") && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const int host : {0, 1}) hosts.signal(host, SIGKILL);
    const Outcome outcome = finish_program(mpi);
    for (const int rank : {0, 1}) EXPECT_TRUE(named_by(rank, outcome.err)) << outcome.err;
  }
  TemporaryFolder folder_;
};

TEST_F(Hosts, TrainTheModelOfOneProcess) {
  for (const int count : {2, 3}) {
    SCOPED_TRACE(count);
    const TemporaryFolder files;
    const HostNetwork hosts(count, files.path());
    HCTR_SKIP_WITHOUT_HOSTS(hosts);
    const std::string gpus = count == 2 ? "[0, 1, 2, 3]" : "[0, 1, 2, 3, 4, 5]";
    write_file(
        folder_ / "one.json",
        with_change(with_change(with_every_placement(), "\"gpu\": [0]", "\"gpu\": " + gpus), "\"out/\"", "\"one/\""));
    const Outcome one =
        run_program("huge_ctr", {"--train", "one.json", "--run-dir", "one-run", "--device", "cpu"}, folder_.path());
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const auto expect_equal_models = [&] {
      for (const char* file : {"_dense_60.model", "0_sparse_60.model", "1_sparse_60.model", "2_sparse_60.model"}) {
        EXPECT_EQ(read_file(folder_ / "out" / file), read_file(folder_ / "one" / file)) << file;
        std::filesystem::remove(folder_ / "out" / file);
      }
      const Json summary = Json::read_file(folder_ / "run" / "summary.json"),
                 &sent = *summary.find("sent_to_other_hosts");
      EXPECT_GT(*sent.find("bytes")->integer(), 0);
      EXPECT_LT(*sent.find("bytes")->integer(), *sent.find("of_full_size")->integer());
      std::filesystem::remove_all(folder_ / "run");
    };
    const std::string config = with_own_files(with_every_placement(), count);
    const auto outcomes = run_joined(processes(hosts, arguments(config)), folder_.path());
    for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcomes[0].err.find(cat(2 * count, " processes joined over TCP, on host0 (2), host1 (2)")),
              std::string::npos)
        << outcomes[0].err;
    // The log contains names of hosts and ranks, and the bandwidth of the link, which is well above one megabyte per
    // second.
    EXPECT_TRUE(std::regex_search(outcomes[0].err,
                                  std::regex(cat(2 * count, " ranks of huge_ctr .* on ", count,
                                                 " hosts:\n.*sends to host0\n  0-1 +host0 +0-1 .*other process\n"
                                                 "  2-3 +host1 +2-3 .*other process +[0-9.]+ [MG]B/s, [0-9.]+ ms\n"))))
        << outcomes[0].err;
    expect_equal_models();
    if (why_no_mpi().empty()) {
      const Outcome mpi = finish_program(start_under_mpi(hosts, arguments(config)));
      ASSERT_EQ(mpi.exit_code, 0) << mpi.err;
      EXPECT_NE(mpi.err.find(cat("on ", count, " hosts:")), std::string::npos) << mpi.err;
      EXPECT_EQ(mpi.err.find("over TCP"), std::string::npos) << mpi.err;
      expect_equal_models();
    }
  }
}

/// The kernel's interface counters give the sent bytes. They must be within 5 % of the program's own count plus the
/// all-reduce of dense gradients. Packet headers, key counts and agreement messages make the difference. The test
/// subtracts a short run from a long run, because this removes the bytes sent at startup.
TEST_F(Hosts, SendUniqueKeysAndVectorsByTheKernelsCountersToo) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  std::string config = with_change(small_config(), "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 64");
  config = with_change(config, "\"leading_dim\": 15", "\"leading_dim\": 192");
  config = with_change(config, "\"batchsize\": 128", "\"batchsize\": 2048");
  config = with_change(config, "\"eval_interval\": 30", "\"eval_interval\": 0");
  make_data(folder_.path(), "data.json", 30000, 500, {"--vocabulary", "300", "--force"});
  struct Sent {
    int64_t kernel, program, full;
  };
  const auto run = [&](int steps) {
    std::filesystem::remove_all(folder_ / "run");
    const std::string limited = with_change(config, "\"max_iter\": 60", cat("\"max_iter\": ", steps));
    const int64_t before = hosts.sent_bytes();
    for (const Outcome& outcome : run_joined(processes(hosts, arguments(limited)), folder_.path()))
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const int64_t after = hosts.sent_bytes();
    const Json summary = Json::read_file(folder_ / "run" / "summary.json"),
               &sent = *summary.find("sent_to_other_hosts");
    return Sent{after - before, *sent.find("bytes")->integer(), *sent.find("of_full_size")->integer()};
  };
  constexpr int kFew = 5, kMany = 55;
  const Sent few = run(kFew), many = run(kMany);
  const auto of_a_step = [&](int64_t Sent::*number) {
    return static_cast<double>(many.*number - few.*number) / (kMany - kFew);
  };
  // Each of four ranks sends the dense gradients to both ranks of the other host: 8 copies.
  constexpr double kDense = 8.0 * sizeof(float) * ((192 + 4) * 16 + 16 + 16 + 1);
  const double kernel = of_a_step(&Sent::kernel), program = of_a_step(&Sent::program), full = of_a_step(&Sent::full);
  RecordProperty("kernel", static_cast<int>(kernel));
  RecordProperty("program", static_cast<int>(program));
  EXPECT_GT(program, 4 * kDense);
  EXPECT_GT(kernel, program + kDense);
  EXPECT_LT(kernel, 1.05 * (program + kDense));
  EXPECT_LT(kernel, 0.9 * full);
}

TEST_F(Hosts, NameTheOneBehindACableThatIsCut) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  const auto outcomes = train_and_strike(hosts, [&] { hosts.cut(1); });
  for (size_t p = 0; p < outcomes.size(); ++p) {
    EXPECT_EQ(outcomes[p].exit_code, 7) << outcomes[p].err;
    const std::string silent = cat(" on host", p < 2 ? 1 : 0, " has sent no heartbeat for ", kPeerTimeout, " s");
    EXPECT_NE(outcomes[p].err.find(silent), std::string::npos) << p << ": " << outcomes[p].err;
  }
}

TEST_F(Hosts, NameTheOneThatWasKilled) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  const auto outcomes = train_and_strike(hosts, [&] { hosts.signal(1, SIGKILL); });
  for (size_t p = 0; p < 2; ++p)
    EXPECT_NE(outcomes[p].err.find("ended before the other processes"), std::string::npos) << outcomes[p].err;
}

TEST_F(Hosts, NameTheOneThatWasStopped) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  const auto outcomes = train_and_strike(hosts, [&] { hosts.signal(1, SIGSTOP); });
  for (size_t p = 0; p < 2; ++p)
    EXPECT_NE(outcomes[p].err.find(cat("has sent no heartbeat for ", kPeerTimeout, " s")), std::string::npos)
        << outcomes[p].err;
}

TEST_F(Hosts, JoinedByMpiNameTheOneThatIsSilent) {
  HCTR_SKIP_WITHOUT_MPI();
  const std::string silent = cat("has sent no heartbeat for ", kPeerTimeout, " s");
  for (const bool cut : {true, false}) {
    SCOPED_TRACE(cut ? "its cable is cut" : "it is stopped");
    const HostNetwork hosts(2, folder_.path());
    HCTR_SKIP_WITHOUT_HOSTS(hosts);
    strike_under_mpi(hosts, silent, [&] { cut ? hosts.cut(1) : hosts.signal(1, SIGSTOP); });
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(Hosts, JoinedByMpiNameTheOneThatWasKilled) {
  HCTR_SKIP_WITHOUT_MPI();
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  strike_under_mpi(hosts, "ended before the other processes", [&] { hosts.signal(1, SIGKILL); });
}

TEST_F(Hosts, JoinedByMpiGoOnAfterAllWereStoppedForLongerThanTheyWaitForEachOther) {
  HCTR_SKIP_WITHOUT_MPI();
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  const Started mpi = start_under_mpi(hosts, arguments(endless(), std::to_string(kPeerTimeout)));
  wait_for_text(mpi.err, "Iter: 20 ");
  for (const int signal : {SIGSTOP, SIGCONT, SIGTERM}) {
    for (const int host : {0, 1}) hosts.signal(host, signal, "huge_ctr");
    std::this_thread::sleep_for(seconds(signal == SIGSTOP ? kPeerTimeout + 2 : signal == SIGCONT ? 2 : 0));
  }
  const Outcome outcome = finish_program(mpi);
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
}

TEST_F(Hosts, JoinedByMpiTrainWithAWarningWhereSignsOfLifeDoNotArrive) {
  HCTR_SKIP_WITHOUT_MPI();
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  const std::string nobody = "10.9.8.77";
  const Outcome outcome = finish_program(start_under_mpi(hosts, arguments(small_config()), {{"MASTER_ADDR", nobody}}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(
      std::regex_search(outcome.err, std::regex("warning: no heartbeat from processes 1, 2, 3: host0 cannot connect to "
                                                "process 0 on host0, port [0-9]+ \\(10\\.9\\.8\\.77: ")))
      << outcome.err;
}

TEST_F(Hosts, SayFromWhereToWhereAFirewallStands) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  hosts.drop(1, 0);
  auto words = arguments(small_config());
  // long enough for process 1 to start in time on a busy machine
  words.insert(words.end(), {"--join-timeout", "8"});
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = run_joined(processes(hosts, words), folder_.path());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(kSanitized ? 60 : 30));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
  EXPECT_NE(outcomes[0].err.find("processes 2, 3 have not reported to process 0 on host0, port 29500, in time"),
            std::string::npos)
      << outcomes[0].err;
  for (const size_t p : {2, 3})
    EXPECT_TRUE(std::regex_search(outcomes[p].err,
                                  std::regex("host1 cannot connect to process 0 at 10\\.9\\.8\\.1, port 29500: "
                                             "Connection timed out \\(tried for [0-9]+ s\\)")))
        << outcomes[p].err;
}

TEST_F(Hosts, NameTheOneWithAnotherProgramOrClock) {
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  // Simulates a build of another commit by changing the commit in a copy of the program.
  const std::string commit = build_facts()[0].second, other(commit.size(), 'f');
  std::string program = read_file(bin_dir() / "huge_ctr");
  for (size_t at = 0; (at = program.find(commit, at)) != program.npos; at += commit.size())
    program.replace(at, commit.size(), other);
  write_file(folder_ / "huge_ctr", program);
  std::filesystem::permissions(folder_ / "huge_ctr", std::filesystem::perms::owner_all);
  auto versions = processes(hosts, arguments(small_config()));
  for (const size_t p : {2, 3}) versions[p].arguments[1] = (folder_ / "huge_ctr").string();
  // Processes without the job secret do not learn the version of process 0.
  for (JoinedProcess& process : versions) process.environment["HCTR_JOB_SECRET"] = "of all these processes";
  const auto begin = std::chrono::steady_clock::now();
  for (const Outcome& outcome : run_joined(versions, folder_.path())) {
    EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
    EXPECT_TRUE(std::regex_search(outcome.err, std::regex(cat("process [23] on host1 runs .*", other,
                                                              ".* and process 0 on host0 runs .*", commit))))
        << outcome.err;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(kSanitized ? 60 : 30));
  if (kSanitized) return;  // sanitizer libraries must load before the library that changes the clock
  auto clocks = processes(hosts, arguments(small_config()));
  for (const size_t p : {2, 3})
    clocks[p].environment.insert(
        {{"LD_PRELOAD", (bin_dir() / "libclock_off.so").string()}, {"HCTR_TEST_CLOCK_OFF", "-100"}});
  const auto outcomes = run_joined(clocks, folder_.path());
  EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].err;
  EXPECT_TRUE(
      std::regex_search(outcomes[0].err, std::regex("warning: the clock of host1 is (99|100) s behind that of host0")))
      << outcomes[0].err;
}

}  // namespace
}  // namespace hctr::test
