// Metrics of an evaluation equal values that the test computes from the data. The model has known weights and two
// losses; the samples belong to groups.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/device/device.h"
#include "metrics/metrics.h"
#include "support/run_program.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

struct Task {
  std::vector<float> predictions, labels;
  std::vector<std::optional<int64_t>> groups;
  double loss = 0;
};

class EvalMetrics : public testing::Test {
 protected:
  static constexpr int kSamples = 1000;  // seven batches of 128 and a partial batch

  void SetUp() override {
    const DataSection section =
        data_test::section_of(2, 2, {data_test::input_of("item", 2, 1, 2), data_test::input_of("user", 3, 2, 6)});
    std::vector<data_test::Row> rows;
    for (int i = 0; i < kSamples; ++i) {
      const auto bits = [&](int64_t stream) {
        return static_cast<int64_t>(mix64(static_cast<uint64_t>(i * 8 + stream)));
      };
      data_test::Row row;
      row.dense = {static_cast<float>(bits(0) & 31) / 8, static_cast<float>(bits(1) & 31) / 8 - 2};
      const double p = 1 / (1 + std::exp(-logit(0, row.dense))), q = 1 / (1 + std::exp(-logit(1, row.dense)));
      const auto drawn = [&](int64_t stream, double share) {
        return static_cast<double>(bits(stream) & 1023) < 1024 * share ? 1.0f : 0.0f;
      };
      row.label = {drawn(2, p), i % 5 == 0 ? -1.0f : drawn(3, q)};  // every fifth label of the second loss is missing
      row.slots = {{bits(4) & 3}, {7}, {}, {5}, {}};
      // the keys of the third slot of "user"; every seventh sample has no key in this slot
      if (i % 7 != 0) row.slots[4] = {bits(5) & 15, 99};
      rows.push_back(row);
      take(tasks_[0], p, row, 0);
      take(tasks_[1], q, row, 1);
    }
    const NormStyle style = data_test::style_of(section, Check::sum, 8);
    data_test::write_rows(folder_ / "data.bin", style, rows);
    write_file(folder_ / "list.txt", "1\n" + (folder_ / "data.bin").string() + "\n");
    const float weights[] = {0.75f,  0.25f, -0.5f,
                             -0.25f, 0.5f,  0.5f};  // W and b of the first layer, then W and b of the second layer
    write_file(folder_ / "start.model", std::string(reinterpret_cast<const char*>(weights), sizeof weights));
  }

  static double logit(int task, const std::vector<float>& x) {
    const auto a = static_cast<double>(x[0]), b = static_cast<double>(x[1]);
    return task == 0 ? 0.75 * a + 0.25 * b - 0.5 : -0.25 * a + 0.5 * b + 0.5;
  }

  static void take(Task& task, double p, const data_test::Row& row, size_t column) {
    const float y = row.label[column];
    if (y < -0.5f) return;
    task.predictions.push_back(static_cast<float>(p));
    task.labels.push_back(y);
    const auto& keys = row.slots[4];
    task.groups.push_back(keys.empty() ? std::nullopt : std::optional(keys[0]));
    task.loss -= std::log(y > 0.5f ? p : 1 - p) / kSamples;  // a missing label adds 0, but counts in the divisor
  }

