// preprocess --apply encodes the rows of another day with the ids and the scaling of the first day. Evaluation rejects
// data that were encoded with other ids.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class Apply : public ::testing::Test {
 protected:
  /// Rows whose label follows from the city and the age. The second day begins with cities that do not occur on the
  /// first day.
  static std::string rows(int day, int count) {
    std::string text = day == 1 ? "city,age,genres,click\n" : "click,genres,age,city\n";
    for (int i = 0; i < count; ++i) {
      const int city = (i * 7919 + day * 31) % (day == 1 ? 40 : 44), age = (i * 104729) % 50;
      const bool click = (city % 5 == 0) != (age > 30 && i % 7 != 0);
      const std::string genres = i % 3 == 0 ? "a|b" : i % 3 == 1 ? "c" : "";
      text += day == 1 ? cat("city", city, ",", age, ",", genres, ",", click, "\n")
                       : cat(click, ",", genres, ",", age, ",city", city, "\n");
    }
    return text;
  }
  Outcome preprocess(const std::string& input, const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--csv", input, "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("preprocess", arguments, folder_.path());
  }
  Apply() {
    write_file(folder_ / "day1.csv", rows(1, 4000));
    write_file(folder_ / "day2.csv", rows(2, 1000));
    const Outcome first = preprocess("day1.csv", "day1", roles_);
    EXPECT_EQ(first.exit_code, 0) << first.err;
  }
  Json described(const std::string& out) { return Json::read_file(folder_ / out / "preprocess.json"); }
  /// A config that trains on the output of preprocess.
  void write_config(const std::string& out, const std::string& eval) {
    Json data = *described(out).find("data");
    Json with_eval(Json::Object{});
    for (const auto& [name, value] : *data.object())
      if (name != "eval_source") with_eval.set(name, value);
    if (!eval.empty()) with_eval.set("eval_source", eval);
    const std::string text = R"({"solver": {"batchsize": 100, "max_iter": 200, "display": 0, "eval_interval": 100,
      "eval_metrics": ["AUC"], "seed": 5, "input_key_type": "I32", "replace_models": true, "snapshot_prefix": ")" +
                             out + R"(_model/"},
      "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02}},
      "layers": [)" + with_eval.text() +
                             R"(,
        {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "deep_data", "top": "table",
         "sparse_embedding_hparam": {"embedding_vec_size": 8, "combiner": "sum", "max_vocabulary_size_per_gpu": 1000}},
        {"type": "Reshape", "bottom": "table", "top": "flat", "leading_dim": 16},
        {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
        {"type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 16}},
        {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
        {"type": "InnerProduct", "bottom": "relu1", "top": "score", "fc_param": {"num_output": 1}},
        {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"}]})";
    write_file(folder_ / (out + ".json"), text);
  }
  Outcome train(const std::string& out) {
    return run_program("huge_ctr", {"--train", out + ".json", "--device", "cpu", "--run-dir", out + "_run"},
                       folder_.path());
  }
  double auc(const Outcome& done) {
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Json::parse(done.out, "the evaluation").find("metrics")->find("AUC")->number();
  }
  Outcome eval(const std::string& config, const std::string& run, const std::string& data) {
    return run_program("huge_ctr",
                       {"--eval", config + ".json", "--model", run, "--data", data, "--device", "cpu", "--log", "json"},
                       folder_.path());
  }

  const std::vector<std::string> roles_ = {"--label", "click",  "--dense",     "age",      "--categories", "city",
                                           "--lists", "genres", "--normalize", "standard", "--min-count",  "2"};
  TemporaryFolder folder_;
};

TEST_F(Apply, GivesTheSameRowsTheSameBytesAndUnknownValuesTheRareId) {
  ASSERT_EQ(preprocess("day1.csv", "again", {"--apply", "day1/preprocess.json"}).exit_code, 0);
  EXPECT_EQ(read_file(folder_ / "again/train.0.data"), read_file(folder_ / "day1/train.0.data"));
  EXPECT_EQ(read_file(folder_ / "again/vocabulary.bin"), read_file(folder_ / "day1/vocabulary.bin"));
  const Outcome second = preprocess("day2.csv", "day2", {"--apply", "day1/preprocess.json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(*described("day2").find("numbering")->string(), *described("day1").find("numbering")->string());
  EXPECT_EQ(described("day2").find("slot_size_array")->text(), described("day1").find("slot_size_array")->text());
  // Without --apply, preprocess assigns different ids to the second day.
  ASSERT_EQ(preprocess("day2.csv", "alone", roles_).exit_code, 0);
  EXPECT_NE(*described("alone").find("numbering")->string(), *described("day1").find("numbering")->string());
  EXPECT_NE(read_file(folder_ / "alone/train.0.data"), read_file(folder_ / "day2/train.0.data"));
}

TEST_F(Apply, EvaluatesAnotherDayAsOneCommonPreprocessingDoes) {
  // In every format, evaluation rows of the second day get the ids of the first day.
  write_file(folder_ / "day2_as_1.csv", [] {
    std::string text = "city,age,genres,click\n", other = rows(2, 1000);
    size_t at = other.find('\n') + 1;
    while (at < other.size()) {
      const size_t end = other.find('\n', at);
      const std::string row = other.substr(at, end - at);
      const size_t a = row.find(','), b = row.find(',', a + 1), c = row.find(',', b + 1);
      text += cat(row.substr(c + 1), ",", row.substr(b + 1, c - b - 1), ",", row.substr(a + 1, b - a - 1), ",",
                  row.substr(0, a), "\n");
      at = end + 1;
    }
    return text;
  }());
  std::vector<std::string> common = roles_;
  common.insert(common.end(), {"--eval-input", "day2_as_1.csv"});
  ASSERT_EQ(preprocess("day1.csv", "common", common).exit_code, 0);
  write_config("common", "common/val.txt");
  ASSERT_EQ(train("common").exit_code, 0);
  const double together = auc(eval("common", "common_run", "common/val.txt"));

  ASSERT_EQ(preprocess("day2.csv", "day2", {"--apply", "day1/preprocess.json"}).exit_code, 0);
  write_config("day1", "");
  ASSERT_EQ(train("day1").exit_code, 0);
  const double applied = auc(eval("day1", "day1_run", "day2/train.txt"));
  EXPECT_GT(applied, 0.7);
  EXPECT_NEAR(applied, together, 1e-9);
}

TEST_F(Apply, RefusesDataOfAnotherNumbering) {
  ASSERT_EQ(preprocess("day2.csv", "alone", roles_).exit_code, 0);
  write_config("day1", "");
  ASSERT_EQ(train("day1").exit_code, 0);
  for (const char* command : {"--eval", "--predict"}) {
    std::vector<std::string> arguments = {command,  "day1.json",       "--model",  "day1_run",
                                          "--data", "alone/train.txt", "--device", "cpu"};
    if (command == std::string("--predict")) arguments.insert(arguments.end(), {"--out", "scores.csv"});
    const Outcome refused = run_program("huge_ctr", arguments, folder_.path());
    EXPECT_EQ(refused.exit_code, 4) << command;
    EXPECT_NE(refused.err.find("has the numbering"), std::string::npos) << refused.err;
  }
  write_config("day1", "alone/train.txt");
  const Outcome evaluates = train("day1");
  EXPECT_EQ(evaluates.exit_code, 4);
  EXPECT_NE(evaluates.err.find("preprocess --apply"), std::string::npos) << evaluates.err;
  write_config("alone", "");
  const Outcome starts = run_program(
      "huge_ctr",
      {"--train", "alone.json", "--device", "cpu", "--set", "solver.dense_model_file=day1_model/_dense_200.model"},
      folder_.path());
  EXPECT_EQ(starts.exit_code, 4);
  EXPECT_NE(starts.err.find("has the numbering"), std::string::npos) << starts.err;
}

TEST_F(Apply, RefusesOptionsThatItDecidesAndDamagedFiles) {
  const Outcome decided = preprocess("day2.csv", "day2", {"--apply", "day1/preprocess.json", "--min-count", "3"});
  EXPECT_EQ(decided.exit_code, 2);
  EXPECT_NE(decided.err.find("--apply takes --min-count from 'day1/preprocess.json'; remove --min-count"),
            std::string::npos)
      << decided.err;
  std::string bytes = read_file(folder_ / "day1/vocabulary.bin");
  bytes[bytes.size() - 3] ^= 1;
  write_file(folder_ / "day1/vocabulary.bin", bytes);
  const Outcome damaged = preprocess("day2.csv", "day2", {"--apply", "day1/preprocess.json"});
  EXPECT_EQ(damaged.exit_code, 4);
  EXPECT_NE(damaged.err.find("checksum at its end"), std::string::npos) << damaged.err;
  write_file(folder_ / "day1/vocabulary.bin", bytes.substr(0, bytes.size() - 5));
  EXPECT_EQ(preprocess("day2.csv", "day2", {"--apply", "day1/preprocess.json"}).exit_code, 4);
  EXPECT_EQ(preprocess("day2.csv", "day2", {"--apply", "none.json"}).exit_code, 5);
}

}  // namespace
}  // namespace hctr::test
