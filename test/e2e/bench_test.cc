#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/base/expect.h"
#include "support/devices.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

TEST(Bench, EveryPartMeasuresAndWritesItsFigures) {
  const TemporaryFolder folder;
  for (const char* part : {"index", "rows", "reader"})
    for (const Device device : devices()) {
      const Outcome outcome =
          run_program("bench", {part, "--quick", "--device", device.is_cuda() ? "cuda" : "cpu", "--json", "out.json"},
                      folder.path());
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const Json figures = Json::read_file(folder / "out.json");
      ASSERT_GT(figures.find("figures")->array()->size(), 10u);
      for (const Json& figure : *figures.find("figures")->array())
        EXPECT_GT(figure.find("value")->number(), 0) << figure.text();
    }
}

TEST(Bench, ReadsAsOneOfSeveralRanks) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program("bench", {"reader", "--quick", "--ranks", "3", "--shuffle", "500", "--device", "cpu"}, folder.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(Bench, MeasuresTheStepOfAModel) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  make_data(folder.path(), "config.json", 3000, 100, {"--vocabulary", "30"});
  for (const Device device : devices()) {
    const Outcome outcome = run_program("bench",
                                        {"step", "config.json", "--batch", "500", "--quick", "--device",
                                         device.is_cuda() ? "cuda" : "cpu", "--json", "out.json"},
                                        folder.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json figures = Json::read_file(folder / "out.json");
    const Json* whole = figures.find("figures")->array()->data();
    EXPECT_GT(whole->find("value")->number(), 0) << whole->text();
    ASSERT_TRUE(whole->find("case"));
    EXPECT_EQ(*whole->find("case")->string(), "batch 500, f32");
  }
}

TEST(Bench, ComparesSeveralRanksWithOne) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  make_data(folder.path(), "config.json", 3000, 100, {"--vocabulary", "30"});
  const auto scale = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"scale",    "config.json", "--batch", "100",     "--quick",
                                      "--device", "cpu",         "--json",  "out.json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_program("bench", words, folder.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::map<std::string, double> ideal;
    const Json figures = Json::read_file(folder / "out.json");
    for (const Json& figure : *figures.find("figures")->array())
      if (*figure.find("what")->string() == "  of ideal")
        ideal[*figure.find("case")->string()] = figure.find("value")->number();
    return ideal;
  };
  const auto weak = scale({"--ranks", "1", "3"});
  EXPECT_EQ(weak.size(), 2u);
  EXPECT_DOUBLE_EQ(weak.at("1 rank, batch 100, f32"), 100);
  EXPECT_GT(weak.at("3 ranks, batch 300, f32"), 0);
  EXPECT_TRUE(scale({"--ranks", "2", "--strong"}).contains("2 ranks, batch 100, f32"));
}

TEST(Bench, ComparesACacheOnEachOfTwoDevicesWithALargerOneOnOne) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(
      "bench", {"cache", "--quick", "--only", "copies", "--device", "cpu", "--json", "out.json"}, folder.path());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::map<std::string, double> found;
  const Json figures = Json::read_file(folder / "out.json");
  for (const Json& figure : *figures.find("figures")->array())
    found[*figure.find("what")->string() + ", " + *figure.find("case")->string()] = figure.find("value")->number();
  const std::string shape = ": 2048 keys, dim 128, 5000 rows, keys there", tenth = "copies, a tenth" + shape,
                    half = "copies, half" + shape;
  const double together = found.at("  rate of all, " + tenth + ", caches: 2"),
               alone = found.at("  rate of all, " + half + ", caches: 1");
  EXPECT_GT(found.at("  rate of all, " + tenth + ", caches: 1"), 0);
  EXPECT_NEAR(found.at("  all GPUs with a tenth, compared with one with half, " + tenth), together / alone, 1e-9);
  for (const std::string& where : {tenth + ", caches: 1", tenth + ", caches: 2", half + ", caches: 1"}) {
    EXPECT_GT(found.at("hit rate, " + where), 0) << "the requests before admit rows";
    EXPECT_LT(found.at("hit rate, " + where), 100) << "not all rows fit";
  }
}

