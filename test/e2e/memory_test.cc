// The memory of the tools and of the reader does not grow with the data. Each program runs on some rows and on four
// times as many rows with the same values. The difference of the peaks must be less than half of the additional bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/base/platform.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMega = 1 << 20;

/// Growth below this margin is ignored. Bounded queues between the threads of a program hold chunks of a megabyte, and
/// a small file does not always fill the queues. With one thread the queues stay short.
constexpr int64_t kMargin = 10 * kMega;

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers keep memory that was given back";
  }

  /// Writes file `small`, and file `large` with four times the rows. `lines(i)` returns row i; rows repeat after 1000.
  template <class Line>
  void write_rows(const std::string& ending, int rows, const Line& line, const std::string& header = "") {
    std::string thousand;
    for (int i = 0; i < 1000; ++i) thousand += line(i) + "\n";
    for (const int times : {1, 4}) {
      std::ofstream file(folder_ / ((times == 1 ? "small" : "large") + ending), std::ios::binary);
      file << header;
      for (int i = 0; i < rows * times; i += 1000) file << thousand;
    }
  }

  /// Runs the program on both files; "small" or "large" replaces SIZE in the arguments. On a busy machine the queue
  /// lengths vary by some megabytes, so growth counts only if three attempts show growth.
  void expect_constant(const std::string& program, const std::vector<std::string>& arguments, int64_t data_bytes) {
    EXPECT_GT(3 * data_bytes, 2 * kMargin) << "too few rows: growth would not be seen";
    const int64_t most = std::max(kMargin, 3 * data_bytes / 2);
    int64_t small = 0, large = 0;
    for (int attempt = 0; attempt < 3 && (attempt == 0 || large - small >= most); ++attempt) {
      small = peak(program, arguments, "small");
      large = peak(program, arguments, "large");
    }
    EXPECT_LT(large - small, most) << program << " " << arguments[0] << " " << arguments[1] << ": " << small / kMega
                                   << " MB, and for four times as many rows " << large / kMega << " MB";
  }

  int64_t peak(const std::string& program, std::vector<std::string> arguments, const std::string& size) {
    for (std::string& argument : arguments)
      for (size_t at; (at = argument.find("SIZE")) != std::string::npos;) argument.replace(at, 4, size);
    const Measured done = run_and_measure(program, arguments, folder_.path());
    EXPECT_EQ(done.outcome.exit_code, 0) << done.outcome.err;
    EXPECT_GT(done.peak_bytes, kMega);
    return done.peak_bytes;
  }

  int64_t bytes(const std::string& file) { return static_cast<int64_t>(fs::file_size(folder_ / file)); }

  TemporaryFolder folder_;
};

std::string criteo_line(int i) {
  std::string line = std::to_string(i % 2);
  for (int k = 0; k < 13; ++k) line += "\t" + std::to_string(i * (k + 1) % 100);
  char category[16];
  for (int k = 0; k < 26; ++k) {
    std::snprintf(category, sizeof category, "\t%08x", i * (k + 3) % 500 + 0x1000000 * k);
    line += category;
  }
  return line;
}

TEST_F(Memory, OfToolsThatReadClickLogs) {
  write_rows(".tsv", 30000, criteo_line);
  const int64_t text = bytes("small.tsv");
  expect_constant("preprocess", {"--criteo", "SIZE.tsv", "--out", "one_SIZE", "--passes", "1", "--threads", "1"}, text);
  expect_constant("preprocess",
                  {"--criteo", "SIZE.tsv", "--out", "two_SIZE", "--min-count", "2", "--holdout", "0.1", "--cross",
                   "C1xC2", "--normalize", "standard", "--threads", "1"},
                  text);
  expect_constant("preprocess", {"--criteo", "SIZE.tsv", "--out", "raw_SIZE", "--format", "Raw", "--threads", "1"},
                  text);
  expect_constant("criteo2hugectr", {"--tsv", "SIZE.tsv", "--out", "criteo_SIZE", "--threads", "1"}, text);
  expect_constant(
      "criteo2hugectr",
      {"--tsv", "SIZE.tsv", "--out", "counted_SIZE", "--min-count", "2", "--holdout", "0.1", "--threads", "1"}, text);
  expect_constant("data_inspect", {"criteo_SIZE/train.txt", "--threads", "1"}, bytes("criteo_small/train.0.data"));
}

TEST_F(Memory, OfTheFormerOrderOfArguments) {
  write_rows(".txt", 150000, [](int i) {
    std::string line = std::to_string(i % 2);
    for (int k = 0; k < 13 + 26; ++k) line += " " + std::to_string(i * (k + 1) % 1000);
    return line;
  });
  expect_constant("criteo2hugectr", {"SIZE.txt", "SIZE/part", "SIZE.list.txt", "--keyset", "--threads", "1"},
                  bytes("small.txt"));
}

