// huge_ctr --report: one HTML page that shows runs, including damaged ones, and works in a browser.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// The JSON data embedded in a page.
Json data_of(const std::string& html) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const size_t begin = html.find(open);
  EXPECT_NE(begin, std::string::npos);
  if (begin == std::string::npos) return {};
  const size_t end = html.find("</script>", begin);
  return Json::parse(html.substr(begin + open.size(), end - begin - open.size()), "data");
}

const Json& run_of(const Json& data, size_t index) { return (*data.find("runs")->array())[index]; }

class Report : public testing::Test {
 protected:
  /// All tests share two runs. The second run has another learning rate and a smaller batch size.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "a.json", small_config());
    write_file(*folder_ / "b.json", with_change(with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 64"),
                                                "\"learning_rate\": 0.01", "\"learning_rate\": 0.02"));
    make_data(folder_->path(), "a.json", 4000, 1500, {"--vocabulary", "30", "--interactions", "0"});
    for (const char* name : {"a", "b"}) {
      std::vector<std::string> words = {"--train", cat(name, ".json"), "--run-dir", name, "--device", "cpu"};
      if (*name == 'a') words.emplace_back("--profile");
      const Outcome done = run_program("huge_ctr", words, folder_->path());
      ASSERT_EQ(done.exit_code, 0) << done.err;
    }
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome report(std::vector<std::string> words) {
    words.insert(words.begin(), "--report");
    words.insert(words.end(), {"--out", "page.html", "--device", "cpu"});
    return run_program("huge_ctr", words, folder_->path());
  }
  static Json page() { return data_of(read_file(*folder_ / "page.html")); }
  static std::string notes(const Json& run) { return run.find("notes")->text(); }
  /// Copies the run folder of run a. Returns the path of the copy.
  static fs::path copy_of_a(const std::string& name) {
    fs::remove_all(*folder_ / name);
    fs::copy(*folder_ / "a", *folder_ / name);
    return *folder_ / name;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Report::folder_ = nullptr;

TEST_F(Report, ShowsTheNumbersOfTheRuns) {
  const Outcome done = report({"a", "b", "--importance"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("Wrote page.html: 2 runs."), std::string::npos) << done.err;
  const Json data = page();
  for (size_t r = 0; r < 2; ++r) {
    const std::string name = r == 0 ? "a" : "b";
    const Json summary = Json::read_file(*folder_ / name / "summary.json");
    const Json& run = run_of(data, r);
    EXPECT_EQ(*run.find("name")->string(), name);
    EXPECT_EQ(*run.find("end")->string(), "finished");
    EXPECT_EQ(notes(run), "[]");
    EXPECT_EQ(run.find("final_metrics")->text(), summary.find("metrics")->text());
    EXPECT_EQ(run.find("training")->find("mean_loss")->find("x")->text(), "[20.0,40.0,60.0]");
    EXPECT_EQ(run.find("metrics")->find("AUC")->find("x")->text(), "[30.0,60.0]");
    // The area under the ROC curve in the page equals the AUC of training.
    const Json& label = (*run.find("scores")->find("labels")->array())[0];
    EXPECT_NEAR(label.find("auc")->number(), summary.find("metrics")->find("AUC")->number(), 1e-9);
    EXPECT_EQ(run.find("scores")->find("rows")->text(), "1500");
    int64_t rows = 0;
    for (const char* which : {"positives", "negatives"})
      for (const Json& count : *label.find("histogram")->find(which)->array()) rows += *count.integer();
    EXPECT_EQ(rows, 1500);
    EXPECT_EQ(run.find("scores")->find("importance")->array()->size(), 8u) << "four dense values, four slots";
    // Without access statistics, the page takes the hottest keys from the scored rows.
    EXPECT_EQ(run.find("scores")->find("hottest")->array()->size(), 2u);
    for (const Json& hottest : *run.find("scores")->find("hottest")->array()) {
      EXPECT_FALSE(*hottest.find("in_training")->boolean());
      EXPECT_GT(*hottest.find("times")->integer(), 1500);
      EXPECT_EQ(hottest.find("keys")->array()->size(), 10u);
    }
    ASSERT_FALSE(run.find("tables")->object()->empty());
    const double load = run.find("tables")->object()->begin()->second.find("load")->find("y")->array()->back().number();
    EXPECT_GT(load, 0);
    EXPECT_LT(load, 0.75);
    EXPECT_EQ(run.find("profile")->is_null(), r == 1);
  }
  std::string places;
  for (const Json& difference : *data.find("differences")->array()) places += *(*difference.array())[0].string() + " ";
  EXPECT_EQ(places, "/solver/batchsize /optimizer/adam_hparam/learning_rate ");
}

TEST_F(Report, FeaturesThatDecideAreTheImportantOnes) {
  // The label equals "good"; "noise" is random.
  std::string rows = "click,good,noise\n";
  for (int r = 0; r < 3000; ++r) rows += cat(r * 7919 % 1000 % 2, ",", r * 7919 % 1000 % 2, ",", r * 31 % 17, "\n");
  write_file(*folder_ / "rows.csv", rows);
  write_file(*folder_ / "features.json", R"({
  "solver": {"max_iter": 60, "batchsize": 100, "display": 10, "replace_models": true, "snapshot_prefix": "features/"},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.05, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "rows.csv", "eval_source": "rows.csv",
     "csv": {"labels": ["click"], "slots": [{"columns": ["good", "noise"]}]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
     "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": 1}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 2, "combiner": "sum", "count_keys": true}},
    {"type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": 4},
    {"type": "InnerProduct", "bottom": "flat", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}]})");
  const Outcome done =
      run_program("huge_ctr", {"--train", "features.json", "--run-dir", "of", "--device", "cpu"}, folder_->path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  ASSERT_EQ(report({"of", "--importance", "--score-rows", "2000"}).exit_code, 0);
  const Json data = page();
  const Json& scores = *run_of(data, 0).find("scores");
  EXPECT_EQ(scores.find("rows")->text(), "2000");
  const Json::Array& importance = *scores.find("importance")->array();
  ASSERT_EQ(importance.size(), 2u);
  EXPECT_EQ(*importance[0].find("feature")->string(), "good");
  EXPECT_GT(importance[0].find("auc_lost")->number(), 0.3);
  // The access statistics count 60 batches of 100 rows with two keys each. "good" has two values, each in half of the
  // rows.
  const Json& hottest = (*scores.find("hottest")->array())[0];
  EXPECT_TRUE(*hottest.find("in_training")->boolean());
  EXPECT_EQ(*hottest.find("times")->integer(), 12000);
  const Json::Array& keys = *hottest.find("keys")->array();
  ASSERT_EQ(keys.size(), 10u);
  for (size_t k = 0; k < 2; ++k) EXPECT_EQ((*keys[k].array())[2].text(), "3000");
  EXPECT_LT(*(*keys[2].array())[2].integer(), 600);
  EXPECT_EQ(*importance[1].find("feature")->string(), "noise");
  EXPECT_LT(std::abs(importance[1].find("auc_lost")->number()), 0.05);
}

