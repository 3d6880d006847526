// data_generator in every format, data_inspect, feature_spec, the old argument syntax of criteo2hugectr, and the
// examples of --help.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "core/base/expect.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

void says(const std::string& found, const std::string& piece) {
  EXPECT_NE(found.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << found;
}

/// A Data layer with four one-hot slots, and a loss. `more`: additional fields of the layer.
std::string one_hot_config(const std::string& name, const std::string& ending, const std::string& more) {
  return R"({"solver": {"batchsize": 64, "max_iter": 10, "input_key_type": "I32"}, "optimizer": {}, "layers": [
    {"type": "Data", "source": ")" +
         name + "/train." + ending + R"(", "eval_source": ")" + name + "/val." + ending + R"(",
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 3},
     "sparse": [{"top": "s", "type": "DistributedSlot", "slot_num": 4, "max_feature_num_per_sample": 4, "max_nnz": 1}],
     "slot_size_array": [10, 200, 30, 4])" +
         more + R"(}, {"type": "BinaryCrossEntropyLoss"}]})";
}

/// The first samples as data_inspect prints them.
std::string head_of(const TemporaryFolder& folder, const std::string& config) {
  const Outcome done = run_program("data_inspect", {"--config", config, "--head", "200"}, folder.path());
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  std::string head;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  label ") && line.find("keys [") != std::string::npos) head += line + "\n";
  return head;
}

TEST(DataGenerator, TheSameSeedGivesTheSameSamplesInEveryFormat) {
  const TemporaryFolder folder;
  write_file(folder / "norm.json", one_hot_config("norm", "txt", ""));
  write_file(
      folder / "raw.json",
      one_hot_config("raw", "bin",
                     R"(, "format": "Raw", "num_samples": 3000, "eval_num_samples": 500, "float_label_dense": true)"));
  write_file(folder / "text.json", one_hot_config("text", "txt", ""));
  const std::vector<std::string> sizes = {"--samples", "3000", "--eval-samples", "500", "--seed", "5"};
  std::string best;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"norm.json"}, {"raw.json"}, {"text.json", "--text", "csv"}}) {
    std::vector<std::string> all = {"--config"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), sizes.begin(), sizes.end());
    const Outcome done = run_program("data_generator", all, folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const std::string scores = done.out.substr(done.out.find("AUC"));
    EXPECT_EQ(best.empty() ? scores : best, scores);
    best = scores;
  }
  const std::string norm = head_of(folder, "norm.json");
  EXPECT_EQ(std::count(norm.begin(), norm.end(), '\n'), 400);
  EXPECT_EQ(norm, head_of(folder, "raw.json"));
  EXPECT_EQ(fs::file_size(folder / "raw/train.bin"), 3000u * 4 * (1 + 3 + 4));

  // preprocess converts text and assigns its own ids. It must preserve labels, dense values, and which samples have
  // equal keys.
  const Outcome made = run_program("preprocess",
                                   {"--csv", "text/train.0.csv", "--out", "again", "--label", "label", "--dense",
                                    "I1,I2,I3", "--categories", "C1,C2,C3,C4"},
                                   folder.path());
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome first = run_program("data_inspect", {"again/train.txt", "--head", "1"}, folder.path());
  says(first.out, norm.substr(0, norm.find("  keys")));
}

/// Skips the test with a message if the build has no plug-in.
#define HCTR_SKIP_WITHOUT_PLUGIN()                                   \
  if (!fs::exists(hctr::test::bin_dir() / "libhuge_ctr_parquet.so")) \
  GTEST_SKIP() << "this build has no plug-in for Parquet: CMake found no Arrow"