TEST(Bench, PredictsStepsOnHostsThatAreNotThere) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  const auto simulate = [&](const std::string& cluster) {
    return run_program(
        "bench",
        {"scale", "config.json", "--batch", "1024", "--device", "cpu", "--json", "out.json", "--simulate", cluster},
        folder.path());
  };
  const Outcome outcome = simulate("hosts=64,gpus=8,network=8xib400");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<double> gpus;
  const Json figures = Json::read_file(folder / "out.json");
  for (const Json& figure : *figures.find("figures")->array())
    if (*figure.find("what")->string() == "expected of ideal") {
      gpus.push_back(std::stod(*figure.find("case")->string()));
      EXPECT_GT(figure.find("value")->number(), 0);
    }
  EXPECT_EQ(gpus, (std::vector<double>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_NE(outcome.out.find("bound by"), std::string::npos) << outcome.out;
  EXPECT_EQ(simulate("hosts=2").exit_code, 2);
}

TEST(Bench, ConfigsOfTheDocumentedFiguresAreRight) {
  const TemporaryFolder folder;
  const auto script = hctr::test::source_dir() / "tools/bench/model_configs.py";
  const Outcome written = run_program("/usr/bin/env", {"python3", script.string(), "."}, folder.path());
  ASSERT_EQ(written.exit_code, 0) << written.err;
  int configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".json") continue;
    ++configs;
    const Outcome check = run_program("huge_ctr", {"--check", entry.path().filename().string()}, folder.path());
    EXPECT_EQ(check.exit_code, 0) << entry.path() << check.err;
  }
  EXPECT_EQ(configs, 43);
}

