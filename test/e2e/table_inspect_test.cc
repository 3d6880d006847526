#include <gtest/gtest.h>

#include "support/program.h"

namespace hctr::test {
namespace {

class TableInspect : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 2000, 500);
    ASSERT_EQ(run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder_.path()).exit_code, 0);
  }
  Outcome inspect(std::vector<std::string> arguments) { return run_program("table_inspect", arguments, folder_.path()); }
  TemporaryFolder folder_;
};

TEST_F(TableInspect, ShowsATableAndHowOftenItsKeysOccur) {
  const Outcome outcome = inspect({"config.json", "out/1_sparse_60.model", "--count", "2000", "--top", "4", "--json", "table.json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* piece : {"table 'deep_emb', a row for each slot and key, 3 slots, vectors of 5", "norm from", "largest norms", "hottest keys of the first 2000"})
    EXPECT_NE(outcome.out.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.out;
  const Json json = Json::read_file(folder_ / "table.json");
  const int64_t rows = *json.find("rows")->integer();
  EXPECT_EQ(rows, static_cast<int64_t>(std::filesystem::file_size(folder_ / "out/1_sparse_60.model") / (8 + 8 + 20)));
  EXPECT_EQ(*json.find("rows_met")->integer(), rows) << "60 batches of 128 go through the 2000 samples: every row was met there";
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

}  // namespace
}  // namespace hctr::test
