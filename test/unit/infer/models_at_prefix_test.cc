// Models of other runs at a prefix are never overwritten, and never count as the newest model.
#include "infer/models_at_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/expect.h"
#include "formats/model/model_manifest.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class ModelsAtPrefix : public testing::Test {
 protected:
  void save(int64_t iteration, const std::string& run, const std::string& folder, bool delta = false) const {
    const std::string at = delta ? cat(prefix(), "_delta_", iteration, "/") : prefix();
    FileSet set;
    AtomicFile& to = set.add(cat(at, "_model_", iteration, ".json"));
    set.add(cat(at, "_dense_", iteration, ".model")).write("weights");
    ModelManifest manifest{
        .run = run, .run_folder = folder.empty() ? "" : run_folder(folder), .iteration = iteration, .prefix = at};
    if (!folder.empty()) fs::create_directories(run_folder(folder));
    if (delta) manifest.delta.emplace();
    write_model_manifest(set, to, std::move(manifest));
    set.commit();
  }
  std::string run_folder(const std::string& name) const { return (folder_ / name).string(); }
  std::string prefix() const { return (folder_ / "out" / "m").string(); }
  std::string refused(SolverSection solver, const std::string& run = "") {
    solver.snapshot_prefix = prefix();
    try {
      said_.clear();
      expect_no_other_models(solver, {.id = run}, Log([this](Level, std::string_view line) { said_ += line; }));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::config);
      return error.what();
    }
  }
  bool contains(const std::string& text, const std::string& piece) const { return text.find(piece) != text.npos; }

  TemporaryFolder folder_;
  std::string said_;  // warnings logged by refused()
};

SolverSection steps(int64_t max_iter) {
  SolverSection solver;
  solver.max_iter = max_iter;
  return solver;
}

TEST_F(ModelsAtPrefix, OfAnotherRunAreNotReplaced) {
  save(60, "a1", "runs/first");
  const std::string said = refused(steps(60));
  EXPECT_TRUE(contains(said, cat("m_dense_60.model' is the only copy of a model of run '", run_folder("runs/first"),
                                 "', which this run would overwrite with its own model of iteration 60")))
      << said;
  EXPECT_TRUE(contains(said, "--set solver.snapshot_prefix=null")) << said;
  EXPECT_EQ(refused(steps(60), "a1"), "") << "it goes on with that run";
  EXPECT_NE(refused(steps(60), "b2"), "");
  EXPECT_EQ(other_run_at(prefix(), 60, {.id = "b2"}), cat("run '", run_folder("runs/first"), "'"));
  EXPECT_EQ(other_run_at(prefix(), 60, {.id = "a1"}), "");
  EXPECT_EQ(other_run_at(prefix(), 61, {.id = "b2"}), "");
}

TEST_F(ModelsAtPrefix, AreReplacedWhereTheirRunFolderKeepsThem) {
  save(60, "a1", "first");
  const fs::path run = run_folder("first");
  for (const char* name : {"m_dense_60.model", "m_model_60.json"})
    fs::create_hard_link(folder_ / "out" / name, run / cat("final_", name));
  EXPECT_EQ(refused(steps(60)), "");
  EXPECT_TRUE(contains(said_, "whose folder keeps a copy: this run will overwrite the model")) << said_;
  EXPECT_EQ(other_run_at(prefix(), 60, {.id = "b2"}), "");
  save(60, "b2", "first");
  EXPECT_NE(refused(steps(60)), "") << "the folder has a model of an earlier run";
  EXPECT_EQ(other_run_at(prefix(), 60, {.id = "c3", .folder = run}), "") << "a run there replaces earlier ones";
  fs::remove_all(run);
  EXPECT_EQ(refused(steps(60)), "");
  EXPECT_TRUE(contains(said_, "whose folder is gone: this run will overwrite the model")) << said_;
}

TEST_F(ModelsAtPrefix, MatterAtIterationsThatTheRunSaves) {
  save(60, "a1", "runs/first");
  EXPECT_EQ(refused(steps(50)), "");
  EXPECT_EQ(refused(steps(100)), "");
  const auto with = [](int64_t SolverSection::*field, int64_t value, int64_t max_iter = 100) {
    SolverSection solver = steps(max_iter);
    solver.*field = value;
    return solver;
  };
  EXPECT_NE(refused(with(&SolverSection::snapshot, 20)), "");
  EXPECT_EQ(refused(with(&SolverSection::snapshot, 40)), "");
  EXPECT_EQ(refused(with(&SolverSection::snapshot, 20, 50)), "");
  SolverSection stops = with(&SolverSection::eval_interval, 30);
  EXPECT_EQ(refused(stops), "");
  stops.early_stopping.given = true;
  EXPECT_NE(refused(stops), "");
  SolverSection epochs;
  epochs.num_epochs = 1;
  EXPECT_NE(refused(epochs), "") << "nobody knows how long it is";
  epochs.final_snapshot = false;
  EXPECT_EQ(refused(epochs), "");
}