TEST(Bench, ComparesTablesWithLightGbm) {
  const TemporaryFolder folder;
  const std::string script = (source_dir() / "tools/bench/compare_lightgbm.py").string();
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  if (run_program("/usr/bin/env", {python, "-c", "import lightgbm, numpy, pandas, sklearn"}, folder.path()).exit_code !=
      0)
    GTEST_SKIP() << "no lightgbm, numpy, pandas or scikit-learn for " << python
                 << "; HCTR_PYTHON names a Python that has them";
  std::filesystem::create_directories(folder / "adult");
  std::string rows;
  for (int r = 0; r < 1000; ++r)
    rows += cat(20 + r * 37 % 50, ", job", r % 5, ", ", r * 7919 % 10007, ", school", r % 3, ", ", r % 9,
                ", a, b, c, d, e, 0, 0, 40, f, ", (r * 37 % 50 > 25) != (r % 5 == 0) ? "<=50K" : ">50K", "\n");
  for (const char* part : {"data", "test"}) write_file(folder.path() / "adult" / cat("adult.", part), rows);
  ASSERT_EQ(run_program("/usr/bin/env", {"gzip", "adult/adult.data", "adult/adult.test"}, folder.path()).exit_code, 0);
  const Outcome done = run_program(
      "/usr/bin/env", {python, script, bin_dir().string(), ".", "--sets", "adult", "--threads", "1"}, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("LightGBM          AUC "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("3 commands"), std::string::npos) << done.out;
}

TEST(Bench, ComparesTrainingWithPyTorchsOnACpu) {
  const TemporaryFolder folder;
  const std::string script = (source_dir() / "tools/bench/compare_pytorch.py").string();
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {python, script});
    return run_program("/usr/bin/env", words, folder.path());
  };
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  const Outcome few = run({bin_dir().string(), "--steps", "5"});
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_NE(few.err.find("--steps: at least 20"), std::string::npos) << few.err;
  if (run_program("/usr/bin/env", {python, "-c", "import torch"}, folder.path()).exit_code != 0)
    GTEST_SKIP() << "no torch for " << python << "; HCTR_PYTHON names a Python that has it";
  const Outcome done = run({bin_dir().string(), "--batches", "64", "--variants", "eager", "--steps", "20", "--rows",
                            "50", "--threads", "1", "--json", "out.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("| dlrm | 64 | "), std::string::npos) << done.out;
  const Json rows = *Json::read_file(folder / "out.json").find("rows");
  ASSERT_EQ(rows.array()->size(), 4u);
  for (const Json& row : *rows.array()) {
    EXPECT_GT(row.find("huge_ctr")->number(), 0) << row.text();
    for (const char* variant : {"eager+sparse", "eager+rows"})
      EXPECT_GT(row.find("pytorch")->find(variant)->number(), 0) << row.text();
  }
}

/// compare_builds.py runs two builds alternately. With --equal it reports model files that differ between two runs.
TEST(Bench, ComparesTwoBuilds) {
  const TemporaryFolder folder;
  const std::string script = (source_dir() / "tools/bench/compare_builds.py").string();
  const auto run = [&](const std::string& programs, std::vector<std::string> more) {
    std::vector<std::string> words = {"python3", script,      programs, "--device",     "cpu", "--models",
                                      "deepfm",  "--rows",    "20",     "--ranks",      "2",   "--batches",
                                      "32",      "--samples", "2000",   "--times",      "10",  "--warm-up",
                                      "1",       "--rounds",  "1",      "--precisions", "f32", "--equal-steps",
                                      "3"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("/usr/bin/env", words, folder.path());
  };
  const std::string programs = bin_dir().string();
  const Outcome done = run(programs, {"--before", programs, "--equal", "--json", "out.json"});
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("| deepfm | f32 | 32 | "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("deepfm, f32: models are equal"), std::string::npos) << done.out;
  const Json row = Json::read_file(folder / "out.json").find("rows")->array()->at(0);
  for (const char* build : {"before", "now"}) EXPECT_GT(row.find("ms")->find(build)->array()->at(0).number(), 0);

  std::filesystem::create_directory(folder / "other");
  for (const char* program : {"bench", "data_generator"})
    std::filesystem::create_symlink(bin_dir() / program, folder / "other" / program);
  write_file(folder / "other/huge_ctr",
             cat("#!/bin/sh\n", (bin_dir() / "huge_ctr").string(), " \"$@\" || exit 1\n",
                 "for word; do case $word in *rerun_run) printf x >>${word%_run}/", "_dense_3.model; esac; done\n"));
  std::filesystem::permissions(folder / "other/huge_ctr", std::filesystem::perms::owner_all);
  const Outcome other = run((folder / "other").string(), {"--equal"});
  EXPECT_EQ(other.exit_code, 1) << other.err;
  EXPECT_NE(other.out.find("deepfm, f32: differ: _dense_3.model (rerun)"), std::string::npos) << other.out;

  const Outcome none = run((folder / "none").string(), {});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("none/bench"), std::string::npos) << none.err;
}

/// The PyTorch benchmark has its own embedding kernels. The kernels update tables as PyTorch's optimizers do.
TEST(Bench, PyTorchsTableKernelsAreRight) {
  const TemporaryFolder folder;
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  if (run_program("/usr/bin/env", {python, "-c", "import torch, triton"}, folder.path()).exit_code != 0)
    GTEST_SKIP() << "no torch or no triton for " << python << "; HCTR_PYTHON names a Python that has both";
  const Outcome done = run_program("/usr/bin/env", {python, (source_dir() / "tools/bench/table_kernels.py").string()},
                                   folder.path(), {{"TRITON_INTERPRET", "1"}});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("Adam, rows of 128: largest difference"), std::string::npos) << done.out;
}

TEST(Bench, HasAHelpText) {
  const Outcome none = run_program("bench", {}, std::filesystem::temp_directory_path());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(run_program("bench", {"--help"}, std::filesystem::temp_directory_path()).exit_code, 0);
}

}  // namespace
}  // namespace hctr::test
