// Training inside another program's process.
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "hctr/solver.h"
#include "hctr/use_model.h"
#include "ranks_fixture.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

class LibraryTest : public RanksTestInItsFolder {
 protected:
  TrainOptions options_for(const std::string& config, const std::string& name) const {
    write_file(name + ".json", with_change(config, "\"out/\"", "\"" + name + "/\""));
    TrainOptions options;
    options.config = name + ".json";
    options.run_dir = name + "-run";
    options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
    return options;
  }
};

TEST_F(LibraryTest, TwoRunsOfAProcessTrainAsEachDoesAloneAndPrintNothing) {
  const std::array configs = {config_, with_change(config_, "\"seed\": 7", "\"seed\": 8")};
  const std::array alone = {train(configs[0], {"[0]"}, "one"), train(configs[1], {"[0]"}, "two")};
  const std::array<std::string, 2> names = {"first", "second"};
  std::array<std::atomic<int>, 2> lines{}, events{}, refused{};
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  std::array<std::thread, 2> threads;
  for (size_t i : {0, 1})
    threads[i] = std::thread([&, i] {
      TrainOptions options = options_for(configs[i], names[i]);
      options.surroundings.log = [&, i](Level level, std::string_view) {
        ++(level == Level::info ? events : refused)[i];
      };
      options.lines = [&, i](std::string_view line) { lines[i] += line.starts_with("{\"kind\":\"train\""); };
      hctr::train(options);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  for (size_t i : {0, 1}) {
    EXPECT_EQ(lines[i], 20);
    EXPECT_GT(events[i], 0);
    const Result beside = result(names[i]);
    EXPECT_EQ(beside.losses, alone[i].losses);
    EXPECT_EQ(beside.metrics, alone[i].metrics);
    EXPECT_EQ(beside.dense, alone[i].dense);
    EXPECT_EQ(beside.rows, alone[i].rows);
  }
}

TEST_F(LibraryTest, ErrorsAreThrownAndTheEnvironmentIsWhatTheCallerGives) {
  TrainOptions options = options_for(with_change(config_, "\"gpu\": [0]", "\"gpu\": [0, 1]"), "${NAME}");
  ::testing::internal::CaptureStderr();
  EXPECT_NE(message_of(Kind::config, [&] { hctr::train(options); }).find("the environment has no variable \"NAME\""),
            std::string::npos);
  // The environment of one of two torchrun processes. The other process never joins.
  options.surroundings.environment = [](const char* name) -> std::optional<std::string> {
    const std::map<std::string, std::string> variables = {
        {"NAME", "out"}, {"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}};
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  options.join_timeout = 1;
  EXPECT_THROW(hctr::train(options), Error);
  PredictOptions predicting;
  predicting.out = "-";
  EXPECT_THROW(predict(predicting), Error);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hctr::test