TEST_F(Report, OpensWhateverARunLacks) {
  const fs::path killed = copy_of_a("killed");
  fs::remove(killed / "summary.json");
  const std::string lines = read_file(killed / "metrics.jsonl");
  write_file(killed / "metrics.jsonl", lines.substr(0, lines.find("\"kind\":\"eval\"") + 20));
  const fs::path empty = copy_of_a("empty");
  write_file(empty / "metrics.jsonl", "");
  write_file(empty / "summary.json", "{\"schema\"");
  write_file(empty / "config.json", "[]");
  fs::create_directory(*folder_ / "bare");
  write_file(*folder_ / "bare/metrics.jsonl", "not a line\n");
  const fs::path none = copy_of_a("none");
  std::string without = lines;
  for (size_t at; (at = without.find("\"AUC\":0.")) != without.npos;)
    without.replace(at, without.find_first_of(",}", at) - at, "\"AUC\":null");
  write_file(none / "metrics.jsonl", without);

  const Outcome done = report({"killed", "empty", "bare", "none"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json data = page();
  const auto has = [&](size_t run, const char* part) {
    EXPECT_NE(notes(run_of(data, run)).find(part), std::string::npos) << notes(run_of(data, run));
  };
  has(0, "is truncated: the run was killed");
  has(0, "no summary.json: the run is still running, was killed");
  has(0, "scores are omitted: ");
  EXPECT_EQ(*run_of(data, 0).find("end")->string(), "no end recorded");
  EXPECT_EQ(run_of(data, 0).find("last_iteration")->text(), "20");
  has(1, "metrics.jsonl is empty");
  has(1, "summary.json cannot be read: ");
  has(1, "config.json cannot be read: holds an array of 0, not an object");
  EXPECT_EQ(*run_of(data, 1).find("end")->string(), "nothing recorded");
  has(2, "line 1 of metrics.jsonl is broken (not a line)");
  has(2, "no config.json: the config is unknown");
  has(3, "metric AUC had no value in 2 evaluations");
  EXPECT_FALSE(run_of(data, 3).find("metrics")->find("AUC"));
  EXPECT_NE(done.err.find("note: killed: no summary.json"), std::string::npos) << done.err;
}

TEST_F(Report, SaysWhatIsWrongWithItsCommandLine) {
  const auto fails = [&](const std::vector<std::string>& words, int exit_code, const std::string& part) {
    const Outcome done = run_program("huge_ctr", words, folder_->path());
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    EXPECT_NE(done.err.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << done.err;
  };
  fails({"--report", "a"}, 2, "--report needs --out with a file that ends in .html");
  fails({"--report", "a", "--out", "page.pdf"}, 2, "it is 'page.pdf'");
  fails({"--report", "nowhere", "--out", "x.html"}, 2,
        "'nowhere' is not a run folder: the folder lacks metrics.jsonl (there is no such folder)");
  fails({"--report", ".", "--out", "x.html"}, 2, "'.' is not a run folder: the folder lacks metrics.jsonl\n");
  fails({"--report", "a", "--out", "x.html", "--no-scores", "--importance"}, 2, "--importance needs scores");
  fails({"--report", "a", "--out", "a.json/x.html"}, 5, "a.json");
  fails({"--importance", "--train", "a.json"}, 2, "--importance requires --report");
  fails({"--report", "a", "--train", "a.json", "--out", "x.html"}, 2, "--train and --report are two commands");
  EXPECT_FALSE(fs::exists(*folder_ / "x.html"));
}

TEST_F(Report, TextsOfConfigsAreNotHtml) {
  const fs::path evil = copy_of_a("<b>evil&amp;\"");
  const std::string config = read_file(evil / "config.json");
  write_file(evil / "config.json", with_change(config, "\"out/\"", "\"</script><img src=x onerror=alert(1)>\""));
  ASSERT_EQ(report({"a", evil.filename().string(), "--no-scores"}).exit_code, 0);
  const std::string html = read_file(*folder_ / "page.html");
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_EQ(*run_of(page(), 1).find("name")->string(), "<b>evil&amp;\"");
}

/// Writes a metrics.jsonl with `lines` lines.
void write_long_run(const fs::path& folder, int64_t lines) {
  fs::create_directories(folder);
  std::string text = "{\"kind\":\"start\",\"schema\":1,\"run\":\"r\"}\n";
  for (int64_t i = 1; i <= lines; ++i)
    text += cat("{\"kind\":\"train\",\"iteration\":", i * 10, ",\"samples\":", i * 1000,
                ",\"loss\":", i == lines / 2 ? 9.0 : 1.0 / static_cast<double>(i % 97 + 1),
                ",\"mean_loss\":0.5,\"learning_rate\":0.1,", "\"seconds\":", i, ",\"samples_per_second\":1000}\n");
  write_file(folder / "metrics.jsonl", text);
}

TEST_F(Report, ALongRunMakesASmallPageThatKeepsItsPeaks) {
  write_long_run(*folder_ / "long", 50000);
  ASSERT_EQ(report({"long"}).exit_code, 0);
  EXPECT_LT(fs::file_size(*folder_ / "page.html"), 300u << 10);
  const Json data = page();
  const Json& loss = *run_of(data, 0).find("training")->find("loss");
  EXPECT_EQ(loss.find("count")->text(), "50000");
  EXPECT_LE(loss.find("x")->array()->size(), 802u);
  double most = 0;
  for (const Json& value : *loss.find("y")->array()) most = std::max(most, value.number());
  EXPECT_EQ(most, 9.0);
}

/// Returns the page's elements after its script has run in a headless browser.
Outcome open_in_browser(const fs::path& folder, const std::string& file) {
  return run_program("/bin/bash",
                     {"-c", cat("timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=profile "
                                "--virtual-time-budget=2000 --enable-logging=stderr --dump-dom file://$PWD/",
                                file)},
                     folder);
}

TEST_F(Report, OpensInABrowserWithoutAMessage) {
  if (run_program("/bin/bash", {"-c", "command -v chromium"}, folder_->path()).exit_code != 0)
    GTEST_SKIP() << "no chromium: whether the page opens in a browser is not tested";
  write_long_run(*folder_ / "long", 2000);
  ASSERT_EQ(report({"a", "b", "long", "--importance"}).exit_code, 0);
  const Outcome opened = open_in_browser(folder_->path(), "page.html");
  ASSERT_EQ(opened.exit_code, 0) << opened.err;
  EXPECT_EQ(opened.err.find("CONSOLE"), std::string::npos) << opened.err;
  const Json summary = Json::read_file(*folder_ / "a/summary.json");
  char auc[32];
  std::snprintf(auc, sizeof auc, "<b>%.5f</b><span>AUC</span>", summary.find("metrics")->find("AUC")->number());
  for (const std::string& part :
       {std::string(auc), std::string(">What differs in the configs</h2>"), std::string(">Feature importance</h2>"),
        std::string(">Where the time of a step goes</h2>"), std::string(">ROC curve</h3>"),
        std::string("<path class=\"series\"")})
    EXPECT_NE(opened.out.find(part), std::string::npos) << "no " << part;
}

}  // namespace
}  // namespace hctr::test
