// The same rows in every format train the same model, bit for bit. The configs of docs/data.md run as printed in the
// page.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "support/devices.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::test {
namespace {

/// A small model that reads all outputs of the Data layer `data`.
Json model_around(const Json& data, int64_t batch = 64) {
  Json::Array layers = {data}, parts;
  for (const Json& input : *data.find("sparse")->array()) {
    const std::string top = *input.find("top")->string(), vectors = top + "_vectors", flat = top + "_flat";
    Json table(Json::Object{{"max_vocabulary_size_per_gpu", 1000}, {"embedding_vec_size", 4}, {"combiner", 0}});
    layers.push_back(Json::Object{{"type", "DistributedSlotSparseEmbeddingHash"},
                                  {"bottom", top},
                                  {"top", vectors},
                                  {"sparse_embedding_hparam", table}});
    layers.push_back(Json::Object{{"type", "Reshape"}, {"bottom", vectors}, {"top", flat}});
    parts.emplace_back(flat);
  }
  const Json* dense_dim = data.find("dense")->find("dense_dim");
  if (!dense_dim || *dense_dim->integer() > 0) parts.push_back(*data.find("dense")->find("top"));
  const auto add = [&](const char* type, Json bottom, const char* top, const char* key = "", Json value = {}) {
    Json layer(Json::Object{{"type", type}, {"bottom", std::move(bottom)}, {"top", top}});
    if (*key) layer.set(key, std::move(value));
    layers.push_back(std::move(layer));
  };
  add("Concat", parts, "all");
  add("InnerProduct", "all", "fc1", "fc_param", Json::Object{{"num_output", 8}});
  add("ReLU", "fc1", "relu1");
  add("InnerProduct", "relu1", "fc2", "fc_param", Json::Object{{"num_output", 1}});
  add("BinaryCrossEntropyLoss", Json::Array{"fc2", "label"}, "loss");
  Json config;
  config.set("solver", Json::Object{{"lr_policy", "fixed"},
                                    {"display", 1},
                                    {"max_iter", 20},
                                    {"gpu", Json::Array{0}},
                                    {"batchsize", batch},
                                    {"snapshot", 0},
                                    {"snapshot_prefix", "out/"},
                                    {"replace_models", true},
                                    {"eval_interval", 5},
                                    {"eval_metrics", Json::Array{"AUC", "AverageLoss"}},
                                    {"seed", 7}});
  Json adam(Json::Object{{"learning_rate", 0.01}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}});
  config.set("optimizer", Json::Object{{"type", "Adam"}, {"adam_hparam", adam}}).set("layers", layers);
  return config;
}

/// Trains, and returns every logged loss and metric, without times.
std::string numbers_of(const TemporaryFolder& folder, const Json& config, const std::string& device = "cpu") {
  write_file(folder / "config.json", config.text(1));
  const Outcome done =
      run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", device}, folder.path());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  std::istringstream lines(read_file(folder / "run" / "metrics.jsonl"));
  std::string numbers;
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::parse(line, "metrics.jsonl");
    for (const char* name : {"loss", "AUC", "AverageLoss"})
      if (const Json* value = event.find(name)) numbers += cat(name, " ", value->text(), "\n");
  }
  return numbers;
}

Json data_layer(const std::string& format, const std::string& train, const std::string& eval) {
  return Json::parse(
      R"({"type": "Data", "format": ")" + format + R"(", "source": ")" + train + R"(", "eval_source": ")" + eval + R"(",
    "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 2},
    "sparse": [{"top": "a", "slot_num": 2, "max_feature_num_per_sample": 2}, {"top": "b", "slot_num": 3, "nnz_per_slot": 1}]})",
      "layer");
}

/// A feature specification with two chunks, slots of different sizes, and a channel named like the first sparse input.
const char* const kFeatureSpec = R"(feature_spec:
  {y: {dtype: bool}, x0: {dtype: float32}, x1: {dtype: float32}, a0: {dtype: int8, cardinality: 40}, a1: {dtype: int16, cardinality: 41},
   b0: {dtype: int32, cardinality: 42}, b1: {dtype: int64, cardinality: 43}, b2: {dtype: uint8, cardinality: 44}}