TEST(DataGenerator, ParquetHoldsTheSamplesOfNorm) {
  HCTR_SKIP_WITHOUT_PLUGIN();
  const TemporaryFolder folder;
  write_file(folder / "norm.json", one_hot_config("norm", "txt", ""));
  write_file(folder / "parquet.json", one_hot_config("parquet", "txt", R"(, "format": "Parquet")"));
  for (const char* config : {"norm.json", "parquet.json"}) {
    const Outcome done =
        run_program("data_generator",
                    {"--config", config, "--samples", "3000", "--eval-samples", "500", "--files", "3", "--seed", "5"},
                    folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  const std::string norm = head_of(folder, "norm.json");
  EXPECT_EQ(std::count(norm.begin(), norm.end(), '\n'), 400);
  EXPECT_EQ(norm, head_of(folder, "parquet.json"));
  const Outcome shown =
      // _metadata.json lists the columns of each role
      run_program("data_inspect", {"parquet/train.txt"}, folder.path());
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  says(shown.out, "parquet/train.txt: 3000 samples in 3 files");
  says(shown.out, "gen_1.parquet: 1000 records, ");
  says(shown.out, "Parquet, 1 row group, 8 columns, snappy, written by parquet-cpp");
  const Outcome again = run_program(
      "data_generator",
      {"--config", "parquet.json", "--samples", "3000", "--eval-samples", "500", "--files", "3", "--seed", "5"},
      folder.path());
  says(again.err, "already exists");

  // Slots with several keys are list columns.
  const std::string several = R"({"solver": {"batchsize": 64, "max_iter": 10}, "optimizer": {}, "layers": [
    {"type": "Data", "format": "FORMAT", "source": "several/train.txt", "eval_source": "", "label": {"top": "label", "label_dim": 2}, "dense": {"top": "dense", "dense_dim": 0},
     "sparse": [{"top": "a", "slot_num": 2, "nnz_per_slot": [3, 1]}, {"top": "b", "slot_num": 3, "max_feature_num_per_sample": 2}]}]})";
  std::string heads[2];
  for (const int i : {0, 1}) {
    write_file(folder / "several.json", with_change(several, "FORMAT", i == 0 ? "Norm" : "Parquet"));
    const Outcome done =
        run_program("data_generator", {"--config", "several.json", "--samples", "300", "--force"}, folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    heads[i] = head_of(folder, "several.json");
  }
  EXPECT_EQ(heads[0], heads[1]);
}

