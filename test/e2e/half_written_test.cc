// A tool that is killed during a write, or runs out of disk space, leaves no result that looks complete: no list, no
// description, and no partial file under its final name. The tool reports a full disk.
#include <gtest/gtest.h>

#include <csignal>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// A call of a tool in a folder with its input. The tool writes to the subfolder `out`.
struct Call {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> results;  // files whose existence marks a complete result
};

class HalfWritten : public testing::Test {
 protected:
  void SetUp() override {
    std::string clicks, old_text, csv;
    for (int64_t i = 0; i < 40000; ++i) {
      clicks += std::to_string(i % 2);
      old_text += std::to_string(i % 2);
      for (int k = 0; k < 39; ++k)
        clicks += "\t" + std::to_string(k < 33 ? i % (k + 7)
                                               : i * 2654435761 %
                                                     100000000);  // many distinct values: compressed files stay large
      for (int k = 0; k < 39; ++k) old_text += " " + std::to_string(i % (k + 7));
      clicks += '\n';
      old_text += '\n';
    }
    for (int i = 0; i < 400000; ++i) csv += std::to_string(i % 2) + "," + std::to_string(i % 1000) + "\n";
    write_file(folder_ / "rows.tsv", clicks);
    write_file(folder_ / "rows.txt", old_text);
    write_file(folder_ / "rows.csv", csv);
    write_file(folder_ / "spec.yaml",
               "feature_spec:\n  y: {dtype: bool}\n  a: {dtype: int32, cardinality: 1000}\nsource_spec:\n  train:\n    "
               "- {type: csv, features: [y, a], files: [rows.csv]}\n"
               "channel_spec: {label: [y], numerical: [], categorical: [a]}\n");
    write_file(folder_ / "norm.json", config("norm.txt", ""));
    write_file(folder_ / "raw.json", config("raw.bin", R"(, "format": "Raw", "num_samples": 60000)"));
    write_file(folder_ / "parquet.json", config("parquet/list.txt", R"(, "format": "Parquet")"));
  }

  static std::string config(const std::string& source, const std::string& more) {
    return R"({"solver": {"batchsize": 64, "max_iter": 10, "input_key_type": "I32"}, "optimizer": {}, "layers": [
      {"type": "Data", "source": "out/)" +
           source + R"(", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
       "sparse": [{"top": "s", "slot_num": 20, "max_feature_num_per_sample": 20, "max_nnz": 1}],
       "slot_size_array": [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])" +
           more + "}]}";
  }

  static bool has_parquet() { return fs::exists(hctr::test::bin_dir() / "libhuge_ctr_parquet.so"); }

  /// Calls of all tools that write. Each call writes more than a megabyte to one file of the folder `out`.
  static std::vector<Call> calls() {
    std::vector<Call> all = {
        {"preprocess", {"--criteo", "rows.tsv", "--out", "out"}, {"preprocess.json", "train.txt", "train.0.data"}},
        {"preprocess", {"--criteo", "rows.tsv", "--out", "out", "--format", "Raw"}, {"preprocess.json", "train.bin"}},
        {"criteo2hugectr", {"--tsv", "rows.tsv", "--out", "out"}, {"train.txt", "train.0.data"}},
        {"criteo2hugectr", {"rows.txt", "out/part", "out/list.txt"}, {"list.txt", "part0.data"}},
        {"data_generator",
         {"--config", "norm.json", "--samples", "60000", "--files", "1"},
         {"norm.txt", "norm.txt.made.json", "norm.0.data"}},
        {"data_generator", {"--config", "raw.json"}, {"raw.bin", "raw.bin.made.json"}},
        {"data_generator",
         {"--config", "norm.json", "--samples", "60000", "--files", "1", "--text", "csv"},
         {"norm.txt", "norm.0.csv"}},
        {"feature_spec",
         {"transcode", "spec.yaml", "--out", "out"},
         {"feature_spec.yaml", "train/a.bin", "train/y.bin"}}};
    if (has_parquet()) {
      all.push_back({"preprocess",
                     {"--criteo", "rows.tsv", "--out", "out", "--format", "Parquet", "--passes", "1"},
                     {"preprocess.json", "train/_file_list.txt", "train/_metadata.json", "train/part_0.parquet"}});
      all.push_back({"data_generator",
                     {"--config", "parquet.json", "--samples", "200000", "--files", "1"},
                     {"parquet/list.txt", "parquet/_metadata.json", "parquet/gen_0.parquet"}});
    }
    return all;
  }

