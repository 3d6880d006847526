// The optimizer of a whole model: states of dense weights, and the learning rate of tables.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/files.h"
#include "support/temporary_folder.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const std::string kLine = R"({"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 1}},
                             {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"})";

/// Returns the dense weights before and after a step with learning rate 0.1.
std::vector<std::vector<float>> weights_of_a_step(const OptimizerSection& optimizer) {
  const TemporaryFolder folder;
  Config config = config_of(kLine);
  config.optimizer = optimizer;
  TinyModel tiny(std::move(config));
  const auto weights = [&] {
    const std::string bytes = read_text(tiny.model.save((folder / "m").string(), 0)[0], "dense model");
    std::vector<float> out(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(out.data()));
    return out;
  };
  std::vector<std::vector<float>> before_and_after = {weights()};
  tiny.train();
  before_and_after.push_back(weights());
  return before_and_after;
}

TEST(ModelOptimizer, DenseStatesStartAsTheRuleSaysOnePerWeight) {
  OptimizerSection sgd, adagrad;
  sgd.type = ops::Optimizer::Kind::sgd;
  adagrad.type = ops::Optimizer::Kind::adagrad;
  adagrad.hyper.initial = 0.25;
  const auto plain = weights_of_a_step(sgd);
  for (const bool row_wise : {false, true}) {  // row_wise affects only tables; dense weights have a state per element
    adagrad.hyper.row_wise = row_wise;
    const auto adaptive = weights_of_a_step(adagrad);
    ASSERT_EQ(adaptive[0], plain[0]);
    for (size_t i = 0; i < plain[0].size(); ++i) {
      const float g = (plain[0][i] - plain[1][i]) / 0.1f;
      EXPECT_NEAR(adaptive[1][i], adaptive[0][i] - 0.1f * g / std::sqrt(0.25f + g * g), 1e-6f) << i;
    }
  }
}

/// Returns the warnings for a config with this top-level learning rate and an embedding with its own rate.
std::string warnings(const std::string& top_rate, const std::string& own_rate) {
  Problems problems;
  read_config(
      Json::parse(
          R"({"solver": {"batchsize": 8, "max_iter": 1}, "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": )" +
              top_rate + R"(}},
    "layers": [{"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
                "dense": {"top": "dense", "dense_dim": 0}, "sparse": [{"top": "keys", "slot_num": 1, "max_feature_num_per_sample": 1}]},
               {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
                "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": 0},
                "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": )" +
              own_rate + "}}}]}",
          "c.json"),
      problems);
  EXPECT_FALSE(problems.any_error()) << problems.errors()[0].message;
  std::string text;
  for (const Problems::Entry& entry : problems.warnings()) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

TEST(ModelOptimizer, ARateInProportionToZeroIsAWarning) {
  EXPECT_EQ(warnings("0.1", "0.5"), "");
  EXPECT_EQ(warnings("0", "0"), "");
  EXPECT_EQ(warnings("0", "0.5"),
            "/layers/1/optimizer: the table does not learn: its learning rate is scaled by the top-level rate, "
            "which is 0\n");
}

}  // namespace
}  // namespace hctr::test
