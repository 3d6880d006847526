// Plans and placements on several ranks: for every placement the model equals the model of a single rank.
#include "ranks_fixture.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

/// A config with "deep_emb" rows of 8 elements, which can be split in two, and a plan with all kinds of placement.
/// "wide_emb" is on the last rank. In "deep_emb", two slots are split into pieces on different ranks, and one slot is
/// not split. Each piece is either sharded by key or placed on one rank.
class PlannedRanks : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    tables_[1].dim = 8;
    config_ = with_change(with_change(sgd(config_), "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 8"),
                          "\"leading_dim\": 15", "\"leading_dim\": 24");
  }
  std::string planned(const std::string& config, int ranks, const std::string& file = "mixed.json") {
    const int last = ranks - 1;
    write_file(folder_ / file,
               cat(R"({"schema": 1, "ranks": )", ranks, R"(, "tables": [{"name": "wide_emb", "pieces": 1, "owners": [)",
                   last, R"(]}, {"name": "deep_emb", "pieces": 2, "owners": [0, )", last, R"(, "all", 0, )", last, ", ",
                   last, "]}]}"));
    return with_change(config, "\"seed\": 7", "\"seed\": 7, \"placement_file\": \"" + file + "\"");
  }
};

TEST_F(PlannedRanks, AMixtureOfPlacementsTrainsTheModelOfOneRank) {
  for (const char* combiner : {"\"sum\"", "\"mean\"", "\"none\""}) {
    const std::string eight = "\"embedding_vec_size\": 8, \"combiner\": ";
    std::string config = with_change(config_, eight + "1", eight + combiner);
    if (combiner == std::string("\"none\"")) config = with_change(config, "\"leading_dim\": 24", "\"leading_dim\": 48");
    const Result one = train(config, {"[0]"}, "one");
    for (size_t r = 0; r < 3; ++r) {
      if (kSanitized && same_code(kThreads[r])) continue;
      SCOPED_TRACE(combiner + std::string(" on ") + kThreads[r].gpu);
      expect_same(one, train(planned(config, static_cast<int>(r) + 2), kThreads[r]), 1e-6);
    }
  }
}

TEST_F(PlannedRanks, WhatTheProgramPlansTrainsTheModelOfOneRankAndCanBeGivenBack) {
  const Result one = train(config_, {"[0]"}, "one");
  EXPECT_FALSE(fs::exists(folder_ / "one-run" / "plan.json"));
  const std::string config = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"placement\": \"auto\"");
  const Outcome outcome = start(config, kThreads[1], "auto");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Plan of embedding rows (all-to-all "), std::string::npos) << outcome.err;
  const Result planned_run = result("auto");
  expect_same(one, planned_run, 1e-6);
  const Json plan = Json::read_file(folder_ / "auto-run" / "plan.json");
  EXPECT_EQ(*plan.find("schema")->integer(), 1);
  EXPECT_EQ(plan.find("tables")->array()->size(), 2u);
  fs::copy_file(folder_ / "auto-run" / "plan.json", folder_ / "given.json");
  const Result again = train(with_change(config, "\"seed\": 7", "\"seed\": 7, \"placement_file\": \"given.json\""),
                             kThreads[1], "again");
  EXPECT_EQ(again.losses, planned_run.losses);
  for (size_t e = 0; e < 2; ++e) EXPECT_EQ(again.rows[e], planned_run.rows[e]);
}

TEST_F(PlannedRanks, AModelGoesOnUnderAnotherPlan) {
  train(planned(config_, 3), kThreads[1], "first");
  const std::string next =
      with_change(config_, "\"seed\": 7", R"("seed": 7, "dense_model_file": "first/_dense_20.model",
    "sparse_model_file": ["first/0_sparse_20.model", "first/1_sparse_20.model"])");
  const Result one = train(next, {"[0]"}, "one");
  expect_same(one, train(next, kThreads[0]), 1e-6);
  expect_same(one, train(planned(next, 4), kThreads[2]), 1e-6);
}

TEST_F(RanksTest, WholeTablesOnEveryRankMayHaveALimitAndKeysThatSlotsShare) {
  // The sizes are totals over all ranks. With data_parallel placement, each rank has the same table as a single rank.
  const std::string sizes =
      R"("grow": false, "index": "direct", "identity": "key", "slot_size_array": [300, 300, 300], "embedding_vec_size": 5)";
  const std::string wide = with_change(config_, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 1",
                                       R"("slot_size_array": [300], "embedding_vec_size": 1)");
  const std::string alone =
      with_change(wide, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5", sizes);
  const std::string deep = "\"bottom\": \"deep_data\", \"top\": \"deep_emb\",",
                    everywhere = with_change(alone, deep, deep + "\"placement\": \"data_parallel\",");
  tables_[1].by_slot = false;
  for (const bool adam : {false, true}) {
    if (kSanitized && !adam) continue;  // sanitizers need one case per code path
    const Result one = train(adam ? alone : sgd(alone), {"[0]"}, "one");
    EXPECT_EQ(one.rows[1].size(), 900u);
    for (const Ranks& ranks : {kThreads[0], kThreads[1], kThreads[2], kProcesses[0]}) {
      if ((ranks.processes > 1 && !why_no_mpi().empty()) || (kSanitized && same_code(ranks))) continue;
      SCOPED_TRACE((adam ? "Adam on " : "SGD on ") + ranks.gpu);
      expect_same(one, train(adam ? everywhere : sgd(everywhere), ranks), adam ? 1e-5 : 1e-6);
    }
  }
}

TEST_F(PlannedRanks, APlanThatDoesNotFitIsRefused) {
  const Outcome outcome = start(planned(config_, 3), kThreads[0], "unfit");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("the plan 'mixed.json' is for 3 ranks, but this run is on 2"), std::string::npos)
      << outcome.err;
  write_file(folder_ / "checked.json", with_change(planned(config_, 3), "\"gpu\": [0]", "\"gpu\": [0, 1, 2]"));
  const Outcome check = run_program("huge_ctr", {"--check", "checked.json"}, folder_.path());
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_NE(check.out.find("Plan of embedding rows of 'mixed.json'"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("columns of "), std::string::npos) << check.out;
}

}  // namespace
}  // namespace hctr::test
