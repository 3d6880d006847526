// huge_ctr --export: the files contain the model, and the exported graph computes the scores of --predict.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "formats/parquet/parquet_file.h"
#include "support/onnx_reader.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// Tables with identity "key" and "slot_and_key", with one and several keys per slot, string and integer keys, and
/// layers of all kinds.
std::string exported_config() {
  return R"({
  "solver": {"display": 0, "max_iter": 60, "batchsize": 100, "gpu": [0], "seed": 3, "snapshot": 60,
             "replace_models": true, "snapshot_prefix": "out/", "eval_metrics": ["AUC"], "checkpoint": {"every": 60}},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "eval.csv",
     "csv": {"labels": ["click"], "dense": [{"columns": ["price"]}], "hash_seed": 5,
             "trim": true, "missing": ["NA"],
             "slots": [{"columns": ["city"], "default": "none"}, {"columns": ["user", "item"], "buckets": 1000, "key_space": "ids"},
                       {"columns": ["tags"], "keys": "number", "separator": "|"}]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "one", "slot_num": 1, "nnz_per_slot": 1}, {"top": "two", "slot_num": 2, "nnz_per_slot": 1},
                {"top": "bag", "slot_num": 1, "nnz_per_slot": 4}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "one", "top": "by_key",
     "sparse_embedding_hparam": {"embedding_vec_size": 2, "combiner": "sum"}},
    {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "two", "top": "by_slot",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "bag", "top": ["pooled", "tags"],
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "mean"}},
    {"type": "Reshape", "bottom": "by_key", "top": "flat1", "leading_dim": 2},
    {"type": "Reshape", "bottom": "by_slot", "top": "flat2", "leading_dim": 8},
    {"type": "Reshape", "bottom": "pooled", "top": "flat3", "leading_dim": 4},
    {"type": "FmOrder2", "bottom": "by_slot", "top": "fm", "out_dim": 4},
    {"type": "Concat", "bottom": ["flat1", "flat2", "flat3", "tags", "dense", "fm"], "top": "all"},
    {"type": "MultiCross", "bottom": "all", "top": "cross", "mc_param": {"num_layers": 2}},
    {"type": "InnerProduct", "bottom": "cross", "top": "fc", "fc_param": {"num_output": 6}},
    {"type": "BatchNorm", "bottom": "fc", "top": "bn", "bn_param": {"factor": 0.9, "eps": 1e-5}},
    {"type": "ReLU", "bottom": "bn", "top": "relu"},
    {"type": "Dropout", "bottom": "relu", "top": "score", "rate": 0.5},
    {"type": "InnerProduct", "bottom": "score", "top": "out", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["out", "label"], "top": "loss"}
  ]
})";
}

/// `keys`: the number of distinct users. Evaluation rows also have users that do not occur in training.
std::string exported_rows(int count, int seed, int keys) {
  std::string text = "click,price,city,user,item,tags\n";
  const char* cities[] = {"Oslo", " Paris", "", "NA", "São Paulo"};
  for (int r = 0; r < count; ++r) {
    const int mixed = (r * 7919 + seed * 104729) % 10007;
    text += std::to_string(mixed % 3 == 0) + ",0." + std::to_string(mixed % 97) + "," + cities[mixed % 5] + ",u" +
            std::to_string(mixed % keys) + ",i" + std::to_string(mixed % 11) + ",";
    for (int t = 0; t < mixed % 5; ++t) text += (t ? "|" : "") + std::to_string((mixed + t * t) % (keys + 5));
    text += "\n";
  }
  return text;
}