TEST(Preprocess, ParquetHoldsTheSamplesOfNorm) {
  HCTR_SKIP_WITHOUT_PLUGIN();
  const TemporaryFolder folder;
  std::string text = "user,film,tags,age,click\n";
  for (int i = 0; i < 3000; ++i)
    text += cat("u", i * i % 97, ",f", i % 31, ",",
                i % 4 == 0   ? ""
                : i % 4 == 1 ? "a"
                             : "b|c",
                ",", i % 60, ",", i % 3 == 1, "\n");
  write_file(folder / "rows.csv", text);
  std::string heads[2];
  for (const int i : {0, 1}) {
    const std::string format = i == 0 ? "Norm" : "Parquet";
    const Outcome done = run_program(
        "preprocess", {"--csv",     "rows.csv",     "--out",           format,    "--label",     "click",    "--dense",
                       "age",       "--categories", "user,film",       "--lists", "tags",        "--format", format,
                       "--holdout", "0.1",          "--rows-per-file", "1000",    "--normalize", "minmax"},
        folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Json data = *Json::read_file(folder / format / "preprocess.json").find("data");
    write_file(folder / (format + ".json"), Json(Json::Object{{"layers", Json::Array{data}}}).text(1));
    heads[i] = head_of(folder, format + ".json");
  }
  EXPECT_GE(std::count(heads[0].begin(), heads[0].end(), '\n'), 400);
  EXPECT_EQ(heads[0], heads[1]);
  for (const char* file : {"train/part_2.parquet", "train/_metadata.json", "train/_file_list.txt", "val/part_0.parquet",
                           "val/_metadata.json"})
    EXPECT_TRUE(fs::exists(folder / "Parquet" / file)) << file;
}

TEST(Parquet, OtherTypesOfPythonHoldTheSameValues) {
  HCTR_SKIP_WITHOUT_PLUGIN();
  const TemporaryFolder folder;
  write_file(folder / "make.py", R"(
import pyarrow as pa, pyarrow.parquet as pq
words, lists = ["a", "bb", None, "a"] * 5000, [[1, 2], [3, 4], [5, 6], [7, 8]] * 5000
base = {"y": pa.array([1.0, 0, 0, 1] * 5000, pa.float32())}
for name, text, items, codec in [("plain", pa.string(), pa.list_(pa.int64()), "snappy"), ("large", pa.large_string(), pa.large_list(pa.int32()), "zstd"),
                                 ("dictionary", pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.uint16(), 2), "gzip")]:
  strings = pa.array(words).dictionary_encode().cast(text) if name == "dictionary" else pa.array(words, text)
  pq.write_table(pa.table({**base, "s": strings, "l": pa.array(lists, items)}), name + ".parquet", row_group_size=9000, compression=codec, data_page_version="2.0" if name == "large" else "1.0")
)");
  if (const Outcome made = run_program("/usr/bin/env", {"python3", "make.py"}, folder.path()); made.exit_code != 0)
    GTEST_SKIP() << "no pyarrow for python3: " << made.err;
  std::string plain;
  for (const std::string name : {"plain", "large", "dictionary"}) {
    write_file(folder / "config.json", R"({"layers": [{"type": "Data", "format": "Parquet", "source": ")" + name +
                                           R"(.parquet", "label": {"top": "label", "label_dim": 1},
      "dense": {"top": "dense", "dense_dim": 0}, "sparse": [{"top": "k", "slot_num": 2, "nnz_per_slot": [1, 2]}],
      "parquet": {"labels": ["y"], "slots": [{"columns": ["s"], "buckets": 1000, "default": "none"}, {"columns": ["l"]}]}}]})");
    const Outcome done = run_program("data_inspect", {"--config", "config.json", "--head", "20000"}, folder.path());
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    const std::string head = done.out.substr(std::min(done.out.find("first samples"), done.out.size()));
    EXPECT_GT(head.size(), 20000u * 20);
    EXPECT_EQ(plain.empty() ? head : plain, head) << name;
    plain = head;
  }
}

TEST(DataInspect, ControlCharactersOfAFileNeverReachTheTerminal) {
  const TemporaryFolder folder;
  write_file(folder / "list.txt", "1\nclear\x1b[2J.data\n");
  const Outcome done = run_program("data_inspect", {"list.txt"}, folder.path());
  EXPECT_NE(done.exit_code, 0);
  says(done.out + done.err, "clear\\x1b[2J.data");
  EXPECT_EQ((done.out + done.err).find('\x1b'), std::string::npos);
}

TEST(Parquet, WithoutThePluginTheMessageSaysWhatToInstall) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", one_hot_config(".", "parquet", R"(, "format": "Parquet")"));
  // the plug-in library is missing in this folder
  fs::copy_file(hctr::test::bin_dir() / "data_inspect", folder / "data_inspect");
  write_file(folder / "train.parquet", "PAR1");
  const Outcome done =
      run_program((folder / "data_inspect").string(), {"--config", "config.json", "train.parquet"}, folder.path());
  EXPECT_EQ(done.exit_code, 4);
  says(done.out, "Parquet data needs libhuge_ctr_parquet.so next to the program, and the file is missing");
  says(done.out, "install pyarrow (by pip), or libarrow-dev and libparquet-dev");
}

