#include "train/prometheus_file.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

Json line(const std::string& text) { return Json::parse(text, "line"); }

TEST(PrometheusFile, HoldsTheLastNumbersInTheTextFormat) {
  const TemporaryFolder folder;
  TestLog log;
  PrometheusFile file(folder / "run.prom", "r1", log.log());
  file.add(line(R"({"kind":"train","iteration":10,"loss":0.75,"samples_per_second":1000})"), 5);
  file.add(line(R"({"kind":"train","iteration":20,"loss":0.5,"samples_per_second":2000})"), 6.5);
  file.add(line(R"({"kind":"eval","iteration":20,"samples":4,"seconds":1,"AUC":null,"a \"b\"\\c":0.25})"), 7);
  file.add(line(R"({"kind":"table","iteration":20,"table":"emb","rows":3})"), 8);
  const std::string text = read_file(folder / "run.prom");
  for (const char* part :
       {"# TYPE huge_ctr_loss gauge\nhuge_ctr_loss{run=\"r1\"} 0.5\n", "huge_ctr_iteration{run=\"r1\"} 20\n",
        "huge_ctr_eval_metric{run=\"r1\",metric=\"AUC\"} NaN\n",
        "huge_ctr_eval_metric{run=\"r1\",metric=\"a \\\"b\\\"\\\\c\"} 0.25\n",
        "huge_ctr_table{run=\"r1\",table=\"emb\",count=\"rows\"} 3\n", "huge_ctr_time_seconds{run=\"r1\"} 8\n",
        "huge_ctr_ended{run=\"r1\"} 0\n"})
    EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in\n" << text;
  // Every line is a comment or "name{labels} number". Help and type lines precede the first use of a name.
  EXPECT_EQ(text.find("# HELP huge_ctr_loss"), text.rfind("# HELP huge_ctr_loss"));
  file.add(line(R"({"kind":"end","iteration":20})"), 9);
  EXPECT_NE(read_file(folder / "run.prom").find("huge_ctr_ended{run=\"r1\"} 1\n"), std::string::npos);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u) << "no temporary file stays";
}

TEST(PrometheusFile, FailsAtTheStartAndWarnsOnceLater) {
  const TemporaryFolder folder;
  TestLog log;
  log.expect("of --metrics-file: No such file or directory; training continues without this file");
  PrometheusFile never(folder / "no/run.prom", "r", log.log());
  EXPECT_NE(message_of(Kind::io, [&] { never.add(line(R"({"kind":"start"})"), 1); }).find("no/run.prom"),
            std::string::npos);
  fs::create_directory(folder / "yes");
  PrometheusFile later(folder / "yes/run.prom", "r", log.log());
  later.add(line(R"({"kind":"start"})"), 1);
  fs::remove_all(folder / "yes");
  for (int i = 0; i < 3; ++i) later.add(line(R"({"kind":"end"})"), 2);
}

}  // namespace
}  // namespace hctr::test
