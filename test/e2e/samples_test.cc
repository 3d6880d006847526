// Runs the samples of the repository unchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

std::string sample(const std::string& name) { return read_file(hctr::test::source_dir() / "samples" / name); }

/// The sample's config with smaller batches, so that the test takes seconds on two cores.
std::string made_small(std::string config) {
  config = with_change(config, "\"batchsize\": 16384", "\"batchsize\": 512");
  if (config.find("\"batchsize_eval\": 16384") != std::string::npos)
    config = with_change(config, "\"batchsize_eval\": 16384", "\"batchsize_eval\": 512");
  config = with_change(config, "\"display\": 200", "\"display\": 10");
  return with_change(config, "\"eval_batches\": 60", "\"eval_batches\": 4");
}

double loss_at_end(const fs::path& run) {
  const Json summary = Json::parse(read_file(run / "summary.json"), "summary.json");
  return summary.find("final_loss")->number();
}

/// Runs a sample's script on a copy of the samples in `folder`, with the programs of this build.
Outcome run_script(const TemporaryFolder& folder, const std::string& script, std::vector<std::string> arguments,
                   std::map<std::string, std::string> environment = {}) {
  for (const char* part : {"samples", "third_party"})
    fs::copy(hctr::test::source_dir() / part, folder / part, fs::copy_options::recursive);
  arguments.insert(arguments.begin(), (folder / "samples" / script).string());
  if (read_file(arguments[0]).find("mpirun") != std::string::npos)
    environment.insert(kMpiEnvironment.begin(), kMpiEnvironment.end());
  environment["HCTR_BIN_DIR"] = hctr::test::bin_dir().string();
  return run_program("/bin/bash", arguments, folder.path(), environment);
}