  /// Returns the metrics of summary.json after an evaluation with the known weights.
  Json metrics(const std::string& words, const std::string& device, Json* summary = nullptr,
               const std::string& more = "") {
    const std::string loss = R"({"type": "MultiCrossEntropyLoss", "target_weight": [1], "loss_weight": )";
    write_file(
        folder_ / "config.json",
        R"({"solver": {"batchsize": 128, "max_iter": 3, "eval_interval": 1, "dense_model_file": "start.model", "snapshot_prefix": "out/", "replace_models": true,
               "eval_metrics": )" +
            words + more + R"(},
  "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0}},
  "layers": [
    {"type": "Data", "source": "list.txt", "eval_source": "list.txt", "label": {"top": "label", "label_dim": 2}, "dense": {"top": "dense", "dense_dim": 2},
     "sparse": [{"top": "item", "max_feature_num_per_sample": 2, "slot_num": 2, "max_nnz": 1},
                {"top": "user", "max_feature_num_per_sample": 6, "slot_num": 3, "max_nnz": 2}]},
    {"type": "Slice", "bottom": "label", "ranges": [[0, 1], [1, 2]], "top": ["clicked", "bought"]},
    {"type": "InnerProduct", "bottom": "dense", "top": "a", "fc_param": {"num_output": 1}},
    {"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 1}},)" +
            loss + R"(0.75, "bottom": ["a", "clicked"], "top": "click"},)" + loss +
            R"(2, "bottom": ["b", "bought"], "top": "buy"}]})");
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", device}, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const Json file = Json::parse(read_file(folder_ / "run" / "summary.json"), "summary.json");
    if (summary) *summary = file;
    return *file.find("metrics");
  }

  static std::set<std::string> names(const Json& metrics) {
    std::set<std::string> all;
    for (const auto& [name, value] : *metrics.object()) all.insert(name);
    return all;
  }

  TemporaryFolder folder_;
  Task tasks_[2];
};

const std::string kGroups = R"(, "group_by": {"input": "user", "slot": 2})";

TEST_F(EvalMetrics, AreTheirFormulasOnTheWholeSet) {
  std::string words;
  for (const MetricType& type : metric_types()) words += (words.empty() ? "[\"" : ", \"") + type.name + "\"";
  std::vector<std::string> devices = {"cpu"};
  if (find_gpus().count > 0) devices.push_back("cuda");
  for (const std::string& device : devices) {
    const Json measured = metrics(words + "]", device, nullptr, kGroups);
    EXPECT_EQ(measured.object()->size(),
              2 * metric_types().size() + 1);  // each metric for each loss, and AverageLoss for the sum of both losses
    for (const MetricType& type : metric_types()) {
      const auto expect = [&](const std::string& name, double expected) {
        const Json* value = measured.find(name);
        ASSERT_TRUE(value && value->is_number()) << name << " in " << measured.text();
        EXPECT_NEAR(value->number(), expected, 1e-6) << name << " on " << device;
      };
      if (!type.measure) {
        expect("AverageLoss", 0.75 * tasks_[0].loss + 2 * tasks_[1].loss);
        expect("AverageLoss/click", tasks_[0].loss);
        expect("AverageLoss/buy", tasks_[1].loss);
        continue;
      }
      for (int t : {0, 1}) {
        const auto measure = type.measure();
        measure->add({tasks_[t].predictions, tasks_[t].labels, tasks_[t].groups});
        expect(type.name + (t == 0 ? "" : "/buy"), measure->value());
      }
    }
    EXPECT_NE(measured.find("GroupedAUC")->number(), measured.find("AUC")->number());
  }
}

TEST_F(EvalMetrics, AreThoseAskedForAndNoOther) {
  EXPECT_EQ(names(metrics(R"(["HitRate"])", "cpu")), (std::set<std::string>{"HitRate", "HitRate/buy"}));
  EXPECT_EQ(names(metrics(R"(["LogLoss"])", "cpu")),
            (std::set<std::string>{"AverageLoss", "AverageLoss/click", "AverageLoss/buy"}));
  EXPECT_EQ(names(metrics("[]", "cpu")), (std::set<std::string>{}));
  const std::string lines = read_file(folder_ / "run" / "metrics.jsonl");
  EXPECT_EQ(lines.find("AUC"), std::string::npos) << lines;
}

TEST(GroupsOfTexts, AreValuesAndNotBuckets) {
  const TemporaryFolder folder;
  std::string rows = "y,x,user\n";
  for (int i = 0; i < 400; ++i)
    rows += cat(i * 7 % 5 < 2, ",", i * 37 % 101, ",u", i % 23 == 0 ? "" : cat(i % 40), "\n");
  write_file(folder / "rows.csv", rows);
  write_file(folder / "config.json", R"({"solver": {"batchsize": 50, "max_iter": 4, "eval_interval": 4,
      "eval_metrics": ["AUC", "GroupedAUC"], "group_by": {"input": "own"}},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.01}},
    "layers": [{"type": "Data", "format": "Csv", "source": "rows.csv", "eval_source": "rows.csv",
                "csv": {"labels": ["y"], "dense": [{"columns": ["x"]}],
                        "slots": [{"columns": ["user"], "buckets": 3}, {"columns": ["user"]}]},
                "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
                "sparse": [{"top": "shared", "slot_num": 1}, {"top": "own", "slot_num": 1}]},
               {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "shared", "top": "e",
                "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum"}},
               {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "own", "top": "f",
                "sparse_embedding_hparam": {"embedding_vec_size": 1, "combiner": "sum"}},
               {"type": "Reshape", "bottom": "e", "top": "e1", "leading_dim": 1},
               {"type": "Reshape", "bottom": "f", "top": "f1", "leading_dim": 1},
               {"type": "Concat", "bottom": ["dense", "e1", "f1"], "top": "all"},
               {"type": "InnerProduct", "bottom": "all", "top": "z", "fc_param": {"num_output": 1}},
               {"type": "BinaryCrossEntropyLoss", "bottom": ["z", "label"], "top": "loss"}]})");
  const auto grouped = [&](const std::string& input, const std::string& gpus) {
    const Outcome done = run_program(
        "huge_ctr",
        {"--train", "config.json", "--device", "cpu", "--run-dir", "run", "--set", "solver.group_by.input=" + input,
         "--set", "solver.gpu=" + gpus, "--set", "layers.Data.cache_eval_data=2", "--set", "solver.eval_interval=2"},
        folder.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.err.find("'rows.csv' is used for both training and evaluation"), std::string::npos) << done.err;
    const Json summary = Json::read_file(folder / "run/summary.json");
    return summary.find("metrics")->find("GroupedAUC")->number();
  };
  const double own = grouped("own", "[0]");
  EXPECT_EQ(grouped("shared", "[0]"), own);
  EXPECT_EQ(grouped("shared", "[0,1]"), grouped("own", "[0,1]"));
}

TEST_F(EvalMetrics, EndTrainingOnTheirBetterSide) {
  const auto stopped_at = [&](const std::string& word) {
    Json summary;
    metrics("[\"" + word + "\"]", "cpu", &summary, kGroups);
    const Json* at = summary.find("stopped_at");
    EXPECT_EQ(*summary.find("iterations")->integer(), at ? 1 : 3) << word;
    return at ? *at->string() : "";
  };
  for (const MetricType& type : metric_types()) {
    // no threshold, because neither higher nor lower is better
    if (type.better == MetricType::Better::near_one) continue;
    const bool higher = type.better == MetricType::Better::higher;
    const std::string low = type.name + ":0.1", high = type.name + (higher ? ":0.99" : ":2");
    EXPECT_EQ(stopped_at(low), higher ? low : "");
    EXPECT_EQ(stopped_at(high), higher ? "" : high);
  }
}

}  // namespace
}  // namespace hctr::test