source_spec:
  train:
    - {type: csv, features: [a0, b1, y], files: [train_0_0.csv, train_0_1.csv]}
    - {type: csv, features: [x0, b0, a1, x1, b2], files: [train_1.csv]}
  test:
    - {type: csv, features: [a0, b1, y], files: [eval_0_0.csv, eval_0_1.csv]}
    - {type: csv, features: [x0, b0, a1, x1, b2], files: [eval_1.csv]}
channel_spec: {label: [y], numerical: [x0, x1], a: [a0, a1], categorical: [b0, b1, b2]}
)";

TEST(Formats, TheSameRowsTrainTheSameModelBitForBit) {
  using data_test::Row;
  const TemporaryFolder folder;
  const bool parquet_too = why_no_parquet().empty();
  const DataSection section =
      data_test::section_of(1, 2, {data_test::input_of("a", 2, 1, 2), data_test::input_of("b", 3, 1, 3)});
  const auto write_set = [&](const std::string& name, int64_t count, uint64_t seed) {
    auto rows = data_test::random_rows(section, count, seed, 40, false);
    std::string raw, csv = "b2,b1,y,x0,a0,b0,x1,a1\n", some,
                     others;  // `some`, `others`: CSV text of the two chunks of a feature specification
    const auto put = [&](auto value) { raw.append(reinterpret_cast<const char*>(&value), sizeof value); };
    for (Row& row : rows) {
      row.label[0] = (row.slots[0][0] + row.slots[3][0]) % 3 == 0;
      row.dense[1] = 1.0f / (1 + row.dense[0]);
      for (const float number : {row.label[0], row.dense[0], row.dense[1]}) put(number);
      for (const auto& slot : row.slots) put(static_cast<int32_t>(slot[0]));
      char line[200];
      const auto key = [&](size_t slot) { return static_cast<long>(row.slots[slot][0]); };
      std::snprintf(line, sizeof line, "%ld,%ld,%g,%.9g,%ld,\"%ld\",%.9g,%ld\n", key(4), key(3),
                    static_cast<double>(row.label[0]), static_cast<double>(row.dense[0]), key(0), key(2),
                    static_cast<double>(row.dense[1]), key(1));
      csv += line;
      some += cat(key(0), ",", key(3), ",", row.label[0], "\n");
      std::snprintf(line, sizeof line, "%.9g,%ld,%ld,%.9g,%ld\n", static_cast<double>(row.dense[0]), key(2), key(1),
                    static_cast<double>(row.dense[1]), key(4));
      others += line;
    }
    data_test::write_rows(folder / (name + ".norm"), data_test::style_of(section, Check::sum, 4), rows);
    write_file_list(folder / (name + ".txt"), {folder / (name + ".norm")}, true);
    write_file(folder / (name + ".raw"), raw);
    write_file(folder / (name + ".csv"), csv);
    const size_t half = some.find('\n', some.size() / 2) + 1;
    write_file(folder / (name + "_0_0.csv"), some.substr(0, half));
    write_file(folder / (name + "_0_1.csv"), some.substr(half));
    write_file(folder / (name + "_1.csv"), others);
    if (!parquet_too) return;
    const auto float_column = [&](const char* column, auto get) {
      std::vector<float> values;
      for (const Row& row : rows) values.push_back(get(row));
      return data_test::numbers(column, ParquetType::f32, values);
    };
    std::vector<data_test::Column> columns = {float_column("y", [](const Row& row) { return row.label[0]; }),
                                              float_column("x0", [](const Row& row) { return row.dense[0]; }),
                                              float_column("x1", [](const Row& row) { return row.dense[1]; })};
    for (size_t s = 0; s < 5; ++s) {
      std::vector<int64_t> keys;
      for (const Row& row : rows) keys.push_back(row.slots[s][0]);
      columns.push_back(data_test::numbers(cat("C", s), ParquetType::i64, keys));
    }
    data_test::write_parquet(folder / name / "part.parquet", columns, 400);
    write_file(folder / name / "_file_list.txt", "1\n" + name + "/part.parquet\n");
    write_file(folder / name / "_metadata.json", cat(R"({"file_stats": [{"file_name": "part.parquet", "num_rows": )",
                                                     rows.size(), R"(}], "labels": [{"col_name": "y", "index": 0}],
      "conts": [{"col_name": "x0", "index": 1}, {"col_name": "x1", "index": 2}], "cats": [{"col_name": "C0", "index": 3}, {"col_name": "C1", "index": 4},
      {"col_name": "C2", "index": 5}, {"col_name": "C3", "index": 6}, {"col_name": "C4", "index": 7}]})"));
  };
  if (parquet_too)
    for (const char* name : {"train", "eval"}) std::filesystem::create_directory(folder / name);
  write_set("train", 1000, 1);
  write_set("eval", 300, 2);
  Json raw = data_layer("Raw", "train.raw", "eval.raw"), csv = data_layer("Csv", "train.csv", "eval.csv");
  raw.set("float_label_dense", true).set("num_samples", 1000).set("eval_num_samples", 300);
  csv.set("csv", Json::parse(R"({"labels": ["y"], "dense": [{"columns": ["x0", "x1"]}],
                                 "slots": [{"columns": ["a0", "a1", "b0", "b1", "b2"], "keys": "number"}]})",
                             "csv"));
  // With cardinalities in the feature specification, keys equal those of Raw data with slot_size_array.
  Json sized = raw, text = data_layer("FeatureSpec", "train", "test"), binary;
  sized.set("slot_size_array", Json::Array{40, 41, 42, 43, 44});
  write_file(folder / "spec.yaml", kFeatureSpec);
  text.set("feature_spec", "spec.yaml");
  binary = text;
  binary.set("feature_spec", "binary/feature_spec.yaml");
  ASSERT_EQ(run_program("feature_spec", {"transcode", "spec.yaml", "--out", "binary"}, folder.path()).exit_code, 0);
  Json parquet = data_layer("Parquet", "train/_file_list.txt", "eval/_file_list.txt");
  for (const bool shuffled : {false, true}) {
    Json norm = data_layer("Norm", "train.txt", "eval.txt");
    if (shuffled)
      for (Json* layer : {&norm, &raw, &csv, &sized, &text, &binary, &parquet}) layer->set("shuffle", 300);
    const std::string numbers = numbers_of(folder, model_around(norm));
    EXPECT_GE(std::count(numbers.begin(), numbers.end(), '\n'), 28);
    EXPECT_EQ(numbers_of(folder, model_around(raw)), numbers);
    EXPECT_EQ(numbers_of(folder, model_around(csv)), numbers);
    const std::string by_slot = numbers_of(folder, model_around(sized));
    EXPECT_NE(by_slot, numbers) << "slots that share no keys";
    EXPECT_EQ(numbers_of(folder, model_around(text)), by_slot);
    EXPECT_EQ(numbers_of(folder, model_around(binary)), by_slot);
    if (parquet_too) {
      EXPECT_EQ(numbers_of(folder, model_around(parquet)), numbers);
    }
  }
  // The size of a text set is estimated. The start line marks the size as an estimate.
  const auto start_line = [&](const Json& layer) {
    write_file(folder / "config.json", model_around(layer).text(1));
    const Outcome done = run_program("huge_ctr", {"--train", "config.json", "--device", "cpu"}, folder.path());
    const size_t begin = done.err.find("Training on "), end = done.err.find(" in the set)", begin);
    EXPECT_NE(end, std::string::npos) << done.err;
    return done.err.substr(begin, end - begin);
  };
  EXPECT_NE(start_line(csv).find("(about "), std::string::npos);
  EXPECT_EQ(start_line(raw).find("about"), std::string::npos);
  if (!parquet_too) GTEST_SKIP() << "Norm, Raw and Csv agree; " << why_no_parquet();
}

