// Runs that restart automatically after one of their processes died.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/platform.h"
#include "core/comm/tcp_join.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "support/joined.h"
#include "support/message_of.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

constexpr int kSteps = 600;

/// Kills the worker process of `keeper`, a process started with --restarts.
void kill_worker(int keeper) {
  std::ifstream children(cat("/proc/", keeper, "/task/", keeper, "/children"));
  int worker = 0;
  children >> worker;
  ASSERT_GT(worker, 0) << "it has ended too soon";
  ::kill(worker, SIGKILL);
}

class Restarts : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "30"});
  }
  /// Writes a config with a checkpoint every 20 steps. Returns the arguments for training.
  std::vector<std::string> arguments(const std::string& name, const std::string& gpu,
                                     const std::vector<std::string>& more) {
    std::string text = with_change(small_config(), "\"seed\": 7",
                                   cat(R"("seed": 7, "checkpoint": {"every": 20, "folder": ")", name, R"(-ckpt"})"));
    text = with_change(text, "\"max_iter\": 60", cat("\"max_iter\": ", kSteps));
    text = with_change(text, "\"eval_interval\": 30", "\"eval_interval\": 0");
    text = with_change(text, "\"gpu\": [0]", "\"gpu\": " + gpu);
    write_file(folder_ / (name + ".json"), with_change(text, "\"out/\"", "\"" + name + "/\""));
    std::vector<std::string> words = {"--train", name + ".json", "--run-dir", name + "-run", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::map<std::string, std::string> model(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const char* file : {"_dense_", "0_sparse_", "1_sparse_", "_opt_dense_"})
      if (const auto path = folder_ / name / cat(file, kSteps, ".model"); fs::exists(path))
        files[file] = read_file(path);
    EXPECT_GE(files.size(), 3u) << name;
    return files;
  }
  double loss(const std::string& name) const {
    const Json* loss = Json::read_file(folder_ / (name + "-run") / "summary.json").find("loss");
    return loss ? loss->number() : -1;
  }
  /// Trains with `processes` processes, and calls `strike` when process 0 has reached iteration 60. Unless `secret` is
  /// empty, all processes get it in their environment.
  std::vector<Outcome> train(int processes, const std::vector<std::string>& words,
                             const std::function<void(const std::vector<Started>&)>& strike,
                             const std::string& secret = "of all these processes") {
    port_ = free_port();
    const std::string port = std::to_string(port_);
    std::vector<Started> started;
    for (int p = 0; p < processes; ++p) {
      std::map<std::string, std::string> environment = {{"RANK", std::to_string(p)},
                                                        {"WORLD_SIZE", std::to_string(processes)},
                                                        {"MASTER_ADDR", "127.0.0.1"},
                                                        {"MASTER_PORT", port}};
      if (!secret.empty()) environment["HCTR_JOB_SECRET"] = secret;
      started.push_back(start_program("huge_ctr", words, folder_.path(), environment, cat("restarts-", p)));
    }
    wait_for_text(started[0].err, "Iter: 60 ");
    strike(started);
    std::vector<Outcome> outcomes;
    for (const Started& process : started) outcomes.push_back(finish_program(process));
    return outcomes;
  }
  static void expect_says(const Outcome& outcome, int exit_code, const std::string& text) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << "no \"" << text << "\" in:\n" << outcome.err;
  }

  TemporaryFolder folder_;
  int port_ = 0;  // port of the last call of train()
};

TEST_F(Restarts, OfOneProcessEndAsIfItHadNotBeenKilled) {
  ASSERT_EQ(run_program("huge_ctr", arguments("whole", "[0, 1]", {}), folder_.path()).exit_code, 0);
  const auto words = arguments("killed", "[0, 1]", {"--restarts", "2"});
  const auto outcomes = train(1, words, [](const std::vector<Started>& all) { kill_worker(all[0].process); });
  expect_says(outcomes[0], 0,
              "training was ended by signal 9 (Killed): resuming from the last checkpoint, restart 1 of 2");
  expect_says(outcomes[0], 0, "Resuming from 'killed-ckpt/iteration_");
  EXPECT_EQ(model("killed"), model("whole"));
}

