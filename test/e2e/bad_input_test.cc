// Every user error has a message with the position, the invalid value, and a valid value.
#include <gtest/gtest.h>

#include <regex>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "support/devices.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class BadInput : public testing::Test {
 protected:
  /// Runs `option` on `config`. Expects this exit code, and a message that contains every string of `pieces`.
  void expect(const std::string& option, const std::string& config, int exit_code,
              const std::vector<std::string>& pieces) {
    write_file(folder_ / "config.json", config);
    const Outcome outcome = run_program("huge_ctr", {option, "config.json", "--device", "cpu"}, folder_.path());
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
  }
  void check(const std::string& from, const std::string& to, const std::vector<std::string>& pieces) {
    expect("--check", with_change(small_config(), from, to), 3, pieces);
  }
  /// Generates valid data, lets `spoil` damage a file, and trains.
  template <class Spoil>
  void train(Spoil spoil, int exit_code, const std::vector<std::string>& pieces,
             const std::string& config = small_config()) {
    write_file(folder_ / "config.json", small_config());
    make_data(folder_.path(), "config.json", 2000, 500);
    spoil();
    expect("--train", config, exit_code, pieces);
  }
  /// The first data file in a file list.
  std::filesystem::path first_file(const std::string& list) {
    std::istringstream lines(read_file(folder_ / list));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    return folder_ / line;
  }

  TemporaryFolder folder_;
};