TEST(Formats, FeatureSpecificationsAreCheckedAndInspected) {
  const TemporaryFolder folder;
  write_file(folder / "spec.yaml", kFeatureSpec);
  Json data = data_layer("FeatureSpec", "train", "");
  data.set("feature_spec", "spec.yaml");
  write_file(folder / "config.json", model_around(data).text(1));
  write_file(folder / "train_0_0.csv", "1,2,1\n3,4,0\n");
  write_file(folder / "train_0_1.csv", "5,6,1\n");
  write_file(folder / "train_1.csv", "0.5,1,2,3,4\n1.5,5,6,7,8\n-1,9,10,11,44\n");
  for (const char* part : {"eval_0_0.csv", "eval_0_1.csv"}) write_file(folder / part, "1,2,1\n");
  write_file(folder / "eval_1.csv", "0.5,1,2,3,4\n0.5,1,2,3,4\n");
  const Outcome checked = run_program("huge_ctr", {"--check", "config.json"}, folder.path());
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.err.find("there is no file"), std::string::npos) << "mappings are no files";
  const Outcome looked = run_program("data_inspect", {"--config", "config.json", "--head", "2"}, folder.path());
  EXPECT_EQ(looked.exit_code, 4) << "an id too large, in one of the three rows";
  for (const char* part :
       {"train: 2 samples in 1 file", "FeatureSpec 'spec.yaml'", "label 1  dense 0.5 3  keys [1] [42] [82] [125] [170]",
        "train_1.csv' line 3: feature b2: 44 is not an id below its cardinality of 44"})
    EXPECT_NE(looked.out.find(part), std::string::npos) << part << "\n" << looked.out;
}

