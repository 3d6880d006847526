// Scoring with a model, and training that resumes from a model, use the encoding of the model's training data. If this
// is not possible, they report the differences.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

std::string rows(int count) {
  std::string text = "shop,city,price,bought\n";
  const char* const cities[] = {"Oslo", "Paris", "Rome"};
  for (int i = 0; i < count; ++i)
    text += cat("s", i % 11, ",", cities[i % 3], ",", i % 17, ",", (i % 11 < 5) != (i % 3 == 1) ? "yes" : "no", "\n");
  return text;
}

/// A config with the Data layer `data`.
std::string config_of(const std::string& data, const std::string& prefix = "m", const std::string& solver = "") {
  return cat(R"({"solver": {"max_iter": 40, "batchsize": 60, "snapshot_prefix": ")", prefix, R"(/", )", solver,
             R"("seed": 2},
    "optimizer": {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.1}},
    "layers": [{"type": "Data", )",
             data, R"(},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "e",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "e", "top": "flat", "leading_dim": 8},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})");
}

std::string layer(const std::string& slots) {
  return R"("format": "Csv", "source": "rows.csv", "eval_source": "rows.csv",
    "csv": {"labels": [{"column": "bought", "positive": "yes"}], "dense": [{"columns": ["price"], "transform": "log"}],
            "slots": [)" +
         slots + R"(]},
    "label": {"top": "label"}, "dense": {"top": "dense"}, "sparse": [{"top": "keys"}])";
}

TEST(ModelEncoding, IsThatOfTheModelUnlessTheCommandSaysOtherwise) {
  const TemporaryFolder folder;
  const std::string shop = R"({"columns": ["shop"]})",
                    city = R"({"columns": ["city"], "keys": "vocabulary", "vocabulary": "cities.txt"})";
  write_file(folder / "rows.csv", rows(600));
  write_file(folder / "cities.txt", "Oslo\nParis\nRome\n");
  write_file(folder / "config.json", config_of(layer(shop + ", " + city)));
  write_file(folder / "swapped.json", config_of(layer(city + ", " + shop)));
  write_file(folder / "source.json", config_of(R"("eval_source": "rows.csv")"));
  write_file(folder / "again.json",
             config_of(layer(city + ", " + shop), "m2", R"("dense_model_file": "m/_dense_40.model",
    "sparse_model_file": "m/0_sparse_40.model", )"));
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--device", "cpu"});
    return run_program("huge_ctr", words, folder.path());
  };
  const Outcome trained = run({"--train", "config.json", "--run-dir", "r"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome right = run({"--eval", "config.json", "--model", "r"});
  ASSERT_EQ(right.exit_code, 0) << right.err;

  const Outcome refused = run({"--eval", "swapped.json", "--model", "r"});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find(R"(/layers/0/csv/slots/0/column was "shop" and is "city")"), std::string::npos)
      << refused.err;
  EXPECT_NE(run({"--predict", "swapped.json", "--model", "r", "--out", "s.csv"}).exit_code, 0);
  EXPECT_NE(run({"--export", "npz", "swapped.json", "--model", "m/", "--out", "x"}).exit_code, 0);
  const Outcome as_model = run({"--eval", "swapped.json", "--model", "r", "--encoding", "model"});
  EXPECT_EQ(as_model.out, right.out) << as_model.err;
  const Outcome source = run({"--eval", "source.json", "--model", "r"});
  EXPECT_EQ(source.out, right.out) << source.err;
  EXPECT_NE(source.err.find("'source.json' omits csv, dense, format, label, sparse"), std::string::npos) << source.err;

  const Outcome again = run({"--train", "again.json", "--run-dir", "r2"});
  EXPECT_EQ(again.exit_code, 3) << again.err;
  EXPECT_NE(again.err.find("from which training starts: /layers/0/csv/slots/0/column"), std::string::npos) << again.err;

  EXPECT_NE(again.err.find("Set the fields to the model's values, or add --encoding config"), std::string::npos)
      << again.err;

  write_file(folder / "cities.txt", "Paris\nOslo\nRome\n");
  const Outcome changed = run({"--eval", "config.json", "--model", "r"});
  EXPECT_EQ(changed.exit_code, 3) << changed.err;
  EXPECT_NE(changed.err.find("/layers/0/csv/slots/1/vocabulary was 3 values, hash"), std::string::npos) << changed.err;
  const Outcome wanted = run({"--eval", "config.json", "--model", "r", "--encoding", "config"});
  EXPECT_EQ(wanted.exit_code, 0) << wanted.err;
  EXPECT_NE(wanted.err.find("note: the config's encoding differs"), std::string::npos) << wanted.err;
}

}  // namespace
}  // namespace hctr::test