TEST_F(BadInput, MissingConfig) {
  const Outcome outcome = run_program("huge_ctr", {"--train", "nowhere.json"}, folder_.path());
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_NE(outcome.err.find("'nowhere.json'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("No such file"), std::string::npos) << outcome.err;
}

TEST_F(BadInput, MalformedJsonIsNamedByLineAndColumn) {
  expect("--check", "{\n  \"solver\": {\n    \"display\": 1,,\n  }\n}\n", 3,
         {"config.json: line 3, column 18", "not valid JSON"});
  expect("--check", "{\"solver\": {", 3, {"line 1", "ends too early"});
  expect("--check", "{\"solver\": 1, \"solver\": 2}", 3, {"\"solver\" appears twice"});
}

TEST_F(BadInput, MisspeltKey) {
  check("\"batchsize\"", "\"batchsiez\"",
        {"/solver/batchsiez", "did you mean \"batchsize\"?", "solver needs \"batchsize\""});
  check("\"num_output\": 16", "\"num_ouput\": 16", {"/layers/6/fc_param/num_ouput", "did you mean \"num_output\"?"});
  check("\"fc_param\": {\"num_output\": 16}", "\"fc_parm\": {\"num_output\": 16}",
        {"/layers/6/fc_parm", "did you mean \"fc_param\"?"});
}

TEST_F(BadInput, ForeignKeyIsAWarningAndAnErrorWhenStrict) {
  const std::string config =
      with_change(small_config(), "\"num_output\": 16", "\"num_output\": 16, \"colour_of_the_bike_shed\": 1");
  write_file(folder_ / "config.json", config);
  Outcome outcome = run_program("huge_ctr", {"--check", "config.json"}, folder_.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: config.json /layers/6/fc_param/colour_of_the_bike_shed"), std::string::npos)
      << outcome.err;
  outcome = run_program("huge_ctr", {"--check", "config.json", "--strict"}, folder_.path());
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  check("\"max_iter\"", "\"colour_of_the_bike_shed\": 1, \"max_iter\"",
        {"/solver/colour_of_the_bike_shed: solver has no field"});
}

TEST_F(BadInput, WrongType) {
  check("\"batchsize\": 128", "\"batchsize\": \"many\"",
        {"/solver/batchsize", "expected an integer", "the string \"many\""});
  check("\"batchsize\": 128", "\"batchsize\": -3", {"/solver/batchsize", "at least 1", "-3"});
  check("\"rate\": 0.1", "\"rate\": 1.5", {"/layers/8/rate", "less than 1", "1.5"});
  check("\"update_type\": \"Global\"", "\"update_type\": \"Globl\"",
        {"/optimizer/update_type", "did you mean \"Global\"?"});
}

TEST_F(BadInput, UnknownLayer) {
  check("\"type\": \"ReLU\"", "\"type\": \"RelU6\"",
        {"/layers/7/type", "no such layer: \"RelU6\"", "did you mean \"ReLU\"?"});
  check("\"type\": \"Add\"", "\"type\": \"Transmogrifier\"", {"/layers/10/type", "no such layer", "InnerProduct"});
}

TEST_F(BadInput, MissingBottom) {
  check("\"bottom\": \"relu1\"", "\"bottom\": \"relu_1\"",
        {"/layers/8/bottom", "no layer produces \"relu_1\"", "did you mean \"relu1\"?"});
  check("\"bottom\": \"relu1\", ", "", {"/layers/8", "needs \"bottom\""});
  check("\"bottom\": \"wide_data\"", "\"bottom\": \"wide_dat\"", {"/layers/1/bottom", "did you mean \"wide_data\"?"});
  check("\"bottom\": \"wide_emb\"", "\"bottom\": \"wide_data\"", {"/layers/3/bottom", "only an embedding can read it"});
}

TEST_F(BadInput, ShapesThatDoNotFit) {
  check("\"leading_dim\": 15", "\"leading_dim\": 16",
        {"/layers/4/leading_dim", "[128,3,5]", "rows of 16", "a leading_dim that fits is 15"});
  check("\"bottom\": [\"fc2\", \"wide\"]", "\"bottom\": [\"relu1\", \"wide\"]",
        {"/layers/10/bottom/1", "[128,16]", "[128,1]"});
  check("\"bottom\": \"concat1\"", "\"bottom\": \"deep_emb\"", {"/layers/6/bottom", "add a Reshape before it"});
  check("\"bottom\": [\"add1\", \"label\"]", "\"bottom\": [\"relu1\", \"label\"]",
        {"/layers/11/bottom/0", "one column", "[128,16]"});
}

TEST_F(BadInput, WrongArity) {
  check("\"bottom\": [\"add1\", \"label\"]", "\"bottom\": [\"add1\"]",
        {"/layers/11/bottom", "takes 2 to 3 bottoms", "found 1"});
  check("\"bottom\": [\"fc2\", \"wide\"]", "\"bottom\": [\"fc2\"]",
        {"/layers/10/bottom", "takes 2 or more bottoms", "found 1"});
}

TEST_F(BadInput, CyclesDoubledNamesAndLooseEnds) {
  check("\"bottom\": \"concat1\"", "\"bottom\": \"dropout1\"", {"a cycle"});
  check("\"top\": \"relu1\"", "\"top\": \"fc1\"", {"a tensor named \"fc1\" already exists, from /layers/6/top"});
  const std::string unread =
      with_change(small_config(), "\"bottom\": [\"fc2\", \"wide\"]", "\"bottom\": [\"fc2\", \"fc2\"]");
  write_file(folder_ / "unread.json", unread);
  const Outcome checked = run_program("huge_ctr", {"--check", "unread.json"}, folder_.path());
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.err.find("warning: unread.json /layers/3/top: no layer reads \"wide\": its gradient is zero"),
            std::string::npos)
      << checked.err;
  const Outcome strict = run_program("huge_ctr", {"--check", "unread.json", "--strict"}, folder_.path());
  EXPECT_EQ(strict.exit_code, 3) << strict.err;
}

TEST_F(BadInput, AllProblemsAreReportedInOneGo) {
  std::string config = with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 0");
  config = with_change(config, "\"rate\": 0.1", "\"rate\": 2");
  config = with_change(config, "\"bottom\": \"relu1\"", "\"bottom\": \"relu\"");
  expect("--check", config, 3, {"3 problems", "/solver/batchsize", "/layers/8/rate", "/layers/8/bottom"});
}

TEST_F(BadInput, MissingDataFiles) {
  write_file(folder_ / "config.json", small_config());
  expect("--train", small_config(), 5, {"train.txt"});
  train([&] { std::filesystem::remove(first_file("train.txt")); }, 5, {"train.txt", "line 2"});
}

TEST_F(BadInput, FileListWithAMissingEntry) {
  train([&] { write_file(folder_ / "train.txt", "9\n" + read_file(folder_ / "train.txt").substr(2)); }, 4,
        {"train.txt", "9"});
}

TEST_F(BadInput, TruncatedDataFile) {
  train(
      [&] {
        const auto file = first_file("train.txt");
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
      },
      4, {"record", "byte"});
}

TEST_F(BadInput, ARecordThatFailsItsCheckSumIsLeftOutAndCounted) {
  write_file(folder_ / "config.json", small_config());
  make_data(folder_.path(), "config.json", 2000, 500);
  const auto file = first_file("train.txt");
  std::string bytes = read_file(file);
  bytes[69 + 4 + 5] =
      // the floats of the first record follow the framed file header (69 bytes) and the record length (4 bytes)
      static_cast<char>(bytes[69 + 4 + 5] ^ 0x10);
  write_file(file, bytes);
  write_file(folder_ / "once.json", with_change(small_config(), "\"max_iter\": 60", "\"num_epochs\": 1"));
  const Outcome outcome = run_program("huge_ctr", {"--train", "once.json", "--run-dir", "run"}, folder_.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1 bad record was skipped"), std::string::npos) << outcome.err;
  EXPECT_NE(read_file(folder_ / "run" / "summary.json").find("\"skipped_records\": 1"), std::string::npos);
}

TEST_F(BadInput, HeaderThatDisagreesWithTheConfig) {
  train([] {}, 4, {"dense_dim", "4", "5"}, with_change(small_config(), "\"dense_dim\": 4", "\"dense_dim\": 5"));
  train([] {}, 4, {"slot", "4", "5"},
        with_change(with_change(small_config(), "\"slot_num\": 3", "\"slot_num\": 4"), "\"leading_dim\": 15",
                    "\"leading_dim\": 20"));
}

TEST_F(BadInput, MoreKeysInASampleThanDeclared) {
  train([] {}, 4, {"wide_data", "record"},
        with_change(small_config(), "\"max_feature_num_per_sample\": 2", "\"max_feature_num_per_sample\": 1"));
}

TEST_F(BadInput, MoreKeysThanATableMayHaveStopsTrainingAndSavesIt) {
  std::string config = with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 4");
  config = with_change(config, "1000, \"embedding_vec_size\": 5", "200, \"grow\": false, \"embedding_vec_size\": 5");
  write_file(folder_ / "config.json", config);
  make_data(folder_.path(), "config.json", 2000, 500);
  for (const Device device : devices()) {
    const std::string name = device.is_cuda() ? "cuda" : "cpu";
    const Outcome outcome =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", name, "--device", name}, folder_.path());
    EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
    for (const char* piece : {"table 'deep_emb' on rank 0", "the 200 rows", "max_vocabulary_size_per_gpu",
                              "while training iteration", "is saved as out/_dense_"})
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in: " << outcome.err;
    // The number of rows is within the limit, so the saved model is complete, and training can load it.
    const size_t at = outcome.err.find("out/_dense_") + 11;
    const std::string iteration = outcome.err.substr(at, outcome.err.find(".model", at) - at);
    const auto rows =
        std::filesystem::file_size(folder_ / ("out/1_sparse_" + iteration + ".model")) / (8 + 8 + 5 * sizeof(float));
    EXPECT_LE(rows, 200u);
    EXPECT_GT(rows, 150u);
    const std::string more = with_change(with_change(config, "200, \"grow\": false", "200"), "\"seed\": 7",
                                         "\"seed\": 7, \"dense_model_file\": \"out/_dense_" + iteration +
                                             ".model\", \"sparse_model_file\": [\"out/0_sparse_" + iteration +
                                             ".model\", \"out/1_sparse_" + iteration + ".model\"]");
    write_file(folder_ / "more.json", more);
    EXPECT_EQ(
        run_program("huge_ctr", {"--train", "more.json", "--run-dir", name + "-more", "--device", name}, folder_.path())
            .exit_code,
        0);
  }
}

TEST_F(BadInput, CommandLine) {
  const auto expect_usage = [&](const std::vector<std::string>& arguments, const std::string& piece) {
    const Outcome outcome = run_program("huge_ctr", arguments, folder_.path());
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
  };
  expect_usage({}, "nothing to do");
  expect_usage({"\xe2\x80\x93-train", "config.json"}, "type --train");
  expect_usage({"\xe2\x80\x94train", "config.json"}, "type --train");
  expect_usage({"--trian", "config.json"}, "--trian");
  expect_usage({"--train"}, "--train");
  EXPECT_EQ(run_program("huge_ctr", {"--help"}, folder_.path()).exit_code, 0);
  expect_usage({"trian", "config.json"}, "unexpected argument 'trian'; did you mean \"train\"?");
  expect_usage({"train"}, "huge_ctr train needs FILE.json");
  expect_usage({"train", "config.json", "--gpus", "2"}, "huge_ctr train has no option --gpus");
  expect_usage({"train", "config.json", "more.json"}, "has no argument 'more.json'");
  expect_usage({"check", "config.json", "--train", "config.json"}, "two commands");
}

// Every option has an equivalent command with the same effect and output.
TEST_F(BadInput, CommandsAreOptionsToo) {
  write_file(folder_ / "config.json", small_config());
  std::string table = "clicked,item\n";
  for (int i = 0; i < 200; ++i) table += cat(i % 2, ",", i % 7, "\n");
  write_file(folder_ / "table.csv", table);
  const auto expect_equal = [&](const std::vector<std::string>& command, const std::vector<std::string>& options) {
    const Outcome one = run_program("huge_ctr", command, folder_.path()),
                  other = run_program("huge_ctr", options, folder_.path());
    EXPECT_EQ(one.exit_code, other.exit_code) << one.err << other.err;
    EXPECT_EQ(one.out, other.out);
    // these lines contain the elapsed time
    const std::regex line_of_progress(R"(Looking at the (evaluation )?rows.*: .*\n)");
    EXPECT_EQ(std::regex_replace(one.err, line_of_progress, ""), std::regex_replace(other.err, line_of_progress, ""));
  };
  expect_equal({"check", "config.json", "--gpu-name", "H200"}, {"--check", "config.json", "--gpu-name", "H200"});
  expect_equal({"check", "--format", "json", "config.json"}, {"--format", "json", "--check", "config.json"});
  expect_equal({"init", "table.csv", "--label", "clicked", "--eval", "table.csv"},
               {"--init", "table.csv", "--label", "clicked", "--eval", "table.csv"});
  expect_equal({"explain", "Adam"}, {"--explain", "Adam"});
  expect_equal({"train", "none.json"}, {"--train", "none.json"});
  expect_equal({"eval", "config.json", "--model", "none"}, {"--eval", "config.json", "--model", "none"});
  expect_equal({"predict", "config.json", "--model", "none", "--out", "-"},
               {"--predict", "config.json", "--model", "none", "--out", "-"});
  expect_equal({"export", "onnx", "none", "--out", "to"}, {"--export", "onnx", "none", "--out", "to"});
  expect_equal({"report", "a", "b", "--out", "page.html"}, {"--report", "a", "b", "--out", "page.html"});
}

TEST_F(BadInput, SeveralProcesses) {
  write_file(folder_ / "config.json", small_config());
  const Outcome outcome =
      run_program("huge_ctr", {"--train", "config.json"}, folder_.path(),
                  {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"ASAN_OPTIONS", "detect_leaks=0"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("started as 2 processes"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("MPI"), std::string::npos)
      << "without MPI, or with another one, nothing joins them: " << outcome.err;
}

TEST_F(BadInput, AVariableOfALauncherIsNamedWithTheHost) {
  write_file(folder_ / "config.json", small_config());
  const Outcome outcome = run_program("huge_ctr", {"--train", "config.json"}, folder_.path(),
                                      {{"RANK", "7"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  for (const std::string& piece : {std::string("RANK=7 and WORLD_SIZE=2"), cat("variables on ", host_name())})
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
}

TEST_F(BadInput, AskingForAGpuThatIsNotThereSaysWhatWasLookedFor) {
  write_file(folder_ / "config.json", small_config());
  const Outcome outcome = run_program("huge_ctr", {"--train", "config.json", "--device", "cuda"}, folder_.path(),
                                      {{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
  EXPECT_NE(outcome.err.find("--device cuda: no usable GPU"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace hctr::test