TEST(DataGenerator, RawInTheFormOfTheOriginalAndWhatCannotBeRaw) {
  const TemporaryFolder folder;
  write_file(folder / "raw.json",
             one_hot_config("raw", "bin", R"(, "format": "Raw", "num_samples": 300, "eval_num_samples": 50)"));
  const Outcome done = run_program("data_generator", {"raw.json"}, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(fs::file_size(folder / "raw/val.bin"), 50u * 32);
  EXPECT_EQ(run_program("data_inspect", {"--config", "raw.json"}, folder.path()).exit_code, 0);
  for (const auto& [option, value, message] :
       std::vector<std::array<std::string, 3>>{{"--samples", "100", "expects num_samples 300"},
                                               {"--nnz", "2", "allows 0 to 1"},
                                               {"--files", "2", "Raw data are written to one file"},
                                               {"--vocabulary", "7", "--vocabulary differs from slot_size_array"},
                                               {"--keys", "hashed", "hashed keys"}}) {
    const Outcome refused =
        run_program("data_generator", {"--config", "raw.json", option, value, "--force"}, folder.path());
    EXPECT_EQ(refused.exit_code, 2) << option;
    says(refused.err, message);
  }
}

TEST(DataGenerator, EachSlotHasAsManyKeysAsAskedFor) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  const Outcome done = run_program(
      "data_generator",
      {"--config", "config.json", "--samples", "500", "--nnz", "2,1,0,2", "--distribution", "unified"}, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  ASSERT_EQ(run_program("data_inspect", {"train.txt", "--json", "found.json"}, folder.path()).exit_code, 0);
  const Json found = Json::read_file(folder / "found.json");
  const auto& slots = *(*found.find("sets")->array())[0].find("slots")->array();
  const int64_t expected[] = {2, 1, 0, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(*slots[i].find("least_nnz")->integer(), expected[i]);
    EXPECT_EQ(*slots[i].find("most_nnz")->integer(), expected[i]);
  }
}

TEST(DataInspect, ExitCodesAndFiguresDoNotDependOnThreads) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  make_data(folder.path(), "config.json", 4000, 500);
  std::string figures;
  for (const char* threads : {"1", "4"}) {
    const Outcome done = run_program(
        "data_inspect", {"--config", "config.json", "--threads", threads, "--json", "found.json", "--exact", "50"},
        folder.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    says(done.out, "an estimate, with a standard error of 0.8 %");
    const std::string text = read_file(folder / "found.json");
    EXPECT_EQ(figures.empty() ? text : figures, text);
    figures = text;
  }
  write_file(folder / "narrow.json", with_change(small_config(), "\"max_nnz\": 2", "\"max_nnz\": 1"));
  const Outcome bad = run_program("data_inspect", {"--config", "narrow.json", "--problems", "1"}, folder.path());
  EXPECT_EQ(bad.exit_code, 4);
  says(bad.out, "has 2 keys, more than its max_nnz of 1");
  EXPECT_EQ(run_program("data_inspect", {"none.txt"}, folder.path()).exit_code, 5);
  EXPECT_EQ(run_program("data_inspect", {}, folder.path()).exit_code, 2);
  const Outcome text = run_program("data_inspect", {"config.json"}, folder.path());
  EXPECT_EQ(text.exit_code, 2);
  says(text.err, "'config.json' has no Norm header; use --config to describe its records");
}

TEST(FeatureSpecTool, DescribesChecksAndTranscodes) {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 300; ++i)
    rows += std::to_string(i % 2) + "," + std::to_string(i / 7.0) + "," + std::to_string(i * 13 % 200) + "\n";
  write_file(folder / "a.csv", rows);
  write_file(folder / "b.csv", rows);
  const Outcome described =
      run_program("feature_spec",
                  {"describe", "--features", "click,age,user", "--label", "click", "--numerical", "age",
                   "--categorical", "user", "--train", "a.csv", "b.csv", "--out", "spec.yaml"},
                  folder.path());
  ASSERT_EQ(described.exit_code, 0) << described.err;
  says(described.out, "user (int16, 200 ids)");
  ASSERT_EQ(
      run_program("feature_spec", {"transcode", "spec.yaml", "--out", "binary", "--half"}, folder.path()).exit_code, 0);
  EXPECT_EQ(fs::file_size(folder / "binary/train/numerical.bin"), 1200u);
  EXPECT_EQ(fs::file_size(folder / "binary/train/click.bin"), 600u);
  const Outcome checked = run_program("feature_spec", {"check", "binary/feature_spec.yaml"}, folder.path());
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  says(checked.out, "600 rows in 3 chunks: OK");
  write_file(folder / "b.csv", rows + "x,1,2\n");
  const Outcome bad = run_program("feature_spec", {"check", "spec.yaml"}, folder.path());
  EXPECT_EQ(bad.exit_code, 4);
  says(bad.err, "b.csv' line 301: feature click: expected a whole number (bool), found 'x'");
}