TEST(Samples, QuickstartRunsAndSaysWhatItAchieved) {
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "quickstart/run.sh", {}, {{"SAMPLES", "20000"}, {"EVAL_SAMPLES", "5000"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* piece : {"AUC: ", "best possible on this data", "/models/_dense_", "Next:"})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.out;
}

TEST(Samples, ParameterServerTrainsServesAndFollows) {
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "parameter_server/run.sh", {}, {{"PORT", "0"}, {"REDIS_PORT", "0"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  for (const char* piece : {"== 3. Train on, and publish", "rows, mean score 0.", "hctr_store_iteration", "Done in "})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.out;
  const fs::path results = folder / "runs/parameter_server";
  EXPECT_NE(read_file(results / "before.txt"), read_file(results / "after.txt"));
}

TEST(Samples, ServingTrainsServesAsksAndUpdates) {
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "serving/run.sh", {"--max-iter", "20"}, {{"PORT", "0"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  for (const char* piece : {"== Updating", "rows, mean score 0.", "Done in "})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.out;
  if (outcome.out.find("\"name\":\"loss\"") != std::string::npos) {  // true if the machine has curl
    EXPECT_NE(outcome.out.find("\"name\":\"embedding.city\",\"datatype\":\"FP32\",\"shape\":[2,"), std::string::npos);
  }
  EXPECT_NE(read_file(folder / "runs/serving/before.txt"), read_file(folder / "runs/serving/after.txt"));
}

/// Folders of samples that generate data with planted signals.
std::vector<std::string> planted_samples() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(hctr::test::source_dir() / "samples"))
    if (entry.is_directory() && read_file(entry.path() / "run.sh").find("make_data") != std::string::npos)
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class PlantedSamples : public testing::TestWithParam<std::string> {};

TEST_P(PlantedSamples, TheScriptMakesDataTrainsAndSaysWhatCouldBeReached) {
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, GetParam() + "/run.sh", {},
                                     {{"SAMPLES", "20000"}, {"EVAL_SAMPLES", "5000"}, {"ITERATIONS", "1"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::read_file(folder / ("runs/" + GetParam() + "/run/summary.json"));
  for (const auto& [name, value] : *summary.find("metrics")->object()) {
    const Json* best = summary.find("best_possible")->find(name);
    ASSERT_TRUE(best) << "no best possible " << name;
    if (name.starts_with("AUC")) {
      EXPECT_GT(best->number(), 0.75) << name;
    }
  }
  EXPECT_TRUE(fs::exists(hctr::test::source_dir() / "samples" / GetParam() / "README.md"));
}

INSTANTIATE_TEST_SUITE_P(All, PlantedSamples, testing::ValuesIn(planted_samples()),
                         [](const auto& row) { return row.param; });

TEST(Samples, EveryConfigPassesTheCheckUnderStrict) {
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(hctr::test::source_dir() / "samples")) {
    if (entry.path().extension() != ".json") continue;
    ++seen;
    const Outcome outcome =
        run_program("huge_ctr", {"--check", entry.path().string(), "--strict"}, fs::temp_directory_path());
    EXPECT_EQ(outcome.exit_code, 0) << entry.path() << ": " << outcome.err;
    EXPECT_NE(outcome.out.find(": OK"), std::string::npos);
  }
  EXPECT_GE(seen, 11);
}

TEST(Samples, TheTerabyteModelFitsOnSixteenGpusOfTwoHosts) {
  const std::string config = (hctr::test::source_dir() / "samples/dlrm/terabyte.json").string();
  const TemporaryFolder folder;
  const auto check = [&](const std::string& gpus) {
    return run_program("huge_ctr", {"check", config, "--gpu-name", "H200", "--gpus", gpus}, folder.path());
  };
  const Outcome eight = check("8"), sixteen = check("16");
  EXPECT_EQ(eight.exit_code, 0) << eight.err;
  EXPECT_NE(eight.out.find("does not fit"), std::string::npos) << eight.out;
  EXPECT_NE(eight.out.find("It fits on 15 such GPUs (2 hosts of 8)"), std::string::npos) << eight.out;
  EXPECT_EQ(sixteen.exit_code, 0) << sixteen.err;
  EXPECT_NE(sixteen.out.find("It fits"), std::string::npos) << sixteen.out;
  const Outcome scaled = run_program("bench",
                                     {"scale", config, "--batch", "4096", "--device", "cpu", "--gpu-name", "H200",
                                      "--simulate", "hosts=2,gpus=8,network=8xib400"},
                                     folder.path());
  EXPECT_EQ(scaled.exit_code, 0) << scaled.err;
  const size_t of_eight = scaled.out.find("\n     8 "), of_sixteen = scaled.out.find("\n    16 ");
  ASSERT_NE(of_sixteen, std::string::npos) << scaled.out;
  EXPECT_NE(scaled.out.substr(of_eight, of_sixteen - of_eight).find("does not fit"), std::string::npos) << scaled.out;
  EXPECT_EQ(scaled.out.substr(of_sixteen).find("does not fit"), std::string::npos) << scaled.out;
}

TEST(Samples, WideAndDeepTrainsInBothSpellingsToTheSameModel) {
  TemporaryFolder folder;
  write_file(folder / "v2.3.json", made_small(sample("wdl/wdl.json")));
  write_file(folder / "v2.1.json", made_small(sample("wdl/wdl_v2.1.json")));
  make_data(folder.path(), "v2.3.json", 8192, 2048);
  std::string models[2];
  const char* versions[] = {"v2.3", "v2.1"};
  for (int i = 0; i < 2; ++i) {
    const std::string v = versions[i];
    const Outcome outcome = run_program(
        "huge_ctr", {"--train", v + ".json", "--run-dir", v, "--max-iter", "16", "--seed", "3"}, folder.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_LT(loss_at_end(folder / v), 0.68) << "a model that knows nothing is at 0.69";
    for (const char* file : {"final__dense_16.model", "final_0_sparse_16.model", "final_1_sparse_16.model"})
      models[i] += read_file(folder / v / file);
  }
  EXPECT_FALSE(models[0].empty());
  EXPECT_TRUE(models[0] == models[1]);
}

/// The folder of the real data set, if present.
fs::path shared_data(const std::string& name) {
  const char* given = std::getenv("HCTR_SHARED_DATA");
  return (given ? fs::path(given) : hctr::test::source_dir() / "../shared/data") / name;
}

TEST(Samples, RealRowsTrainToAGoodAreaUnderTheCurve) {
  const fs::path rows = shared_data("criteo_kaggle_sample.tsv.gz");
  if (!fs::exists(rows)) GTEST_SKIP() << "no real rows at " << rows << "; set HCTR_SHARED_DATA to their folder";
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "criteo/run.sh", {fs::canonical(rows).string()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::read_file(folder / "runs/criteo/run/summary.json");
  EXPECT_GT(summary.find("metrics")->find("AUC")->number(), 0.75);
}

TEST(Samples, RealSequencesTrainWithAndWithoutAttention) {
  const fs::path sequences = shared_data("amazon_sports");
  if (!fs::exists(sequences))
    GTEST_SKIP() << "no real sequences at " << sequences << "; set HCTR_SHARED_DATA to the folder above";
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "din/run.sh", {fs::canonical(sequences).string(), "--strict"},
                                     {{"USERS", "4000"}, {"SEEDS", "1"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Held-out AUC, seeds 1"), std::string::npos) << outcome.out;
  for (const std::string model : {"din", "no_attention"}) {
    const Json summary = Json::read_file(folder / ("runs/din/" + model + "-1/summary.json"));
    EXPECT_GT(summary.find("metrics")->find("AUC")->number(), 0.6) << model;
  }
}

TEST(Samples, RealRatingsTrainToAGoodAreaUnderTheCurve) {
  const fs::path ratings = shared_data("ml-100k");
  if (!fs::exists(ratings))
    GTEST_SKIP() << "no real ratings at " << ratings << "; set HCTR_SHARED_DATA to the folder above";
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "movielens/run.sh", {fs::canonical(ratings).string(), "--strict"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("100000 ratings of 943 users and 1682 movies"), std::string::npos) << outcome.out;
  const Json summary = Json::read_file(folder / "runs/movielens/run/summary.json");
  EXPECT_GT(summary.find("metrics")->find("AUC")->number(), 0.76);
}

TEST(Samples, DataThatIsNotThereIsAskedForInWords) {
  const TemporaryFolder folder;
  const Outcome outcome = run_script(folder, "din/run.sh", {folder.path().string()});
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* piece : {"No sequences.txt.gz in ", "gzip"})
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
  const TemporaryFolder other;
  const Outcome ratings = run_script(other, "movielens/run.sh", {other.path().string()});
  EXPECT_EQ(ratings.exit_code, 2);
  for (const char* piece : {"No ratings of MovieLens in ", "ml-1m.zip"})
    EXPECT_NE(ratings.err.find(piece), std::string::npos) << ratings.err;
}

}  // namespace
}  // namespace hctr::test