TEST_F(Memory, OfTheToolForFeatureSpecifications) {
  write_rows(".csv", 900000, [](int i) {
    return std::to_string(i % 2) + "," + std::to_string(i / 7.0) + "," + std::to_string(i * 13 % 700) + "," +
           std::to_string(i % 50);
  });
  expect_constant("feature_spec",
                  {"describe", "--features", "y,a,user,film", "--label", "y", "--numerical", "a", "--categorical",
                   "user,film", "--train", "SIZE.csv", "--out", "SIZE.yaml"},
                  bytes("small.csv"));
  expect_constant("feature_spec", {"transcode", "SIZE.yaml", "--out", "binary_SIZE"}, bytes("small.csv"));
  expect_constant("feature_spec", {"check", "binary_SIZE/feature_spec.yaml"},
                  2 * bytes("binary_small/train/numerical.bin"));
}

/// A config that trains one epoch over `source`.
std::string config_of(const std::string& source, const std::string& more) {
  return R"({"solver": {"batchsize": 4096, "num_epochs": 1, "display": 1000000, "eval_interval": 1000000, "snapshot": 1000000, "replace_models": true, "snapshot_prefix": ")" +
         source + R"(_model/", "input_key_type": "I32"},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.01}}, "layers": [
    {"type": "Data", "source": ")" +
         source + R"(", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 20},
     "sparse": [{"top": "s", "type": "DistributedSlot", "slot_num": 20, "max_feature_num_per_sample": 20, "max_nnz": 1}],
     "slot_size_array": [50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50])" +
         more + R"(},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "s", "top": "e", "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 1, "combiner": 0}},
    {"type": "Reshape", "bottom": "e", "top": "flat", "leading_dim": 20}, {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}]})";
}

TEST_F(Memory, OfTheGeneratorAndOfTheReader) {
  const int rows = 60000;
  const auto raw = [&](int samples) {
    return R"(, "format": "Raw", "float_label_dense": true, "num_samples": )" + std::to_string(samples);
  };
  for (const int times : {1, 4}) {
    const std::string size = times == 1 ? "small" : "large";
    write_file(folder_ / ("norm_" + size + ".json"), config_of("norm_" + size + ".txt", ""));
    write_file(folder_ / ("shuffled_" + size + ".json"), config_of("norm_" + size + ".txt", R"(, "shuffle": 5000)"));
    write_file(folder_ / ("raw_" + size + ".json"), config_of("raw_" + size + ".bin", raw(rows * times)));
  }
  const int64_t data = int64_t{rows} * (1 + 20 + 20) * 4;
  for (const std::string format : {"norm", "raw"}) {
    const auto made = [&](const std::string& size, int samples) {
      return peak("data_generator",
                  {"--config", format + "_" + size + ".json", "--samples", std::to_string(samples), "--threads", "1"},
                  size);
    };
    const int64_t small = made("small", rows), large = made("large", 4 * rows);
    EXPECT_LT(large - small, kMargin) << format;
  }
  for (const char* config : {"norm_SIZE.json", "shuffled_SIZE.json", "raw_SIZE.json"}) {
    expect_constant("huge_ctr", {"--train", config, "--device", "cpu", "--run-dir", "run"}, data);
    expect_constant("data_inspect", {"--config", config, "--threads", "1"}, data);
  }
}

/// Checks that growth is detected: data_generator keeps the ground truth of the evaluation set in memory, 9 bytes per
/// sample.
TEST_F(Memory, IsMeasured) {
  std::string config = with_change(config_of("train.txt", ""), R"("source": "train.txt")",
                                   R"("source": "train.txt", "eval_source": "eval.txt")");
  config = with_change(with_change(config, R"("dense_dim": 20)", R"("dense_dim": 0)"),
                       R"("slot_num": 20, "max_feature_num_per_sample": 20)",
                       R"("slot_num": 1, "max_feature_num_per_sample": 1)");
  write_file(folder_ / "config.json", config.replace(config.find(R"("slot_size_array")"),
                                                     config.find("]}", config.find(R"("slot_size_array")")) -
                                                         config.find(R"("slot_size_array")"),
                                                     R"("slot_size_array": [50)"));
  const auto made = [&](const char* samples) {
    return peak(
        "data_generator",
        {"--config", "config.json", "--samples", "1000", "--eval-samples", samples, "--force", "--threads", "1"}, "");
  };
  const int64_t small = made("500000"), large = made("2500000");
  EXPECT_GT(large - small, kMargin);
}

}  // namespace
}  // namespace hctr::test