TEST(CriteoToHugectr, TheOriginalsOrderOfArgumentsGoesOnWorking) {
  const TemporaryFolder folder;
  std::string row = "1";
  for (int i = 0; i < 13 + 2 + 26; ++i) row += " " + std::to_string(i < 13 ? 0 : i);
  write_file(folder / "in.txt", row + "\n" + row + "\n");
  const Outcome done = run_program("criteo2hugectr", {"in.txt", "out/data", "list.txt", "2", "1"}, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Outcome looked = run_program("data_inspect", {"list.0.txt"}, folder.path());
  EXPECT_EQ(looked.exit_code, 0) << looked.err;
  says(looked.out, "slot_num 27, keys of 32 bits");
}

TEST(DataTools, AKilledProgramLeavesNothingThatLooksWhole) {
  const TemporaryFolder folder;
  write_file(folder / "norm.json", one_hot_config("norm", "txt", ""));
  write_file(folder / "raw.json",
             one_hot_config(
                 "raw", "bin",
                 R"(, "format": "Raw", "num_samples": 20000, "eval_num_samples": 300000, "float_label_dense": true)"));
  std::string spec = "feature_spec:\n  y: {dtype: bool}\n  a: {dtype: int32, cardinality: 1000}\nsource_spec:\n", rows;
  for (const char* name : {"train", "test"})
    spec += cat("  ", name, ":\n    - {type: csv, features: [y, a], files: [rows.csv]}\n");
  for (int i = 0; i < 1000000; ++i) rows += cat(i % 2, ",", i % 1000, "\n");
  write_file(folder / "rows.csv", rows);
  write_file(folder / "spec.yaml", spec + "channel_spec: {label: [y], numerical: [], categorical: [a]}\n");
  std::string lines;
  for (int i = 0; i < 300000; ++i) lines += cat(i % 2, std::string(13, '\t'), std::string(26, '\t'), "\n");
  write_file(folder / "rows.tsv", lines);
  struct Run {
    const char* program;
    std::vector<std::string> arguments;
    const char* after;  // the test kills the program after this output
    std::vector<const char*> results;
  };
  const std::vector<Run> runs = {
      {"data_generator",
       {"--config", "norm.json", "--samples", "20000", "--eval-samples", "500000", "--threads", "1"},
       "writing norm/train.txt",
       {"norm/val.txt", "norm/val.txt.made.json", "norm/val.txt.truth.json", "norm/val.0.data"}},
      {"data_generator",
       {"--config", "raw.json", "--threads", "1"},
       "writing raw/train.bin",
       {"raw/val.bin", "raw/val.bin.made.json"}},
      {"feature_spec", {"transcode", "spec.yaml", "--out", "binary"}, "writing train", {"binary/feature_spec.yaml"}},
      {"criteo2hugectr",
       {"--tsv", "rows.tsv", "--out", "criteo", "--min-count", "2", "--threads", "1"},
       "counting values",
       {"criteo/train.txt", "criteo/train.0.data"}}};
  for (const Run& run : runs) {
    const Outcome killed = run_and_signal(run.program, run.arguments, folder.path(), run.after, SIGKILL);
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << run.program << " was done before it could be killed: " << killed.err;
    for (const char* result : run.results) EXPECT_FALSE(fs::exists(folder / result)) << run.program << ": " << result;
  }
}

/// A folder with the input for the commands of --help. documents_test.cc runs the commands of the documents.
class Commands : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path source = hctr::test::source_dir();
    const std::string setup =
        "set -e; python3 " + (source / "test/reference/preprocess.py").string() +
        " make 2000 train.txt; for day in 0 1 23; do gzip -c train.txt > day_$day.gz; done; gzip -c train.txt > "
        "train.txt.gz; "
        "printf "
        "'user,movie,genres,age,time,click\\n1,2,a|b,30,978299000,1\\n1,3,b,,978299001,0\\n2,2,a|b,31,978300001,0\\n' "
        "> ratings.csv; "
        "printf 'day,city,bought\\n2017-03-30,a,1\\n2017-03-31,b,0\\n2017-04-01,a,0\\n' > shop.csv; "
        "printf '1,0.5,3,4\\n0,1.5,2,1\\n' > a.csv; cp a.csv b.csv; cp a.csv c.csv; mkdir data; cp ?.csv data; "
        "for row in 0 1; do echo $row $(seq 41); done > train.out";
    ASSERT_EQ(run_program("/bin/bash", {"-c", setup}, folder_.path()).exit_code, 0);
    fs::copy(source / "samples/wdl/wdl.json", folder_ / "wdl.json");
    write_file(folder_ / "dlrm_raw.json",
               one_hot_config("raw", "bin", R"(, "format": "Raw", "num_samples": 1000, "eval_num_samples": 100)"));
  }
  void expect_to_run(const std::string& command) {
    const Outcome done = run_program("/bin/bash", {"-c", "set -o pipefail; " + command}, folder_.path(),
                                     {{"PATH", hctr::test::bin_dir().string() + ":" + std::getenv("PATH")}});
    EXPECT_EQ(done.exit_code, 0) << command << "\n" << done.err;
  }
  TemporaryFolder folder_;
};

