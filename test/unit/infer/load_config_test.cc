// Fields set by --set must exist. Unknown fields in the file are allowed.
#include "infer/load_config.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class LoadConfig : public testing::Test {
 protected:
  std::string refused(const std::vector<std::string>& changes, const std::string& more = "") {
    write_text(folder_ / "c.json", R"({"solver":{"batchsize":8},
      "optimizer":{"type":"Adam")" + more +
                                       R"(,"adam_hparam":{"learning_rate":0.01}},
      "layers":[{"name":"data","type":"Data"},
                {"name":"top1","type":"InnerProduct","bottom":"x","top":"top1","fc_param":{"num_output":4}}]})");
    return message_of(Kind::config,
                      [&] { load_config(folder_ / "c.json", false, Log::silent(), {.changes = changes}); });
  }
  TemporaryFolder folder_;
};

TEST_F(LoadConfig, AChangeOfAMisspelledFieldNamesTheNearest) {
  EXPECT_EQ(
      refused({"optimizer.adam_hparam.learningrate=0.2"}),
      "--set: no field \"learningrate\" in optimizer.adam_hparam; did you mean optimizer.adam_hparam.learning_rate?");
}

TEST_F(LoadConfig, AChangeOfAFieldThatLiesDeeperNamesItsPath) {
  EXPECT_EQ(refused({"layers.top1.num_output=16"}),
            "--set: no field \"num_output\" in layers.top1; did you mean layers.top1.fc_param.num_output?");
}

TEST_F(LoadConfig, AChangeOfAFieldThatTheConfigLeavesOutNamesItsPath) {
  EXPECT_EQ(refused({"solver.epochs=3"}), "--set: no field \"epochs\" in solver; did you mean solver.num_epochs?");
  EXPECT_EQ(refused({"optimizer.lr=0.1"}),
            "--set: no field \"lr\" in optimizer; did you mean optimizer.adam_hparam.learning_rate?");
  EXPECT_EQ(refused({"data.eval_source=x.csv"}),
            "--set: no field \"data\" in the config; did you mean layers.Data.eval_source?");
}

TEST_F(LoadConfig, AChangeOfAFieldWithoutEffectNamesThatWithOne) {
  EXPECT_EQ(refused({"optimizer.learning_rate=0.1"}),
            "--set: \"learning_rate\" is accepted and has no effect: set the rate in the *_hparam object; did you mean "
            "optimizer.adam_hparam.learning_rate?");
  EXPECT_EQ(refused({"solver.perf_logging=true"}).find("--set"), std::string::npos);
}

TEST_F(LoadConfig, AChangeOfAnUnknownFieldWithNothingNearIsRefused) {
  EXPECT_EQ(refused({"optimizer.zzzzzzzzz=1"}),
            "--set: no field \"zzzzzzzzz\" in optimizer; --explain config lists all fields");
}

TEST_F(LoadConfig, AnUnknownFieldOfTheFileMayBeChanged) {
  EXPECT_EQ(refused({"optimizer.zzzzzzzzz=1"}, R"(,"zzzzzzzzz":2)").find("--set"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