class Export : public testing::Test {
 protected:
  /// All tests share one run.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "config.json", exported_config());
    write_file(*folder_ / "train.csv", exported_rows(1000, 1, 123));
    write_file(*folder_ / "eval.csv", exported_rows(250, 2, 151));
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder_->path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome run(std::vector<std::string> words) {
    words.insert(words.begin(), "--export");
    return run_program("huge_ctr", words, folder_->path());
  }
  static void expect_exports(const std::vector<std::string>& words) {
    const Outcome done = run(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
  }
  static void expect_fails(const std::vector<std::string>& words, int exit_code, const std::vector<std::string>& says) {
    const Outcome done = run(words);
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    for (const std::string& part : says)
      EXPECT_NE(done.err.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << done.err;
  }
  static std::string file(const std::string& name) { return read_file(*folder_ / name); }

  /// Scores the exported rows with the exported graph, and compares with the exported scores.
  static OnnxArrays expect_parity(const std::string& folder, size_t rows) {
    const OnnxFile graph = read_onnx(*folder_ / folder / "model.onnx");
    const OnnxArrays all = read_npz(*folder_ / folder / "rows.npz");
    OnnxArrays inputs = all;
    for (const OnnxFile::Value& output : graph.outputs) inputs.erase(output.name);
    EXPECT_EQ(graph.inputs.size(), inputs.size());
    for (const OnnxFile::Value& input : graph.inputs) {
      EXPECT_TRUE(inputs.contains(input.name)) << input.name;
      EXPECT_EQ(input.dims.size(), inputs[input.name].dims.size()) << input.name;
    }
    const OnnxArrays computed = evaluate(graph, inputs);
    for (const OnnxFile::Value& output : graph.outputs) {
      const OnnxArray &score = computed.at(output.name), &expected = all.at(output.name);
      EXPECT_EQ(score.dims, (std::vector<int64_t>{static_cast<int64_t>(rows), 1})) << output.name;
      EXPECT_EQ(score.dims, expected.dims) << output.name;
      double largest = 0;
      for (size_t i = 0; i < std::min(score.reals.size(), expected.reals.size()); ++i)
        largest = std::max(largest, std::abs(score.reals[i] - expected.reals[i]));
      EXPECT_LT(largest, 1e-5) << output.name;
    }
    return all;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Export::folder_ = nullptr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST_F(Export, TheGraphGivesTheScoresOfPredict) {
  expect_exports({"onnx", "run", "--out", "graph", "--rows", "1000"});
  const OnnxArrays rows = expect_parity("graph", 250);  // 250: all evaluation rows
  const Outcome predicted = run_program(
      "huge_ctr", {"--predict", "config.json", "--model", "run", "--out", "-", "--device", "cpu"}, folder_->path());
  const std::vector<std::string> lines = lines_of(predicted.out);
  ASSERT_EQ(lines.size(), 251u) << predicted.err;
  for (size_t i = 0; i < 250; ++i)
    EXPECT_EQ(std::strtof(lines[i + 1].substr(lines[i + 1].rfind('\t') + 1).c_str(), nullptr),
              static_cast<float>(rows.at("score").reals[i]))
        << i;
  const OnnxFile graph = read_onnx(*folder_ / "graph/model.onnx");
  EXPECT_EQ(graph.opset, 13);
  EXPECT_EQ(graph.metadata.at("iteration"), "60");
  EXPECT_EQ(graph.initializers.at("fc/weights").dims, (std::vector<int64_t>{20, 6}));
}

TEST_F(Export, LargeTablesLieInAFileOfTheirOwn) {
  expect_exports({"onnx", "run", "--out", "outside", "--rows", "20", "--inline-tables", "0"});
  expect_parity("outside", 20);
  const OnnxFile graph = read_onnx(*folder_ / "outside/model.onnx");
  EXPECT_EQ(graph.external.at("pooled/vectors") % 4096, 0);
  // Runtimes derive shapes from constants, so constants stay inside the graph file.
  for (const auto& [name, offset] : graph.external) EXPECT_EQ(name.find("constant"), std::string::npos) << name;
}

TEST_F(Export, AModelOfHalfPrecisionIsExportedInFull) {
  write_file(*folder_ / "mixed.json",
             with_change(exported_config(), "\"seed\": 3", "\"seed\": 3, \"mixed_precision\": true"));
  expect_exports({"onnx", "mixed.json", "--model", "run", "--out", "mixed", "--rows", "100"});
  expect_parity("mixed", 100);
}

/// A model with two losses and a sequence. The sequence is not pooled, but truncated to its last keys, and masked by
/// its length.
std::string sequence_config() {
  return R"({
  "solver": {"display": 0, "max_iter": 20, "batchsize": 100, "batchsize_eval": 64, "gpu": [0], "seed": 3,
             "replace_models": true, "snapshot_prefix": "sequence/"},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "eval.csv",
     "csv": {"labels": ["click", "price"],
             "slots": [{"columns": ["tags"], "keys": "number", "separator": "|"}, {"columns": ["user"]}]},
     "label": {"top": "label", "label_dim": 2}, "dense": {"top": "dense", "dense_dim": 0},
     "sparse": [{"top": "bag", "slot_num": 2, "nnz_per_slot": [4, 1], "keep_last": 3}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "bag", "top": ["places", "lengths"],
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "none"}},
    {"type": "Slice", "bottom": "label", "top": ["label_a", "label_b"], "ranges": [[0, 1], [1, 2]]},
    {"type": "Slice", "bottom": "places", "top": ["history", "user"], "ranges": [[0, 3], [3, 4]]},
    {"type": "Slice", "bottom": "lengths", "top": ["length", "one"], "ranges": [[0, 1], [1, 2]]},
    {"type": "SequenceMask", "bottom": ["one", "length"], "top": "mask",
     "max_sequence_len_from": 1, "max_sequence_len_to": 3},
    {"type": "MultiHeadAttention", "bottom": ["user", "history", "history", "mask"], "top": "attended"},
    {"type": "Reshape", "bottom": "attended", "top": "row", "leading_dim": 4},
    {"type": "InnerProduct", "bottom": "row", "top": "logit_a", "fc_param": {"num_output": 1}},
    {"type": "InnerProduct", "bottom": "row", "top": "logit_b", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit_a", "label_a"], "top": "a"},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit_b", "label_b"], "top": "b"}
  ]
})";
}