TEST_F(Commands, OfHelpRun) {
  for (const char* program : {"preprocess", "data_generator", "data_inspect", "feature_spec", "criteo2hugectr"}) {
    std::istringstream lines(run_program(program, {"--help"}, folder_.path()).out);
    std::string line;
    while (std::getline(lines, line) && line != "Examples:") continue;
    int examples = 0;
    for (; std::getline(lines, line) && line.starts_with("  "); ++examples) expect_to_run(line);
    EXPECT_GE(examples, 3) << program;
  }
}

TEST(SparkJob, WritesTheSamplesThatPreprocessWrites) {
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  const TemporaryFolder folder;
  if (run_program("/usr/bin/env", {python, "-c", "import pyspark"}, folder.path()).exit_code != 0)
    GTEST_SKIP() << "no pyspark for " << python << "; HCTR_PYTHON names a Python that has it";
  const fs::path source = hctr::test::source_dir();
  ASSERT_EQ(run_program("/usr/bin/env",
                        {"python3", (source / "test/reference/preprocess.py").string(), "make", "1500", "train.tsv"},
                        folder.path())
                .exit_code,
            0);
  ASSERT_EQ(run_program("/bin/bash", {"-c", "tail -500 train.tsv > val.tsv"}, folder.path()).exit_code, 0);
  const std::map<std::string, std::string> local = {
      {"SPARK_LOCAL_IP", "127.0.0.1"},
      {"PYSPARK_SUBMIT_ARGS",
       "--master local[2] --driver-memory 4g --conf spark.buffer.pageSize=2m --conf spark.sql.codegen.wholeStage=false "
       "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"}};
  const std::vector<std::string> numbers = {"--min-count", "4", "--log", "--normalize", "minmax"};
  std::vector<std::string> job = {python,    (source / "tools/spark/criteo_to_parquet.py").string(),
                                  "--train", "train.tsv",
                                  "--eval",  "val.tsv",
                                  "--out",   "parquet",
                                  "--files", "2"};
  job.insert(job.end(), numbers.begin(), numbers.end());
  const Outcome spark = run_program("/usr/bin/env", job, folder.path(), local);
  ASSERT_EQ(spark.exit_code, 0) << spark.err;
  std::vector<std::string> same = {"--criteo", "train.tsv", "--eval-input", "val.tsv", "--out", "norm"};
  same.insert(same.end(), numbers.begin(), numbers.end());
  ASSERT_EQ(run_program("preprocess", same, folder.path()).exit_code, 0);
  const Outcome compared = run_program(
      "/usr/bin/env", {python, (source / "test/reference/spark.py").string(), "parquet", "norm"}, folder.path(), local);
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
}

}  // namespace
}  // namespace hctr::test