  /// Returns the names of the files below `out`.
  std::string left() const {
    std::string names;
    if (!fs::exists(folder_ / "out")) return names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "out"))
      if (entry.is_regular_file()) names += " " + fs::relative(entry.path(), folder_ / "out").string();
    return names;
  }

  /// Returns the call as a bash command line.
  static std::string words(const Call& call) {
    std::string all = (hctr::test::bin_dir() / call.program).string();
    for (const std::string& argument : call.arguments) all += " " + argument;
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(HalfWritten, AFullDiskIsSaidAndLeavesNothing) {
  // With a file size limit of half a megabyte, writes fail as on a full disk.
  for (const Call& call : calls()) {
    const Outcome done =
        run_program("/bin/bash", {"-c", "trap '' XFSZ; ulimit -f 512; exec " + words(call)}, folder_.path());
    EXPECT_EQ(done.exit_code, 5) << words(call) << "\n" << done.err;
    EXPECT_NE(done.err.find("cannot write"), std::string::npos) << words(call) << "\n" << done.err;
    EXPECT_NE(done.err.find("File too large"), std::string::npos) << words(call) << "\n" << done.err;
    EXPECT_EQ(left(), "") << words(call);
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(HalfWritten, AKilledToolLeavesNoFileUnderItsFinalName) {
  // SIGXFSZ kills the tool at a fixed byte in the middle of a file. ulimit -f counts in units of 1024 bytes.
  for (const Call& call : calls()) {
    const Outcome done =
        run_program("/bin/bash", {"-c", "ulimit -c 0; ulimit -f 512; exec " + words(call)}, folder_.path());
    EXPECT_EQ(done.exit_code, 128 + SIGXFSZ) << words(call) << "\n" << done.err;
    EXPECT_NE(left(), "") << words(call) << ": it was killed before it wrote anything";
    for (const std::string& result : call.results)
      EXPECT_FALSE(fs::exists(folder_ / "out" / result)) << words(call) << ": " << result;
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(HalfWritten, ARunToTheEndLeavesAll) {
  for (const Call& call : calls()) {
    const Outcome done = run_program(call.program, call.arguments, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << words(call) << "\n" << done.err;
    for (const std::string& result : call.results)
      EXPECT_TRUE(fs::exists(folder_ / "out" / result)) << words(call) << ": " << result;
    EXPECT_EQ(left().find(".part"), std::string::npos) << words(call) << ": " << left();
    fs::remove_all(folder_ / "out");
  }
}

/// A tool removes the old result before writing. Otherwise an interrupted call would leave a mixture of old and new
/// files.
TEST_F(HalfWritten, AnOldResultDoesNotOutliveARunThatBreaksOff) {
  for (const Call& call : calls()) {
    if (call.program == "criteo2hugectr" && call.arguments[0] != "--tsv")
      continue;  // the old argument syntax has no --force, because it always overwrites
    const Outcome done = run_program(call.program, call.arguments, folder_.path());
    ASSERT_EQ(done.exit_code, 0) << words(call) << "\n" << done.err;
    const std::string more = call.program == "data_generator" ? " --force --seed 3" : " --force";
    const Outcome broken =
        run_program("/bin/bash", {"-c", "trap '' XFSZ; ulimit -f 512; exec " + words(call) + more}, folder_.path());
    EXPECT_EQ(broken.exit_code, 5) << words(call) << "\n" << broken.err;
    EXPECT_FALSE(fs::exists(folder_ / "out" / call.results[0])) << words(call) << ": " << call.results[0];
    fs::remove_all(folder_ / "out");
  }
}

}  // namespace
}  // namespace hctr::test
