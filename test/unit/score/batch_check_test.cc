// Reports labels that a loss does not accept, and keys that are too wide, with their sample.
#include "score/batch_check.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/message_of.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

/// A batch of 8 samples with these labels, or with one key per sample in a slot.
class Batch {
 public:
  explicit Batch(const BatchShape& shape) : layout_(shape), memory_(layout_.bytes), view(layout_, memory_.data()) {
    view.state->samples = view.state->valid_samples = static_cast<int32_t>(shape.samples);
    view.state->first_sample = 80;
  }

 private:
  BatchLayout layout_;
  std::vector<std::byte> memory_;

 public:
  BatchView view;
};

std::string label_message(const std::string& layers, int label_dim, size_t at, float value) {
  const Config config =
      config_of(R"({"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 2}}, )" + layers,
                label_dim);
  Problems problems;
  const Graph graph = wire(config, 8, problems);
  Batch batch({.samples = 8, .label_dim = label_dim, .dense_dim = 3, .tables = {}});
  const BatchCheck check(config, graph, "list.txt");
  check.expect(batch.view, 50);
  batch.view.label[at] = value;
  try {
    check.expect(batch.view, 50);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(BatchCheck, NamesTheSampleAndTheLabelThatItsLossDoesNotTake) {
  const std::string multi =
      R"({"type": "MultiCrossEntropyLoss", "bottom": ["b", "label"], "top": "m", "target_weight": [1, 1]})";
  EXPECT_EQ(label_message(multi, 2, 5, 1.5f),
            "'list.txt': sample 33 has 1.5 as label 1, but 'm' (MultiCrossEntropyLoss) takes 0 to 1, or less than -0.5 "
            "for a missing label");
  EXPECT_NE(label_message(multi, 2, 5, -0.25f), "");
  EXPECT_NE(label_message(multi, 2, 5, std::numeric_limits<float>::quiet_NaN()), "");
  EXPECT_EQ(label_message(multi, 2, 5, -1), "");
  const std::string two = R"({"type": "CrossEntropyLoss", "bottom": ["b", "label"], "top": "c"})";
  EXPECT_EQ(label_message(two, 1, 0, 7), "");
  EXPECT_NE(label_message(two, 1, 0, std::numeric_limits<float>::infinity()), "");
}

TEST(BatchCheck, KeysBeyondTheStatedWidthAreNamedWhereTheFormatReadsAny) {
  Problems problems;
  const Config config = read_config(Json::parse(
                                        R"({"solver": {"batchsize": 8, "max_iter": 1, "input_key_type": "I32"},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "rows.csv", "format": "Csv",
      "csv": {"labels": ["y"], "slots": [{"columns": ["a", "b"], "keys": "number"}]},
      "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
      "sparse": [{"top": "s", "slot_num": 2, "max_nnz": 1, "max_feature_num_per_sample": 2}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "s", "top": "e",
       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 10, "embedding_vec_size": 1, "combiner": 0}},
      {"type": "Reshape", "bottom": "e", "top": "r", "leading_dim": 2},
      {"type": "InnerProduct", "bottom": "r", "top": "f", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["f", "label"], "top": "loss"}]})",
                                        "test.json"),
                                    problems);
  problems.throw_if_any("test.json");
  const Graph graph = wire(config, 8, problems);
  Batch batch({.samples = 8, .label_dim = 1, .dense_dim = 0, .tables = {{.slots = 2, .key_capacity = 16}}});
  batch.view.place(std::vector<KeyForm>{{.count = 16, .ones = true, .rows = 8}});
  for (int64_t i = 0; i < 16; ++i) batch.view.tables[0].set_key(i, 4294967295);
  const BatchCheck check(config, graph, "rows.csv");
  check.expect(batch.view, 0);
  batch.view.tables[0].set_key(11, 4294967296);
  EXPECT_EQ(message_of(Kind::data, [&] { check.expect(batch.view, 0); }),
            "'rows.csv': sample 84 has key 4294967296 in slot 1 of 's', but \"input_key_type\" \"I32\" allows only "
            "0 to 4294967295: set \"input_key_type\" to \"I64\"");
}

}  // namespace
}  // namespace hctr::test