TEST_F(Export, ASequenceModelWithTwoLossesGivesBothScores) {
  write_file(*folder_ / "sequence.json", sequence_config());
  const Outcome trained = run_program(
      "huge_ctr", {"--train", "sequence.json", "--run-dir", "sequence_run", "--device", "cpu"}, folder_->path());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  expect_exports({"onnx", "sequence_run", "--out", "sequences", "--rows", "250"});
  const OnnxArrays rows = expect_parity("sequences", 250);
  EXPECT_TRUE(rows.contains("score_a") && rows.contains("score_b"));
  EXPECT_EQ(rows.at("bag").dims, (std::vector<int64_t>{250, 2, 3}));
}

TEST_F(Export, ArraysAreTheBytesOfTheModelFiles) {
  expect_exports({"npz", "run", "--out", "arrays"});
  std::string dense;
  const OnnxArrays arrays = read_npz(*folder_ / "arrays/dense.npz");
  const Json about = Json::parse(file("arrays/model.json"), "model.json");
  for (const Json& weight : *about.find("weights")->array())
    for (const double value : arrays.at(*weight.find("name")->string()).reals) {
      const auto narrow = static_cast<float>(value);
      dense.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    }
  EXPECT_EQ(dense, file("out/_dense_60.model"));
  EXPECT_TRUE(arrays.contains("bn/mean") && arrays.contains("bn/var"));
  const OnnxArrays table = read_npz(*folder_ / "arrays/tables/by_slot.npz");
  std::string rows;  // key, slot and vector of a row
  const int64_t row_count = table.at("keys").dims[0];
  ASSERT_EQ(table.at("vectors").dims, (std::vector<int64_t>{row_count, 4}));
  for (size_t r = 0; r < static_cast<size_t>(row_count); ++r) {
    rows.append(reinterpret_cast<const char*>(&table.at("keys").integers[r]), 8);
    rows.append(reinterpret_cast<const char*>(&table.at("slots").integers[r]), 8);
    for (size_t k = 0; k < 4; ++k) {
      const auto narrow = static_cast<float>(table.at("vectors").reals[4 * r + k]);
      rows.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    }
  }
  EXPECT_EQ(rows, file("out/1_sparse_60.model"));
  EXPECT_FALSE(read_npz(*folder_ / "arrays/tables/by_key.npz").contains("slots"));
}

