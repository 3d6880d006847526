// Hosts that are network namespaces of this machine, joined by a virtual cable: processes without MPI train across
// them, and find out that the cable is cut.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <regex>

#include "base/error.h"
#include "base/platform.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    const std::string id = std::to_string(::getpid());
    for (int h = 0; h < 2; ++h) names_[h] = cat("hctr", id, "x", h);
    std::string set_up = "set -e; export PATH=$PATH:/usr/sbin:/sbin; ";
    for (const std::string& name : names_) set_up += cat("ip netns add ", name, "; ");
    set_up += cat("ip link add a", id, " netns ", names_[0], " type veth peer name a", id, " netns ", names_[1], "; ");
    for (int h = 0; h < 2; ++h)
      set_up += cat("ip -n ", names_[h], " addr add 10.9.8.", h + 1, "/24 dev a", id, "; ip -n ", names_[h],
                    " link set a", id, " up; ip -n ", names_[h], " link set lo up; ");
    cable_ = "a" + id;
    const Outcome outcome = run_program("/bin/bash", {"-c", set_up + "unshare --uts true"}, folder_.path());
    if (outcome.exit_code != 0) GTEST_SKIP() << "this process may not make hosts: " << outcome.err;
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300"});
  }
  void TearDown() override {
    for (const std::string& name : names_) in_shell("ip netns del " + name + " 2>/dev/null || true");
  }
  Outcome in_shell(const std::string& script) {
    return run_program("/bin/bash", {"-c", "export PATH=$PATH:/usr/sbin:/sbin; " + script}, folder_.path());
  }
  /// Two processes on each host.
  std::vector<JoinedProcess> processes(const std::string& config) {
    write_file(folder_ / "config.json", with_change(config, "\"gpu\": [0]", "\"gpu\": \"all\""));
    std::vector<JoinedProcess> all;
    for (int p = 0; p < 4; ++p)
      all.push_back(
          {"/bin/bash",
           {"-c",
            cat("export PATH=$PATH:/usr/sbin:/sbin; exec ip netns exec ", names_[p / 2],
                " unshare --uts /bin/bash -c 'hostname host", p / 2, "; exec ", (bin_dir() / "huge_ctr").string(),
                " --train config.json --run-dir run --device cpu --comm-timeout 0 --peer-timeout ", kPeerTimeout, "'")},
           {{"MASTER_ADDR", "10.9.8.1"}, {"MASTER_PORT", "29500"}}});
    return all;
  }

  std::string names_[2], cable_;
  TemporaryFolder folder_;
};

TEST_F(Hosts, TrainTheModelOfOneProcess) {
  write_file(folder_ / "one.json",
             with_change(with_change(small_config(), "\"gpu\": [0]", "\"gpu\": [0, 1, 2, 3]"), "\"out/\"", "\"one/\""));
  ASSERT_EQ(run_program("huge_ctr", {"--train", "one.json", "--run-dir", "one-run", "--device", "cpu"}, folder_.path())
                .exit_code,
            0);
  const auto outcomes = run_joined(processes(small_config()), folder_.path());
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcomes[0].err.find("4 processes joined over TCP, on host0 (2), host1 (2)."), std::string::npos)
      << outcomes[0].err;
  // Names of hosts, ranks and the speed of the cable, which takes well over a megabyte a second.
  EXPECT_TRUE(std::regex_search(
      outcomes[0].err,
      std::regex("4 ranks of huge_ctr .* on 2 hosts:\n.*sends to host0\n  0-1 +host0 +0-1 .*other process\n"
                 "  2-3 +host1 +2-3 .*other process +[0-9.]+ [MG]B/s, [0-9.]+ ms\n")))
      << outcomes[0].err;
  for (const char* file : {"_dense_60.model", "0_sparse_60.model", "1_sparse_60.model"})
    EXPECT_EQ(read_file(folder_ / "out" / file), read_file(folder_ / "one" / file)) << file;
}

TEST_F(Hosts, NameTheHostBehindACableThatIsCut) {
  const std::string endless = with_change(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100000000"),
                                          "\"eval_interval\": 30", "\"eval_interval\": 0");
  auto with_cutter = processes(endless);
  const auto begin = std::chrono::steady_clock::now();
  // The first process of host 0 cuts the cable once it has trained for a while.
  std::string& first = with_cutter[0].arguments[1];
  first = cat("(until grep -q 'Iter: 20 ' .stderr-joined-0; do sleep 0.05; done; ip -n ", names_[0], " link set ",
              cable_, " down) & ", first);
  const auto outcomes = run_joined(with_cutter, folder_.path());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(kSanitized ? 60 : 30));
  for (size_t p = 0; p < outcomes.size(); ++p) {
    EXPECT_EQ(outcomes[p].exit_code, 7) << outcomes[p].err;
    const std::string silent = cat(" on host", p < 2 ? 1 : 0, " has not been heard of for ", kPeerTimeout, " s");
    EXPECT_NE(outcomes[p].err.find(silent), std::string::npos) << p << ": " << outcomes[p].err;
  }
}

}  // namespace
}  // namespace hctr::test
