// Compares the losses of whole models with recordings of the same models in PyTorch (test/traces), step by step. The
// program reads generated files, so the test covers data and model files, and every layer, loss, penalty, optimizer and
// schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "infer/load_config.h"
#include "integration/trace_files.h"
#include "support/devices.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

const fs::path kTraces = hctr::test::source_dir() / "test" / "traces";

/// Relative tolerance of a loss. f32 losses on a CPU stay within 3e-7 in all fifty steps. A subtle error in a formula
/// (for example, the position of Adam's epsilon) causes a difference of 2e-5 in ten steps and 8e-4 in fifty.
constexpr double kTolerance = 1e-5;
constexpr size_t kSteps = 50;

std::vector<std::string> trace_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kTraces))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Traces : public testing::TestWithParam<std::tuple<std::string, Device>> {
 protected:
  /// Returns the loss of every step, after these changes to the config.
  std::vector<double> losses(const Json& trace, const std::string& device,
                             const std::vector<std::string>& changes = {}) const {
    const TemporaryFolder folder;
    write_file(folder / "config.json", trace.find("config")->text(2));
    const Config config = load_config(folder / "config.json", true, Log::silent());
    TraceFiles(*trace.find("derived"), config).write(folder.path(), *trace.find("dense_parameters")->integer());
    std::vector<std::string> arguments = {"--train", "config.json", "--device", device, "--run-dir", "run"};
    for (const std::string& change : changes) arguments.insert(arguments.end(), {"--set", change});
    const Outcome done = run_program("huge_ctr", arguments, folder.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    std::vector<double> all;
    std::istringstream lines(read_file(folder / "run/metrics.jsonl"));
    for (std::string text; std::getline(lines, text);)
      if (const Json line = Json::parse(text, "metrics.jsonl"); *line.find("kind")->string() == "train")
        all.push_back(line.find("loss")->number());
    return all;
  }
};

TEST_P(Traces, EveryLossIsThatOfTheSameModelInPyTorch) {
  const auto& [name, device] = GetParam();
  if (device.is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  const Json trace = Json::read_file(kTraces / (name + ".json"));
  const Json::Array& recorded = *trace.find("losses")->array();
  const std::vector<double> got = losses(trace, device.is_cuda() ? "cuda" : "cpu");
  ASSERT_EQ(recorded.size(), kSteps);
  ASSERT_EQ(got.size(), kSteps);
  double most = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const double expected = recorded[i].number();
    ASSERT_NEAR(got[i], expected, kTolerance * expected) << "step " << i + 1 << "; later ones were not looked at";
    most = std::max(most, std::abs(got[i] / expected - 1));
  }
  RecordProperty("largest_relative_difference", cat(most));
}

INSTANTIATE_TEST_SUITE_P(Models, Traces,
                         testing::Combine(testing::ValuesIn(trace_names()), testing::Values(kCpu, kGpu)),
                         [](const auto& row) {
                           return std::get<0>(row.param) + (std::get<1>(row.param).is_cuda() ? "_cuda" : "_cpu");
                         });

/// FP8 rounds each GEMM input by up to 2^-4 of its value. In sums, rounding errors partly cancel.
constexpr double kFp8Tolerance = 0.02;

class Fp8Traces : public Traces {};

TEST_P(Fp8Traces, EveryLossIsNearThatOfFp32) {
  const auto& [name, device] = GetParam();
  if (device.is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  const Json trace = Json::read_file(kTraces / (name + ".json"));
  const Json::Array& recorded = *trace.find("losses")->array();
  const std::string on = device.is_cuda() ? "cuda" : "cpu", least = "solver.fp8_least_width=16";
  const std::vector<double> fp8 = losses(trace, on, {"solver.mixed_precision=fp8", least});
  ASSERT_EQ(fp8.size(), kSteps);
  double most = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    ASSERT_NEAR(fp8[i], recorded[i].number(), kFp8Tolerance * recorded[i].number()) << "step " << i + 1;
    most = std::max(most, std::abs(fp8[i] / recorded[i].number() - 1));
  }
  RecordProperty("largest_relative_difference", cat(most));
  EXPECT_NE(fp8, losses(trace, on, {"solver.mixed_precision=bf16"})) << "nothing was FP8";
}

INSTANTIATE_TEST_SUITE_P(Models, Fp8Traces, testing::Combine(testing::Values("dlrm"), testing::Values(kCpu, kGpu)),
                         [](const auto& row) {
                           return std::get<0>(row.param) + (std::get<1>(row.param).is_cuda() ? "_cuda" : "_cpu");
                         });

}  // namespace
}  // namespace hctr::test