TEST_F(Export, WhateverNamesTheModelGivesTheSameFiles) {
  int number = 0;
  expect_exports({"safetensors", "run", "--out", "from0"});
  for (const std::vector<std::string>& model : std::vector<std::vector<std::string>>{
           {"out/"}, {"out/@60"}, {"ckpt"}, {"--model", "ckpt/iteration_000060"}, {"config.json", "--model", "out"}}) {
    SCOPED_TRACE(model.back());
    const std::string to = "from" + std::to_string(++number);
    std::vector<std::string> words = {"npz"};
    words.insert(words.end(), model.begin(), model.end());
    words.insert(words.end(), {"--out", to});
    expect_exports(words);
    for (const char* name : {"/dense.npz", "/tables/by_key.npz", "/tables/by_slot.npz", "/tables/pooled.npz"})
      EXPECT_EQ(file(to + name), file("from1" + std::string(name))) << name;
  }
  for (const char* name : {"dense", "tables/by_key", "tables/by_slot", "tables/pooled"})
    EXPECT_GT(fs::file_size(*folder_ / ("from0/" + std::string(name) + ".safetensors")), 100u);
}

TEST_F(Export, ErrorsSayWhatWouldWork) {
  expect_fails({"onnx", "nothing", "--out", "x"}, 5, {"there is no model 'nothing'", "nothing/summary.json"});
  expect_fails({"onyx", "run", "--out", "x"}, 2, {"did you mean \"onnx\"", "safetensors"});
  expect_fails({"npz", "run"}, 2, {"--export needs --out"});
  expect_fails({"npz", "--out", "x"}, 2, {"--export needs a saved model"});
  expect_fails({"npz", "config.json", "--out", "x"}, 2, {"--model PREFIX"});
  expect_fails({"npz", "run", "--out", "x", "--rows", "5"}, 2, {"--rows requires --export onnx"});
  expect_fails({"npz", "run", "--out", "run"}, 2, {"'run': the folder is not empty"});
  expect_fails({"npz", "run", "--out", "config.json"}, 2, {"is a file"});
  fs::create_directories(*folder_ / "bare");
  for (const auto& entry : fs::directory_iterator(*folder_ / "out"))
    if (entry.path().filename().string().find("_model_") == std::string::npos)
      fs::copy(entry.path(), *folder_ / "bare" / entry.path().filename());
  expect_fails({"npz", "bare/", "--out", "x"}, 2, {"does not contain its config", "also name the config file"});
  write_file(*folder_ / "dice.json", with_change(exported_config(), R"("type": "ReLU", "bottom": "bn", "top": "relu")",
                                                 R"("type": "PReLU_Dice", "bottom": "bn", "top": "relu",
                            "prelu_dice_param": {"alpha": 0.1, "epsilon": 1e-8})"));
  expect_fails({"onnx", "dice.json", "--model", "out", "--out", "x"}, 3,
               {"layer 'relu' (PReLU_Dice, /layers/12) cannot be exported to ONNX", "use PReLU"});
  EXPECT_FALSE(fs::exists(*folder_ / "x"));
}

TEST_F(Export, AFullDiskLeavesNothing) {
  // With a file size limit of one kilobyte, writes fail as on a full disk.
  for (const char* format : {"onnx", "npz", "safetensors"}) {
    const Outcome done = run_program("/bin/bash",
                                     {"-c", "trap '' XFSZ; ulimit -f 1; exec " + (bin_dir() / "huge_ctr").string() +
                                                " --export " + format + " run --out full"},
                                     folder_->path());
    EXPECT_EQ(done.exit_code, 5) << done.err;
    EXPECT_NE(done.err.find("cannot write 'full/"), std::string::npos) << done.err;
    EXPECT_FALSE(fs::exists(*folder_ / "full")) << format;
  }
}

/// Compares the official reader of each format with tools/python/hctr_model.py.
constexpr const char* kLibraries = R"(
import csv, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from hctr_model import NO_KEY, keys_of_slots, load

model = load("run")
dense = np.load("py_npz/dense.npz")
assert set(dense.files) == set(model.dense) | set(model.state), dense.files
for name, array in model.dense.items():
    assert dense[name].dtype == np.float32 and np.array_equal(dense[name], array), name
for name, table in model.tables.items():
    read = np.load(f"py_npz/tables/{name}.npz")
    assert np.array_equal(read["keys"], table.keys) and np.array_equal(read["vectors"], table.vectors), name
    assert ("slots" in read.files) == (table.slots is not None)
    assert table.slots is None or np.array_equal(read["slots"], table.slots)

# The keys of texts are those that the reader has made of them.
rows, keys = np.load("py_onnx/rows.npz"), keys_of_slots("py_onnx/model.json")
for row, cells in enumerate(csv.DictReader(open("eval.csv"))):
    assert rows["one"][row, 0] == keys[0](cells["city"]), cells
    assert list(rows["two"][row]) == [keys[1](cells["user"]), keys[2](cells["item"])], cells
    tags = [keys[3](tag) for tag in cells["tags"].split("|")] if cells["tags"] else []
    assert list(rows["bag"][row, 0]) == tags + [NO_KEY] * (4 - len(tags)), cells
print("numpy")

try:
    from safetensors.numpy import load_file
    for name, array in model.dense.items():
        assert np.array_equal(load_file("py_safetensors/dense.safetensors")[name], array), name
    print("safetensors")
except ImportError:
    pass
try:
    import pyarrow.parquet
    if not os.path.exists("py_parquet"):
        raise ImportError("huge_ctr was built without Parquet")
    table = pyarrow.parquet.read_table("py_parquet/tables/by_slot.parquet").to_pydict()
    expected = model.tables["by_slot"]
    assert table["key"] == list(expected.keys) and table["slot"] == list(expected.slots)
    assert np.array_equal(np.array(table["vector"], np.float32), expected.vectors)
    weights = pyarrow.parquet.read_table("py_parquet/dense.parquet").to_pydict()
    for name, shape, values in zip(weights["name"], weights["shape"], weights["values"]):
        assert np.array_equal(np.array(values, np.float32).reshape(shape), dense[name]), name
    print("pyarrow")
except ImportError:
    pass
try:
    import onnxruntime
    print(subprocess.run([sys.executable, sys.argv[1] + "/check_onnx.py", "py_onnx"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout)
    print("onnxruntime")
except ImportError:
    pass
)";

TEST_F(Export, LibrariesReadWhatIsWritten) {
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  if (run_program("/usr/bin/env", {python, "-c", "import numpy"}, folder_->path()).exit_code != 0)
    GTEST_SKIP() << "no NumPy for " << python << "; HCTR_PYTHON names a Python that has it, and perhaps onnxruntime, "
                 << "safetensors and pyarrow";
  expect_exports({"onnx", "run", "--out", "py_onnx", "--rows", "250"});
  for (const std::string format : {"npz", "safetensors", "parquet"})
    if (format != "parquet" || why_no_parquet().empty()) expect_exports({format, "run", "--out", "py_" + format});
  write_file(*folder_ / "check.py", kLibraries);
  const Outcome read = run_program("/usr/bin/env", {python, "check.py", (source_dir() / "tools/python").string()},
                                   folder_->path(), {{"PYTHONDONTWRITEBYTECODE", "1"}});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  for (const char* library : {"numpy", "safetensors", "pyarrow", "onnxruntime"})
    if (read.out.find(library) == std::string::npos)
      std::printf("not compared with %s, which %s lacks (HCTR_PYTHON)\n", library, python.c_str());
}

}  // namespace
}  // namespace hctr::test
