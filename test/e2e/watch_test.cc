// The output of a run during training: progress line, JSON lines, metrics files, run.json and event files.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line, "line"));
  return lines;
}

std::vector<Json> of_kind(const std::vector<Json>& lines, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& line : lines)
    if (*line.find("kind")->string() == kind) found.push_back(line);
  return found;
}

class Watch : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "config.json", small_config());
    // With 1000 samples and batches of 128, each epoch ends with a batch of 104.
    make_data(folder_->path(), "config.json", 1000, 300, {"--vocabulary", "30", "--interactions", "0"});
  }
  static void TearDownTestSuite() { delete folder_; }
  static Outcome train(const std::string& config, const std::string& run, std::vector<std::string> more = {}) {
    write_file(*folder_ / (run + ".json"), config);
    std::vector<std::string> words = {"--train", run + ".json", "--run-dir", run, "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    Outcome done = run_program("huge_ctr", words, folder_->path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done;
  }
  static std::vector<Json> metrics(const std::string& run) {
    return json_lines(read_file(*folder_ / run / "metrics.jsonl"));
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* Watch::folder_ = nullptr;

TEST_F(Watch, TheMeanLossIsThatOfTheSamplesSinceTheLineBefore) {
  const std::string epochs = with_change(small_config(), "\"max_iter\": 60", "\"num_epochs\": 3");
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    const std::string config = with_change(epochs, "[0]", gpu);
    train(with_change(config, "\"display\": 20", "\"display\": 1"), "each");
    train(with_change(config, "\"display\": 20", "\"display\": 5"), "fifth");
    const auto each = of_kind(metrics("each"), "train"), fifth = of_kind(metrics("fifth"), "train");
    ASSERT_EQ(each.size(), 24u);
    ASSERT_EQ(fifth.size(), 4u);
    double before = 0;
    for (size_t f = 0; f < fifth.size(); ++f) {
      double sum = 0, samples = 0;
      for (size_t i = 5 * f; i < 5 * f + 5; ++i) {
        const double here = each[i].find("samples")->number() - before;
        sum += each[i].find("loss")->number() * here;
        samples += here;
        before = each[i].find("samples")->number();
        EXPECT_EQ(each[i].find("mean_loss")->number(), each[i].find("loss")->number()) << "of one step";
      }
      EXPECT_NEAR(fifth[f].find("mean_loss")->number(), sum / samples, 1e-12) << gpu;
      EXPECT_EQ(fifth[f].find("loss")->text(), each[5 * f + 4].find("loss")->text()) << "loss stays the batch's";
      EXPECT_EQ(fifth[f].find("epoch")->number(), fifth[f].find("samples")->number() / 1000);
    }
    fs::remove_all(*folder_ / "each");
    fs::remove_all(*folder_ / "fifth");
  }
}

TEST_F(Watch, TheLineForPeopleHasItAllInOneHundredAndTwentyColumns) {
  const Outcome done = train(small_config(), "people");
  static const std::regex line(R"(Iter: \d+ epoch \d+\.\d\d loss 0\.\d{6} lr 0\.01 \| )"
                               R"([\d.]+ ?[kM]? samples/s, wait \d+ %, mem \d+\.\d\d GB, .* left)");
  std::istringstream lines(done.err);
  int found = 0;
  for (std::string text; std::getline(lines, text);) {
    EXPECT_LE(text.starts_with("Iter:") ? text.size() : 0, 120u);
    if (text.starts_with("Iter:")) {
      ++found;
      EXPECT_TRUE(std::regex_match(text, line)) << text;
    }
  }
  EXPECT_EQ(found, 3);
}

TEST_F(Watch, JsonLinesAreThoseOfTheFileAndASummary) {
  const Outcome done = train(small_config(), "json", {"--log", "json"});
  std::vector<Json> shown = json_lines(done.out);
  const std::string file = read_file(*folder_ / "json/metrics.jsonl");
  ASSERT_FALSE(shown.empty());
  EXPECT_EQ(done.out.substr(0, file.size()), file);
  const Json summary = shown.back();
  EXPECT_EQ(*summary.find("kind")->string(), "summary");
  EXPECT_EQ(*summary.find("run_dir")->string(), "json");
  EXPECT_EQ(summary.find("metrics")->text(), Json::read_file(*folder_ / "json/summary.json").find("metrics")->text());
  EXPECT_EQ(done.err.find("Iter:"), std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("Evaluation,"), std::string::npos);
  static const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  std::string before;
  for (const Json& line : metrics("json")) {
    ASSERT_TRUE(line.find("time")) << line.text();
    EXPECT_TRUE(std::regex_match(*line.find("time")->string(), time));
    EXPECT_GE(*line.find("time")->string(), before);
    before = *line.find("time")->string();
  }
}

TEST_F(Watch, MetricsGoToPrometheusAndTensorBoard) {
  train(with_change(small_config(), "\"display\": 20", "\"display\": 20, \"tensorboard\": true"), "others",
        {"--metrics-file", "others.prom"});
  const std::string text = read_file(*folder_ / "others.prom");
  EXPECT_NE(text.find("\nhuge_ctr_iteration{run="), std::string::npos) << text;
  EXPECT_NE(text.find(",metric=\"AUC\"} 0."), std::string::npos) << text;
  int events = 0;
  for (const auto& entry : fs::directory_iterator(*folder_ / "others"))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      ++events;
      const std::string bytes = read_file(entry.path());
      for (const char* tag : {"train/mean_loss", "eval/AUC", "train/learning_rate"})
        EXPECT_NE(bytes.find(tag), std::string::npos) << tag;
    }
  EXPECT_EQ(events, 1);
  write_file(*folder_ / "fails.json", small_config());
  const Outcome failed = run_program(
      "huge_ctr", {"--train", "fails.json", "--device", "cpu", "--metrics-file", "none/x.prom"}, folder_->path());
  EXPECT_EQ(failed.exit_code, 5);
  EXPECT_NE(failed.err.find("cannot write 'none/x.prom' of --metrics-file"), std::string::npos) << failed.err;
}

