#include "report/metrics_log.h"

#include <gtest/gtest.h>

#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

MetricsLog read(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "metrics.jsonl", text);
  return read_metrics_log(folder / "metrics.jsonl");
}

constexpr const char* kTrain =
    R"({"kind":"train","iteration":10,"samples":100,"loss":0.5,"mean_loss":0.6,"seconds":1.5,"samples_per_second":66})"
    "\n";

TEST(MetricsLogFile, HasSeriesByName) {
  const MetricsLog log =
      read(std::string(R"({"kind":"start","device":"cpu"})") + "\n" + kTrain +
           R"({"kind":"eval","iteration":10,"samples":7,"seconds":2,"eval_seconds":0.1,"AUC":0.7,"HitRate":null,)"
           R"("undefined":{"HitRate":"no prediction is above 0.8"}})"
           "\n"
           R"({"kind":"table","iteration":10,"table":"emb","rows":12,"keys_seen":30})"
           "\n"
           R"({"kind":"resume","iteration":10})"
           "\n");
  EXPECT_EQ(log.training.at("mean_loss"), (Series{{10, 0.6}}));
  EXPECT_EQ(log.training.at("samples_per_second"), (Series{{1.5, 66}})) << "over seconds";
  EXPECT_FALSE(log.training.contains("samples"));
  EXPECT_EQ(log.metrics.at("AUC"), (Series{{10, 0.7}}));
  EXPECT_EQ(log.metrics.size(), 1u);
  EXPECT_EQ(log.not_numbers.at("HitRate"), 1);
  EXPECT_EQ(log.not_numbers.size(), 1u);
  EXPECT_EQ(log.undefined.at("HitRate"), "no prediction is above 0.8");
  EXPECT_EQ(log.tables.at("emb").at("keys_seen"), (Series{{10, 30}}));
  EXPECT_EQ(log.resumed, (std::vector<int64_t>{10}));
  EXPECT_TRUE(log.start && !log.end);
  EXPECT_TRUE(log.notes.empty());
}

TEST(MetricsLogFile, ALineThatIsCutOffIsNotedAndTheRestStays) {
  const MetricsLog log = read(std::string(kTrain) + R"({"kind":"train","iteration":20,"lo)");
  EXPECT_EQ(log.lines, 1);
  EXPECT_EQ(log.training.at("loss").size(), 1u);
  ASSERT_EQ(log.notes.size(), 1u);
  EXPECT_NE(log.notes[0].find("line 2 of metrics.jsonl is truncated"), std::string::npos) << log.notes[0];
}

TEST(MetricsLogFile, ManyBrokenLinesAreAFewNotes) {
  const MetricsLog log = read("x\n[1]\n\n7\n" + std::string(kTrain) + "nul\n");
  EXPECT_EQ(log.lines, 1);
  ASSERT_EQ(log.notes.size(), 4u);
  EXPECT_EQ(log.notes[3], "2 more lines are broken");
  EXPECT_NE(log.notes[0].find("line 1 of metrics.jsonl is broken (x)"), std::string::npos) << log.notes[0];
}

TEST(MetricsLogFile, MayBeEmpty) {
  EXPECT_EQ(read("").notes, (std::vector<std::string>{"metrics.jsonl is empty: the run ended before its first line"}));
}

TEST(MetricsLogFile, LinesOfOtherTypesDoNoHarm) {
  const MetricsLog log = read(R"({"kind":3,"iteration":"x"})"
                              "\n"
                              R"({"kind":"train","iteration":null,"loss":1})"
                              "\n"
                              R"({"kind":"table","iteration":1,"table":[]})"
                              "\n"
                              R"({"kind":"train","iteration":1,"loss":"NaN"})"
                              "\n");
  EXPECT_EQ(log.lines, 4);
  EXPECT_TRUE(log.training.empty());
}

}  // namespace
}  // namespace hctr::test