TEST_F(Restarts, OfSeveralProcessesEndAsIfNoneHadBeenKilled) {
  for (const Outcome& outcome : train(3, arguments("whole", "\"all\"", {}), [](const auto&) {}))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto words = arguments("killed", "\"all\"", {"--restarts", "2", "--restart-wait", "30"});
  for (const size_t process : {1, 0}) {
    SCOPED_TRACE(process);
    for (const char* folder : {"killed", "killed-run", "killed-ckpt"}) fs::remove_all(folder_ / folder);
    const auto outcomes = train(3, words, [&](const std::vector<Started>& all) { kill_worker(all[process].process); });
    for (size_t p = 0; p < 3; ++p)
      expect_says(outcomes[p], 0,
                  p == process ? "training was ended by signal 9" : "training has ended with exit code 7");
    EXPECT_EQ(model("killed"), model("whole"));
  }
}

TEST_F(Restarts, GoOnWithoutAProcessThatIsLost) {
  for (const Outcome& outcome : train(3, arguments("whole", "[[0], [1], [2]]", {}), [](const auto&) {}))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // Killing the keeper also ends its worker, as if the host of process 1 were lost.
  const auto words = arguments("fewer", "[[0], [1], [2]]", {"--restarts", "2", "--restart-wait", "2"});
  const auto outcomes = train(3, words, [](const std::vector<Started>& all) { ::kill(all[1].process, SIGKILL); });
  expect_says(outcomes[0], 0, "process 1 has not returned in time after the restart");
  expect_says(outcomes[0], 0, "2 processes joined over TCP");
  expect_says(outcomes[0], 0, "which 3 ranks have saved: rows are redistributed");
  EXPECT_EQ(outcomes[2].exit_code, 0) << outcomes[2].err;
  EXPECT_NEAR(loss("fewer"), loss("whole"), 1e-4);
}

TEST_F(Restarts, KeepTheFreePlaceFromAStrangerThoughNoSecretWasSet) {
  for (const Outcome& outcome : train(2, arguments("whole", "\"all\"", {}), [](const auto&) {}, ""))
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto words = arguments("killed", "\"all\"", {"--restarts", "2", "--restart-wait", "30"});
  const auto strike = [&](const std::vector<Started>& all) {
    ::kill(all[1].process, SIGSTOP);  // the stopped keeper starts no worker, so the intruder tries to join first
    kill_worker(all[1].process);
    const Launch launch{.launcher = "a test", .process = 1, .processes = 2, .address = "127.0.0.1", .port = port_};
    const std::string why = message_of(
        Kind::comm, [&] { join_job(launch, build_name(), TcpClock::now() + std::chrono::seconds(20), Log::silent()); });
    EXPECT_NE(why.find("the other process expects a secret"), std::string::npos) << why;
    ::kill(all[1].process, SIGCONT);
  };
  for (const Outcome& outcome : train(2, words, strike, "")) expect_says(outcome, 0, "restart 1 of 2");
  EXPECT_EQ(model("killed"), model("whole"));
}

TEST_F(Restarts, StopWhereTheyDoNotHelp) {
  auto words = arguments("missing", "[0]", {"--restarts", "9"});
  fs::remove(folder_ / "train.txt");
  const Outcome outcome = run_program("huge_ctr", words, folder_.path());
  expect_says(outcome, 5, "restart 2 of 9");
  expect_says(outcome, 5, "three consecutive times before its first checkpoint: another restart would not help");
  EXPECT_EQ(outcome.err.find("restart 3 of 9"), std::string::npos) << outcome.err;
  words[words.size() - 1] = "1";
  expect_says(run_program("huge_ctr", words, folder_.path()), 5, "after the one restart that --restarts allows");
}

TEST_F(Restarts, AreNotForMistakesNorForStops) {
  const auto words = arguments("run", "[0, 1]", {"--restarts", "2"});
  write_file(folder_ / "none.json", small_config());
  const Outcome none = run_program("huge_ctr", {"--train", "none.json", "--restarts", "2"}, folder_.path());
  expect_says(none, 3, "has no \"checkpoint\" in the solver, which --restarts needs; add \"checkpoint\"");
  EXPECT_EQ(none.err.find("restart 1"), std::string::npos) << none.err;
  const auto stopped = train(1, words, [](const std::vector<Started>& all) { ::kill(all[0].process, SIGTERM); });
  expect_says(stopped[0], 75, "Stopped on request after iteration ");
  EXPECT_EQ(stopped[0].err.find("restart 1"), std::string::npos) << stopped[0].err;
}

}  // namespace
}  // namespace hctr::test