TEST_F(ModelsAtPrefix, MayBeDeltas) {
  save(30, "a1", "runs/first", true);
  SolverSection solver = steps(100);
  EXPECT_EQ(refused(solver), "");
  solver.snapshot_delta = 10;
  EXPECT_TRUE(
      contains(refused(solver), cat("m_delta_30' is the only copy of a model of run '", run_folder("runs/first"), "'")))
      << refused(solver);
  EXPECT_EQ(refused(solver, "a1"), "");
}

TEST_F(ModelsAtPrefix, WithoutAManifestAreOfAnUnknownRun) {
  write_text(prefix() + "_dense_7.model", "weights");
  EXPECT_TRUE(contains(refused(steps(7)), "is the only copy of a model of an unknown run")) << refused(steps(7));
  EXPECT_EQ(newest_of_one_run(prefix()), 7);
}

TEST_F(ModelsAtPrefix, TheNewestOfSeveralRunsIsNotGuessed) {
  save(100, "a1", "runs/first");
  save(300, "a1", "runs/first");
  EXPECT_EQ(newest_of_one_run(prefix()), 300);
  save(50, "b2", "runs/second");
  save(20, "c3", "");
  EXPECT_EQ(message_of(Kind::io, [&] { newest_of_one_run(prefix()); }),
            cat("the models at '", prefix(),
                "' are of 3 runs, so the prefix is ambiguous: iterations of run c3: "
                "20; of run '",
                run_folder("runs/second"), "': 50; of run '", run_folder("runs/first"),
                "': 100, 300. Name the run folder, or ", prefix(), "@300 for the model of that iteration"));
}

TEST_F(ModelsAtPrefix, AreOfARunWhereTheirManifestSaysSo) {
  save(60, "a1", "runs/first");
  const fs::path dense = prefix() + "_dense_60.model", manifest = prefix() + "_model_60.json";
  EXPECT_TRUE(is_model_of_run({dense, manifest}, "a1", 60));
  EXPECT_FALSE(is_model_of_run({dense}, "b2", 60));
  EXPECT_FALSE(is_model_of_run({dense}, "a1", 61));
  EXPECT_FALSE(is_model_of_run({dense, folder_ / "other"}, "a1", 60));
  EXPECT_FALSE(is_model_of_run({dense, prefix() + "_dense_60.model/../../other"}, "a1", 60));
  EXPECT_FALSE(is_model_of_run({folder_ / "other"}, "a1", 60));
  EXPECT_FALSE(is_model_of_run({}, "a1", 60));
}

TEST_F(ModelsAtPrefix, AreRemovedWithTheirNamesInTheRunFolderAndNothingElseIs) {
  save(60, "a1", "first");
  save(80, "a1", "first");
  const fs::path run = run_folder("first");
  for (const char* name : {"m_dense_60.model", "m_model_60.json", "m_dense_80.model"})
    fs::create_hard_link(folder_ / "out" / name, run / cat("final_", name));
  write_text(folder_ / "out/m_notes_60.txt", "mine");
  EXPECT_FALSE(remove_model_of_run(prefix(), 60, {"b2", run})) << "of another run";
  EXPECT_TRUE(remove_model_of_run(prefix(), 60, {"a1", run}));
  EXPECT_FALSE(remove_model_of_run(prefix(), 60, {"a1", run})) << "it is gone";
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    if (entry.is_regular_file()) left.push_back(entry.path().filename().string());
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"final_m_dense_80.model", "m_dense_80.model", "m_model_80.json",
                                            "m_notes_60.txt"}));
}

TEST_F(ModelsAtPrefix, KeepThemselvesWhereOnlyTheirNamesInTheRunFolderAreRemoved) {
  save(60, "a1", "first");
  const fs::path run = run_folder("first");
  fs::create_hard_link(prefix() + "_dense_60.model", run / "final_m_dense_60.model");
  EXPECT_TRUE(remove_model_of_run(prefix(), 60, {"a1", run}, true));
  EXPECT_FALSE(fs::exists(run / "final_m_dense_60.model"));
  EXPECT_TRUE(is_model_of_run({prefix() + "_dense_60.model"}, "a1", 60));
}

TEST(SnapshotPrefix, IsInTheRunFolderWhereNoneIsGiven) {
  SolverSection solver;
  EXPECT_EQ(snapshot_prefix_of(solver, "runs/a"), "runs/a/models/");
  solver.snapshot_prefix = "out/";
  EXPECT_EQ(snapshot_prefix_of(solver, "runs/a"), "out/");
}

}  // namespace
}  // namespace hctr::test
