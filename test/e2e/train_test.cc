// huge_ctr --train on small data with a planted signal.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "core/device/device.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// The devices of this machine, as values for --device.
std::vector<std::string> devices() {
  std::vector<std::string> names = {"cpu"};
  if (find_gpus().count > 0) names.push_back("cuda");
  return names;
}

Json summary_of(const fs::path& run) { return Json::parse(read_file(run / "summary.json"), "summary.json"); }

double number(const Json& object, const std::string& key) {
  const Json* value = object.find(key);
  EXPECT_TRUE(value && value->is_number()) << key << " in " << object.text();
  return value && value->is_number() ? value->number() : std::nan("");
}

/// Returns the values of `key` in all lines of one kind in metrics.jsonl.
std::vector<double> series(const fs::path& run, const std::string& kind, const std::string& key) {
  std::vector<double> values;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text, "metrics.jsonl");
    if (*line.find("kind")->string() == kind) values.push_back(number(line, key));
  }
  return values;
}

class Training : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 20000, 5000, {"--vocabulary", "30", "--interactions", "0"});
  }

  Outcome train(const std::string& config, const std::string& run, std::vector<std::string> more = {}) {
    write_file(folder_ / (run + ".json"), config);
    std::vector<std::string> arguments = {"--train", run + ".json", "--run-dir", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("huge_ctr", arguments, folder_.path());
  }
  void train_well(const std::string& config, const std::string& run, std::vector<std::string> more = {}) {
    const Outcome done = train(config, run, std::move(more));
    ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
  }
  std::string model(const std::string& run) {
    std::string all;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / run))
      if (entry.path().extension() == ".model") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    EXPECT_EQ(files.size(), 3u);
    for (const fs::path& file : files) all += file.filename().string() + read_file(file);
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(Training, LearnsMostOfWhatThereIsToLearnAndSaysSo) {
  for (const std::string& device : devices()) {
    const Outcome done = train(with_change(small_config(), "\"max_iter\": 60", "\"num_epochs\": 4"), "run-" + device,
                               {"--device", device});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Json summary = summary_of(folder_ / ("run-" + device));
    EXPECT_EQ(number(summary, "schema"), 1);
    EXPECT_EQ(number(summary, "samples"), 80000);
    EXPECT_EQ(number(summary, "iterations"), 4 * 157);  // 20000 = 156 * 128 + 32, so the partial batch is trained, too
    const double auc = number(*summary.find("metrics"), "AUC"), best = number(*summary.find("best_possible"), "AUC");
    EXPECT_GT((auc - 0.5) / (best - 0.5), 0.8) << device << ": " << auc << " of " << best;
    EXPECT_LT(auc, best + 0.01);
    EXPECT_NE(done.out.find("AUC: "), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("best possible on this data"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("run folder: run-" + device), std::string::npos) << done.out;
  }
}

TEST_F(Training, TwoRunsWriteEqualBytesWhateverTheThreads) {
  for (const std::string& device : devices()) {
    train_well(small_config(), "a", {"--device", device, "--threads", "1"});
    train_well(small_config(), "b", {"--device", device, "--threads", "4"});
    EXPECT_TRUE(model("a") == model("b")) << device;
    train_well(small_config(), "c", {"--device", device, "--seed", "8"});
    EXPECT_FALSE(model("a") == model("c")) << device << ": another seed gave the same model";
  }
}

TEST_F(Training, RecordedAndUnrecordedStepsGiveEqualBytes) {
  for (const std::string& device : devices()) {
    train_well(small_config(), "recorded", {"--device", device});
    train_well(with_change(small_config(), "\"seed\"", "\"cuda_graph\": false, \"seed\""), "unrecorded",
               {"--device", device});
    EXPECT_TRUE(model("recorded") == model("unrecorded")) << device;
  }
}

TEST_F(Training, CpuAndGpuAgreeOnTheLoss) {
  if (devices().size() < 2) GTEST_SKIP() << "no CUDA device: " << find_gpus().why_none;
  train_well(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100"), "on-cpu", {"--device", "cpu"});
  train_well(with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100"), "on-gpu", {"--device", "cuda"});
  const auto cpu = series(folder_ / "on-cpu", "train", "loss"), gpu = series(folder_ / "on-gpu", "train", "loss");
  ASSERT_EQ(cpu.size(), gpu.size());
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(gpu[i] / cpu[i], 1, 1e-3) << "display " << i;
}

TEST_F(Training, ModelsHaveKeysAsWideAsTheData) {
  const std::string of_32 = with_change(small_config(), "\"seed\": 7", "\"seed\": 7, \"input_key_type\": \"I32\"");
  // a file with these keys can be read with only one key width
  const std::vector<std::string> keys = {"--vocabulary", "31", "--interactions", "0", "--force"};
  make_data(folder_.path(), "config.json", 20000, 5000, keys);
  train_well(with_change(small_config(), "\"out/\"", "\"wide/\""), "run-wide");
  const auto rows = [&](const std::string& out, int key_bytes) {
    const auto bytes = static_cast<int64_t>(fs::file_size(folder_ / out / "1_sparse_60.model"));
    EXPECT_EQ(bytes % (key_bytes + 8 + 20), 0) << out;
    return bytes / (key_bytes + 8 + 20);
  };
  const int64_t expected = rows("wide", 8);
  // The same samples with 32-bit keys.
  write_file(folder_ / "config32.json", of_32);
  make_data(folder_.path(), "config32.json", 20000, 5000, keys);
  train_well(with_change(small_config(), "\"out/\"", "\"narrow/\""), "run-narrow");
  EXPECT_EQ(rows("narrow", 4), expected);
  train_well(with_change(with_change(small_config(), "\"out/\"", "\"asked/\""), "\"seed\": 7",
                         "\"seed\": 7, \"input_key_type\": \"I32\""),
             "run-asked");
  EXPECT_TRUE(model("run-asked") == model("run-narrow")) << "what I32 gives";
  // Both models load with either input_key_type.
  for (const std::string type : {"", "I32"})
    for (const std::string from : {"wide", "narrow"}) {
      const std::string load = R"("seed": 7, "dense_model_file": ")" + from + R"(/_dense_60.model",
          "sparse_model_file": [")" +
                               from + R"(/0_sparse_60.model", ")" + from + R"(/1_sparse_60.model"])" +
                               (type.empty() ? "" : R"(, "input_key_type": ")" + type + "\"");
      train_well(with_change(with_change(small_config(), "\"out/\"", "\"more/\""), "\"seed\": 7", load),
                 from + "-" + type);
      EXPECT_EQ(rows("more", 4), expected);
    }
}

TEST_F(Training, AnEarlierRunIsMovedAway) {
  train_well(small_config(), "run");
  const std::string first = read_file(folder_ / "run" / "metrics.jsonl");
  write_file(folder_ / "run" / "notes.txt", "mine");
  const Outcome second = train(small_config(), "run", {"--seed", "8"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_NE(second.err.find("The run folder 'run' contained an earlier run, which was moved to 'run.1'."),
            std::string::npos)
      << second.err;
  EXPECT_EQ(read_file(folder_ / "run.1" / "metrics.jsonl"), first);
  EXPECT_EQ(read_file(folder_ / "run.1" / "notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "notes.txt"));
  EXPECT_NE(model("run"), model("run.1"));
  write_file(folder_ / "config.json", small_config());
  const Outcome slash = run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run/"}, folder_.path());
  EXPECT_NE(slash.err.find("which was moved to 'run.2'."), std::string::npos) << slash.err;
  EXPECT_EQ(model("run"), model("run.1"));
  // A run folder that contains an input of the run is not moved.
  write_file(folder_ / "config.json", with_change(small_config(), "\"seed\": 7",
                                                  R"("seed": 7, "dense_model_file": "run/final__dense_60.model")"));
  const Outcome refused = run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run"}, folder_.path());
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("'run/final__dense_60.model' is in the run folder 'run', which contains an earlier run "
                             "and would be moved to 'run.3': name another --run-dir"),
            std::string::npos)
      << refused.err;
  EXPECT_TRUE(fs::exists(folder_ / "run" / "final__dense_60.model"));
}

TEST_F(Training, EverySpellingOfTheSameConfigTrainsTheSameModel) {
  std::string old = small_config();
  old = with_change(old, "\"learning_rate\"", "\"alpha\"");
  old = with_change(old, "\"update_type\": \"Global\"", "\"global_update\": true");
  old = with_change(old, "\"max_vocabulary_size_per_gpu\": 1000", "\"vocabulary_size\": 1000, \"load_factor\": 0.75");
  old = with_change(old, "\"max_vocabulary_size_per_gpu\": 1000", "\"vocabulary_size\": 1000, \"load_factor\": 0.75");
  old = with_change(old, "\"top\": \"deep_emb\",", "\"top\": \"deep_emb\", \"plan_file\": \"all2all_plan.json\",");
  train_well(small_config(), "new");
  train_well(old, "old");
  EXPECT_TRUE(model("new") == model("old"));
}

TEST_F(Training, AModelLoadedEvaluatesAsItDidWhenSaved) {
  for (const std::string& device : devices()) {
    train_well(small_config(), "first", {"--device", device});
    const double saved = number(*summary_of(folder_ / "first").find("metrics"), "AUC");
    // A step with learning rate 0 changes nothing, so its evaluation equals that of the loaded model.
    std::string again = with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 1");
    again = with_change(again, "\"learning_rate\": 0.01", "\"learning_rate\": 0.0");
    again =
        with_change(again, "\"seed\": 7",
                    "\"seed\": 99, \"dense_model_file\": \"first/final__dense_60.model\", "
                    "\"sparse_model_file\": [\"first/final_0_sparse_60.model\", \"first/final_1_sparse_60.model\"]");
    train_well(again, "second", {"--device", device});
    EXPECT_DOUBLE_EQ(number(*summary_of(folder_ / "second").find("metrics"), "AUC"), saved) << device;
  }
}

TEST_F(Training, SnapshotsBearTheClassicNamesAndLayouts) {
  train_well(with_change(small_config(), "\"snapshot\": 1000000", "\"snapshot\": 40"), "run");
  for (const char* iteration : {"40", "60"}) {  // iteration 60 is the end of the run
    EXPECT_EQ(fs::file_size(folder_ / "out" / (std::string("_dense_") + iteration + ".model")),
              4u * ((15 + 4) * 16 + 16 + 16 + 1));
    const auto wide = fs::file_size(folder_ / "out" / (std::string("0_sparse_") + iteration + ".model"));
    const auto deep = fs::file_size(folder_ / "out" / (std::string("1_sparse_") + iteration + ".model"));
    EXPECT_EQ(wide % (8 + 4), 0u);          // a key and a vector of one float
    EXPECT_EQ(deep % (8 + 8 + 5 * 4), 0u);  // a key, a slot id and a vector of five floats
    EXPECT_GT(wide, 0u);
  }
}

TEST_F(Training, AnInterruptSavesTheModelAndSaysSo) {
  const std::string endless = with_change(small_config(), "\"max_iter\": 60", "\"max_iter\": 100000000");
  write_file(folder_ / "endless.json", endless);
  const Outcome stopped = run_and_signal("huge_ctr", {"--train", "endless.json", "--run-dir", "endless"},
                                         folder_.path(), "Iter: 20", SIGINT);
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_NE(stopped.err.find("Stopped on request after iteration"), std::string::npos) << stopped.err;
  const Json summary = summary_of(folder_ / "endless");
  EXPECT_TRUE(*summary.find("interrupted")->boolean());
  EXPECT_FALSE(model("endless").empty());
}

TEST_F(Training, AThresholdEndsTraining) {
  train_well(with_change(small_config(), "\"AUC\"", "\"AUC:0.51\""), "run");
  const Json summary = summary_of(folder_ / "run");
  EXPECT_EQ(number(summary, "iterations"), 30);
  ASSERT_TRUE(summary.find("stopped_at"));
  EXPECT_EQ(*summary.find("stopped_at")->string(), "AUC:0.51");
}

TEST_F(Training, MetricsFileHoldsALineForEachDisplayAndEvaluation) {
  train_well(small_config(), "run");
  EXPECT_EQ(series(folder_ / "run", "train", "iteration"), (std::vector<double>{20, 40, 60}));
  EXPECT_EQ(series(folder_ / "run", "eval", "iteration"), (std::vector<double>{30, 60}));
  EXPECT_EQ(series(folder_ / "run", "start", "schema"), (std::vector<double>{1}));
  for (const double loss : series(folder_ / "run", "train", "loss")) EXPECT_GT(loss, 0);
}

TEST_F(Training, TheOrderOfLayersInTheFileDoesNotMatter) {
  std::string moved = small_config();
  const std::string relu = "    {\"name\": \"relu1\", \"type\": \"ReLU\", \"bottom\": \"fc1\", \"top\": \"relu1\"},\n";
  moved = with_change(moved, relu, "");
  moved = with_change(moved, "    {\"name\": \"add1\"", relu + "    {\"name\": \"add1\"");
  train_well(small_config(), "straight");
  train_well(moved, "moved");
  EXPECT_TRUE(model("straight") == model("moved"));
}

}  // namespace
}  // namespace hctr::test
