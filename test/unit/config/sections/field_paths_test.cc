// Suggests the field that an unknown path most likely means, from the schema, even if the config omits the field.
#include "config/sections/field_paths.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

std::string meant(const std::string& path) {
  static const Json config = Json::parse(R"({"solver": {"batchsize": 8},
    "optimizer": {"type": "AdaGrad"},
    "layers": [{"type": "Data", "format": "Csv", "csv": {"slots": []}},
               {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "wide"},
               {"type": "InnerProduct", "bottom": "x", "top": ["fc1"], "fc_param": {"num_output": 4}},
               {"type": "Dropout", "bottom": "fc1", "top": "d"}, {"type": "Dropout", "bottom": "d", "top": "d"}]})",
                                         "");
  return nearest_field(config, path);
}

TEST(FieldPaths, OfTheOptimizerAreThoseOfItsType) {
  EXPECT_EQ(meant("optimizer.learning_rate"), "optimizer.adagrad_hparam.learning_rate");
  EXPECT_EQ(meant("optimizer.lr"), "optimizer.adagrad_hparam.learning_rate");
  EXPECT_EQ(meant("optimizer.adagrad_hparam.warmup_step"), "optimizer.adagrad_hparam.warmup_steps");
  EXPECT_EQ(meant("learning_rate"), "optimizer.adagrad_hparam.learning_rate");
}

TEST(FieldPaths, OfTheSolverNeedNotBeInTheConfig) {
  EXPECT_EQ(meant("solver.batch_size"), "solver.batchsize");
  EXPECT_EQ(meant("solver.epochs"), "solver.num_epochs");
  EXPECT_EQ(meant("solver.patience"), "solver.early_stopping.patience");
  EXPECT_EQ(meant("slover.eval_interval"), "solver.eval_interval");
  EXPECT_EQ(meant("solvr"), "solver");
}

TEST(FieldPaths, OfLayersNameTheLayer) {
  EXPECT_EQ(meant("data.eval_source"), "layers.Data.eval_source");
  EXPECT_EQ(meant("layers.Data.delimiter"), "layers.Data.csv.delimiter");
  EXPECT_EQ(meant("layers.wide.dim"), "layers.wide.sparse_embedding_hparam.embedding_vec_size");
  EXPECT_EQ(meant("layers.fc1.num_output"), "layers.fc1.fc_param.num_output");
  EXPECT_EQ(meant("layers.3.rte").substr(0, 9), "layers.3.") << "two layers have this name";
}

TEST(FieldPaths, AreNoneWhereNothingIsNear) {
  EXPECT_EQ(meant("solver.zzzzzzzzz"), "");
  EXPECT_EQ(meant("optimizer.adagrad_hparam.learning_rate"), "") << "is a field";
}

}  // namespace
}  // namespace hctr::test
