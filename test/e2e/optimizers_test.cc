// A short training run with each optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "config/sections/optimizer_catalog.h"
#include "core/device/device.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class Optimizers : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 20000, 5000, {"--vocabulary", "30", "--interactions", "0"});
  }

  /// Returns small_config() with this top-level optimizer: `type`, its object and the update type.
  static std::string config(const std::string& type, const std::string& object, const std::string& update) {
    const std::string all = small_config();
    const size_t begin = all.find("\"optimizer\""), end = all.find("  \"layers\"");
    return all.substr(0, begin) + R"("optimizer": {"type": ")" + type + R"(", "update_type": ")" + update + "\", " +
           object + "},\n" + all.substr(end);
  }

  /// Trains, and expects a lower loss than a constant prediction of the positive rate, which has an AverageLoss of
  /// 0.548.
  void learns(const std::string& text, const std::string& run, const std::string& device) {
    SCOPED_TRACE(run);
    write_file(folder_ / (run + ".json"), text);
    const Outcome done =
        run_program("huge_ctr", {"--train", run + ".json", "--run-dir", run, "--device", device}, folder_.path());
    ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
    std::vector<double> losses, aucs;
    std::istringstream lines(read_file(folder_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line, "metrics.jsonl");
      if (const Json* loss = entry.find("AverageLoss")) losses.push_back(loss->number());
      if (const Json* auc = entry.find("AUC")) aucs.push_back(auc->number());
    }
    ASSERT_EQ(losses.size(), 2u) << done.out;
    EXPECT_LT(losses[1], losses[0]);
    EXPECT_LT(losses[1], 0.525);
    EXPECT_GT(aucs.back(), 0.66);
  }

  /// Returns the bytes of a run's tables.
  std::string tables(const std::string& run) {
    std::string all;
    for (const char* file : {"final_0_sparse_60.model", "final_1_sparse_60.model"})
      all += read_file(folder_ / run / file);
    EXPECT_GT(all.size(), 1000u) << run;
    return all;
  }

  static std::vector<std::string> devices() {
    std::vector<std::string> names = {"cpu"};
    if (find_gpus().count > 0) names.push_back("cuda");
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(Optimizers, EachLearnsWithLocalAndGlobalUpdates) {
  struct Case {
    std::string name, type, object;
    bool zero_is_noop;  // a zero gradient changes nothing, so both update types produce the same model
  };
  const std::vector<Case> cases = {
      {"adam", "Adam", R"("adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7})",
       false},
      {"adamw", "AdamW",
       R"("adamw_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7, "weight_decay": 0.1})",
       false},
      {"sgd", "SGD", R"("sgd_hparam": {"learning_rate": 0.5})", true},
      {"momentum", "MomentumSGD", R"("momentum_sgd_hparam": {"learning_rate": 0.1, "momentum_factor": 0.9})", false},
      {"momentum-0", "MomentumSGD", R"("momentum_sgd_hparam": {"learning_rate": 0.5, "momentum_factor": 0.0})", true},
      {"nesterov", "Nesterov", R"("nesterov_hparam": {"learning_rate": 0.1, "momentum_factor": 0.9})", false},
      {"nesterov-0", "Nesterov", R"("nesterov_hparam": {"learning_rate": 0.5, "momentum_factor": 0.0})", true},
      {"adagrad", "AdaGrad", R"("adagrad_hparam": {"learning_rate": 0.05, "initial_accu_value": 0.001})", true},
      {"row-wise", "AdaGrad",
       R"("adagrad_hparam": {"learning_rate": 0.05, "initial_accu_value": 0.001, "row_wise": true})", true},
      {"rmsprop", "RMSProp", R"("rmsprop_hparam": {"learning_rate": 0.005, "warmup_steps": 10})", false},
      {"ftrl", "Ftrl", R"("ftrl_hparam": {"learning_rate": 0.1, "beta": 0.1, "lambda1": 1e-5, "lambda2": 1e-5})",
       true}};
  for (const OptimizerType& type : optimizer_catalog())
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const Case& one) { return one.type == type.name; }))
        << "no case for " << type.name;
  for (const std::string& device : devices())
    for (const Case& each : cases) {
      const std::string local = device + "-" + each.name + "-local", global = device + "-" + each.name + "-global";
      learns(config(each.type, each.object, "Local"), local, device);
      learns(config(each.type, each.object, "Global"), global, device);
      if (HasFatalFailure()) return;
      EXPECT_EQ(tables(local) == tables(global), each.zero_is_noop) << each.name;
    }
}

TEST_F(Optimizers, EachEmbeddingMayHaveOneOfItsOwn) {
  std::string text = small_config();
  text = with_change(text, R"("embedding_vec_size": 1, "combiner": 0})",
                     R"("embedding_vec_size": 1, "combiner": 0},
     "optimizer": {"type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.1, "beta": 0.1, "lambda1": 1e-5}})");
  text = with_change(text, R"("embedding_vec_size": 5, "combiner": 1})",
                     R"("embedding_vec_size": 5, "combiner": 1},
     "optimizer": {"type": "AdaGrad", "update_type": "Global", "adagrad_hparam": {"learning_rate": 0.05, "row_wise": true}})");
  for (const std::string& device : devices()) learns(text, "mixed-" + device, device);
}

}  // namespace
}  // namespace hctr::test
