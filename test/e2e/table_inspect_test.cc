#include <gtest/gtest.h>

#include "support/run_program.h"

namespace hctr::test {
namespace {

class TableInspect : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 2000, 500);
    ASSERT_EQ(run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder_.path())
                  .exit_code,
              0);
  }
  Outcome inspect(std::vector<std::string> arguments) {
    return run_program("table_inspect", arguments, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(TableInspect, ShowsATableAndHowOftenItsKeysOccur) {
  const Outcome outcome =
      inspect({"config.json", "out/1_sparse_60.model", "--count", "2000", "--top", "4", "--json", "table.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* piece : {"table 'deep_emb', a row for each slot and key, 3 slots, vectors of 5", "norm from",
                            "largest norms", "hottest keys of the first 2000"})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.out;
  const Json json = Json::read_file(folder_ / "table.json");
  const int64_t rows = *json.find("rows")->integer();
  EXPECT_EQ(rows, static_cast<int64_t>(std::filesystem::file_size(folder_ / "out/1_sparse_60.model") / (8 + 8 + 20)));
  EXPECT_EQ(*json.find("rows_met")->integer(), rows)
      << "60 batches of 128 go through the 2000 samples: every row was met there";
  const auto& hottest = *json.find("hottest")->array();
  ASSERT_EQ(hottest.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_GT(hottest[i].find("norm")->number(), 0);
    EXPECT_LE(*hottest[i].find("times")->integer(), *hottest[i == 0 ? 0 : i - 1].find("times")->integer());
  }
}

TEST_F(TableInspect, TheFilesNameOrAnOptionSaysWhichTable) {
  std::filesystem::copy_file(folder_ / "out/0_sparse_60.model", folder_ / "wide.bin");
  const Outcome asked = inspect({"config.json", "wide.bin"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_NE(asked.err.find("add --embedding: wide_emb or deep_emb"), std::string::npos) << asked.err;
  const Outcome told = inspect({"config.json", "wide.bin", "--embedding", "wide_emb"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.out.find("table 'wide_emb', a row for each key"), std::string::npos) << told.out;
  EXPECT_EQ(inspect({"config.json", "wide.bin", "--embedding", "wise_emb"}).exit_code, 2);
  const Outcome wrong = inspect({"config.json", "wide.bin", "--embedding", "deep_emb"});
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_NE(wrong.err.find("sparse model file 'wide.bin'"), std::string::npos) << wrong.err;
  EXPECT_EQ(inspect({"config.json", "none.model", "--embedding", "wide_emb"}).exit_code, 5);
}

TEST_F(TableInspect, ShowsWhatATableCountedInTraining) {
  // 16 batches of 125 are 2000 samples, so every sample occurs once.
  const std::string counting = with_change(
      with_change(small_config(), "\"embedding_vec_size\": 5,", "\"embedding_vec_size\": 5, \"count_keys\": true,"),
      "\"max_iter\": 60, \"gpu\": [0], \"batchsize\": 128", "\"max_iter\": 16, \"gpu\": [0], \"batchsize\": 125");
  const auto train = [&](const std::string& config, const std::string& out) {
    write_file(folder_ / (out + ".json"), with_change(config, "\"out/\"", "\"" + out + "/\""));
    const Outcome done = run_program(
        "huge_ctr", {"--train", out + ".json", "--run-dir", out + "_run", "--device", "cpu"}, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
  };
  const auto table = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {out + ".json", out + "/1_sparse_16.model", "--top", "5",
                                          "--json",      out + "_table.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = inspect(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("hottest keys in training"), std::string::npos) << outcome.out;
    return Json::read_file(folder_ / (out + "_table.json"));
  };
  train(counting, "one");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "one/0_sparse_16.model.marks")) << "the other table counts nothing";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "one_run/final_1_sparse_16.model.marks"));
  const Json counted = table("one", {"--count", "2000"}), noted = table("one", {});
  EXPECT_EQ(counted.find("hottest_in_training")->text(), counted.find("hottest")->text())
      << "training met what the data hold";
  EXPECT_EQ(noted.find("hottest")->text(), counted.find("hottest")->text());
  EXPECT_EQ(*noted.find("marks")->find("rows")->integer(), *noted.find("rows")->integer());

  train(with_change(counting, "\"gpu\": [0]", "\"gpu\": [0, 1]"), "two");
  EXPECT_EQ(read_file(folder_ / "two/1_sparse_16.model.marks"), read_file(folder_ / "one/1_sparse_16.model.marks"))
      << "ranks count together";

  train(with_change(counting, "\"seed\": 7",
                    R"("seed": 7, "sparse_model_file": ["one/0_sparse_16.model", "one/1_sparse_16.model"])"),
        "again");
  const Json again = table("again", {});
  EXPECT_EQ(*again.find("marks")->find("steps")->integer(), 32);
  EXPECT_EQ(*again.find("marks")->find("occurrences")->integer(),
            2 * *noted.find("marks")->find("occurrences")->integer());
  EXPECT_EQ(*(*again.find("hottest")->array())[0].find("times")->integer(),
            2 * *(*noted.find("hottest")->array())[0].find("times")->integer());
}

}  // namespace
}  // namespace hctr::test