TEST_F(Watch, RunJsonSaysWhatRanWhereAndWhenAlsoOfARunThatGoesOn) {
  const std::string config = with_change(small_config(), "\"snapshot\": 1000000", "\"checkpoint\": {\"every\": 20}");
  train(config, "about", {"--max-iter", "40"});
  const auto read = [&] { return Json::read_file(*folder_ / "about/run.json"); };
  const Json first = read();
  EXPECT_EQ(*first.find("run")->string(), *metrics("about")[0].find("run")->string());
  const Json& start = (*first.find("starts")->array())[0];
  const std::string command = start.find("command")->text();
  EXPECT_NE(command.find("\"--max-iter\",\"40\""), std::string::npos) << command;
  for (const char* name : {"folder", "config", "host", "started", "device", "processor", "ended"})
    EXPECT_FALSE(start.find(name)->string()->empty()) << name;
  EXPECT_EQ(*start.find("how")->string(), "finished");
  for (const char* name : {"huge_ctr", "commit", "CUDA"}) EXPECT_TRUE(start.find("versions")->find(name)) << name;
  EXPECT_EQ(first.find("data")->text(),
            Json::read_file(*folder_ / "ckpt/iteration_000040/manifest.json").find("about")->find("data")->text());
  EXPECT_TRUE(first.find("eval_data")->find("bytes")->integer());
  train(config, "about", {"--resume", "latest"});
  const Json second = read();
  ASSERT_EQ(second.find("starts")->array()->size(), 2u);
  EXPECT_EQ((*second.find("starts")->array())[0].text(), start.text()) << "what was said stays";
  EXPECT_NE((*second.find("starts")->array())[1].find("command")->text().find("--resume"), std::string::npos);
  // A second run leaves the first one unchanged.
  train(config, "about");
  EXPECT_EQ(read_file(*folder_ / "about.1/run.json"), second.text(2) + "\n");
  EXPECT_EQ(read().find("starts")->array()->size(), 1u);
}

}  // namespace
}  // namespace hctr::test
