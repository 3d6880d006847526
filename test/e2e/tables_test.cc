// Training with tables of every kind: direct keys, two-byte storage, and both values of "identity".
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class Tables : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 8000, 1000, {"--vocabulary", "30", "--interactions", "0"});
  }
  /// Returns the small config with the fields `wide` in the wide table and `deep` in the deep table.
  static std::string config(const std::string& wide, const std::string& deep) {
    const std::string text =
        with_change(small_config(), "\"embedding_vec_size\": 1,", "\"embedding_vec_size\": 1, " + wide);
    return with_change(text, "\"embedding_vec_size\": 5,", "\"embedding_vec_size\": 5, " + deep);
  }
  Outcome train(const std::string& config, const std::string& run) {
    write_file(folder_ / (run + ".json"), with_change(config, "\"out/\"", "\"" + run + "_out/\""));
    return run_program("huge_ctr", {"--train", run + ".json", "--run-dir", run, "--device", "cpu"}, folder_.path());
  }
  double loss_of(const std::string& config, const std::string& run) {
    const Outcome done = train(config, run);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code ? NAN : Json::read_file(folder_ / run / "summary.json").find("final_loss")->number();
  }
  std::string table(const std::string& run, const std::string& number) {
    return read_file(folder_ / (run + "_out") / (number + "_sparse_60.model"));
  }

  TemporaryFolder folder_;
};

const std::string kWideSizes = R"("slot_size_array": [30], )", kDeepSizes = R"("slot_size_array": [30, 30, 30], )",
                  kDirect = R"("index": "direct", )";

TEST_F(Tables, WithoutAnIndexTheModelIsTheSame) {
  const double direct = loss_of(config(kWideSizes + kDirect, kDeepSizes + kDirect), "direct"),
               hash = loss_of(config(kWideSizes, kDeepSizes), "hash");
  EXPECT_EQ(direct, hash);
  EXPECT_EQ(table("direct", "0").size(), 30u * (8 + 4));
  EXPECT_EQ(table("direct", "1").size(), 90u * (8 + 8 + 20));
  EXPECT_EQ(table("direct", "0"), table("hash", "0")) << "every key occurs in these data";
  EXPECT_EQ(table("direct", "1"), table("hash", "1"));
}

TEST_F(Tables, AKeyOutsideTheStatedRangesEndsTrainingAndIsNamed) {
  const Outcome done = train(config(kWideSizes + kDirect, kDirect + R"("slot_size_array": [30, 30, 29], )"), "small");
  EXPECT_EQ(done.exit_code, 4);
  for (const char* piece : {"table 'deep_emb' on rank 0: ", "key 119 of slot 2 is outside the 29 keys from 90 to 118",
                            "\"index\": \"hash\"", "saved as small_out/_dense_"})
    EXPECT_NE(done.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << done.err;
}

TEST_F(Tables, RowsOfTwoBytesTrainNearlyAsWell) {
  const double plain = loss_of(small_config(), "plain");
  for (const std::string storage : {"bf16", "fp16"}) {
    const std::string fields = "\"storage\": \"" + storage + "\", ";
    EXPECT_NEAR(loss_of(config(fields, fields), storage), plain, 0.005) << storage;
    EXPECT_EQ(table(storage, "1").size(), table("plain", "1").size()) << "files hold fp32";
  }
  const std::string both = R"("storage": "bf16", "state_storage": "bf16", )";
  EXPECT_NEAR(loss_of(config(both, both), "states"), plain, 0.01);
}

TEST_F(Tables, TheOtherIdentityChangesWhatFilesHoldAndTheyLoad) {
  const std::string other = config(R"("identity": "slot_and_key", )", R"("identity": "key", )");
  const double loss = loss_of(other, "other");
  EXPECT_GT(loss, 0);
  EXPECT_EQ(table("other", "0").size(), 30u * (8 + 8 + 4)) << "rows that belong to slot and key name the slot";
  EXPECT_EQ(table("other", "1").size(), 90u * (8 + 20));
  const Outcome inspected = run_program("table_inspect", {"other.json", "other_out/1_sparse_60.model"}, folder_.path());
  EXPECT_NE(inspected.out.find("table 'deep_emb', a row for each key, 3 slots"), std::string::npos)
      << inspected.out << inspected.err;
  const std::string load =
      R"("sparse_model_file": ["other_out/0_sparse_60.model", "other_out/1_sparse_60.model"], "seed": 7)";
  EXPECT_EQ(train(with_change(other, "\"seed\": 7", load), "again").exit_code, 0);
  const Outcome wrong = train(with_change(small_config(), "\"seed\": 7", load), "wrong");
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_NE(wrong.err.find("\"identity\": \"slot_and_key\""), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace hctr::test