TEST(Formats, EvaluationBatchesThatStayOnTheDeviceGiveTheSameNumbers) {
  const TemporaryFolder folder;
  Json data = data_layer("Norm", "train.txt", "eval.txt");
  write_file(folder / "config.json", model_around(data).text(1));
  make_data(folder.path(), "config.json", 1000, 300);
  for (const Device device : devices()) {
    const std::string name = device.is_cuda() ? "cuda" : "cpu", numbers = numbers_of(folder, model_around(data), name);
    for (const Json& cached : {Json(true), Json(1), Json(3), Json(5), Json(1000)}) {
      Json with = data;
      with.set("cache_eval_data", cached);
      EXPECT_EQ(numbers_of(folder, model_around(with), name), numbers) << name << ", cached " << cached.text();
    }
  }
}

/// For each code block of a page that starts with ```<language>, returns the rest of the fence line, and the text.
std::vector<std::pair<std::string, std::string>> blocks_of(const std::string& page, const std::string& language) {
  std::vector<std::pair<std::string, std::string>> blocks;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (inside && line == "```")
      inside = false;
    else if (inside)
      blocks.back().second += line + "\n";
    else if (line == "```" + language || line.starts_with("```" + language + " ")) {
      inside = true;
      blocks.emplace_back(line.size() > 3 + language.size() ? line.substr(4 + language.size()) : "", "");
    }
  }
  return blocks;
}

TEST(Formats, TheConfigsOfTheManualTrainAsTheyStandThere) {
  const TemporaryFolder folder;
  const std::string page = read_file(hctr::test::source_dir() / "docs/data.md");
  for (const char* language : {"csv", "yaml"})
    for (const auto& [name, text] : blocks_of(page, language)) write_file(folder / name, text);
  std::string raw, criteo;
  const auto put = [&](auto value) { raw.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (int i = 0; i < 64; ++i) {
    for (const int number : {i % 2, i, 2 * i}) put(static_cast<float>(number));
    put(i % 10);
    put(i % 20);
    criteo += i % 3 == 0 ? "1" : "0";
    for (int k = 0; k < 13; ++k) criteo += cat("\t", (i * k) % 30);
    for (int k = 0; k < 26; ++k) criteo += cat("\t3e", (i * k) % 50 + 10);
    criteo += "\n";
  }
  for (const char* file : {"train.raw", "eval.raw"}) write_file(folder / file, raw);
  write_file(folder / "day_0.tsv", criteo);
  const std::string why = why_no_parquet();
  if (why.empty()) {
    using data_test::numbers;
    data_test::write_parquet(folder / "clicks.parquet",
                             {numbers<int64_t>("click", ParquetType::i64, {1, 0, 0, 1}),
                              numbers<double>("price", ParquetType::f64, {9.9, 0, 120, 1}, {1}),
                              data_test::texts("city", {"Oslo", "Washington, D.C.", "Paris", std::nullopt}),
                              data_test::lists<int32_t>("genres", ParquetType::i32, {{3, 4}, {}, {17}, {2}}),
                              numbers<int64_t>("user", ParquetType::i64, {17, 18, 17, 0}, {3})});
  }
  const auto configs = blocks_of(page, "json");
  EXPECT_EQ(configs.size(), 8u);
  for (const auto& [name, text] : configs) {
    SCOPED_TRACE(text);
    if (!why.empty() && text.find("Parquet") != text.npos) continue;
    EXPECT_NE(numbers_of(folder, model_around(Json::parse(text, "docs/data.md"), 2)).find("AUC"), std::string::npos);
  }
  if (!why.empty()) GTEST_SKIP() << "all but the Parquet config: " << why;
}

}  // namespace
}  // namespace hctr::test
