#include "infer/saved_model.h"

#include <gtest/gtest.h>

#include "config/sections/config.h"
#include "core/base/expect.h"
#include "formats/model/model_manifest.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

/// A config with one table. `of_table`: further members of the embedding.
Config config_of_one_table(const std::string& optimizer, const std::string& of_table = "") {
  Problems problems;
  Config config = read_config(Json::parse(R"({
    "solver": {"max_iter": 1, "batchsize": 4}, "optimizer": )" +
                                              optimizer +
                                              R"(,
    "layers": [
      {"type": "Data", "source": "train.txt", "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": 1}, "sparse": [{"top": "keys", "slot_num": 1, "nnz_per_slot": 1}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors", )" +
                                              of_table +
                                              R"(
       "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
      {"type": "Reshape", "bottom": "vectors", "top": "flat", "leading_dim": 4},
      {"type": "InnerProduct", "bottom": "flat", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})",
                                          "config"),
                              problems);
  problems.throw_if_any("config");
  return config;
}

TEST(SavedModel, WithoutTheFileOfATableNamesIt) {
  const TemporaryFolder folder;
  const std::string prefix = (folder / "m").string();
  FileSet set;
  AtomicFile& to = set.add(prefix + "_model_5.json");
  for (const char* name : {"_dense_5.model", "0_sparse_5.model"}) set.add(prefix + name).write("x");
  write_model_manifest(set, to, {.run = "a", .iteration = 5, .tables = {{"vectors", 4, false}}, .prefix = prefix});
  set.commit();
  fs::remove(prefix + "0_sparse_5.model");
  const Config config = config_of_one_table(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 0.1}})");
  EXPECT_EQ(message_of(Kind::io, [&] { find_saved_model(prefix, config, {}, Log::silent()); }),
            cat("the model '", prefix, "_dense_5.model' lacks '", prefix,
                "0_sparse_5.model', of its table 'vectors': the file is missing"));
}

TEST(SavedModel, IsUsedWithoutTheOptimizerStatesOfTraining) {
  Config config = config_of_one_table(R"({"type": "Adam", "adam_hparam": {"learning_rate": 0.1}})",
                                      R"("optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.1}},)");
  const auto states = [&] {
    const EmbeddingSection& section = config.embeddings[0].section;
    const TableSpec table = section.table_spec(
        {.optimizer = config.optimizer,
         .placement = Placement::without_plan(section.placement_rule(), section.identity_by_slot(), 1, 1),
         .batch = 4,
         .slot_keys = {1},
         .samples = 4,
         .key_capacity = 4});
    return std::pair(config.optimizer.rule(config.optimizer.hyper.learning_rate).states(), table.optimizer.states());
  };
  EXPECT_EQ(states(), std::pair(2, 1));
  use_saved_model({.name = "a model", .dense = "_dense_1.model", .tables = {"0_sparse_1.model"}}, config);
  EXPECT_EQ(states(), std::pair(0, 0));
  EXPECT_EQ(config.solver.dense_model_file, "_dense_1.model");
}

}  // namespace
}  // namespace hctr::test
