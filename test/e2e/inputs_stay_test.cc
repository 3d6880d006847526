// No program overwrites one of its input files, whichever option or field names the output.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "support/norm_file.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

class InputsStay : public testing::Test {
 protected:
  /// Runs a program whose output path is its input `file`. The program must refuse.
  void expect_refused(const std::string& program, const std::vector<std::string>& words, const std::string& file,
                      int code = 2) {
    const std::string before = read_file(folder_ / file);
    const Outcome outcome = run_program(program, words, folder_.path());
    EXPECT_EQ(outcome.exit_code, code) << program << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("is a file that this command reads"), std::string::npos) << outcome.err;
    EXPECT_EQ(read_file(folder_ / file), before) << program;
  }
  TemporaryFolder folder_;
};

TEST_F(InputsStay, OfTraining) {
  write_file(folder_ / "config.json", small_config());
  make_data(folder_.path(), "config.json", 300, 100);
  const auto train = [](const std::string& config, std::vector<std::string> more) {
    more.insert(more.begin(), {"--train", config, "--device", "cpu"});
    return more;
  };
  expect_refused("huge_ctr", train("config.json", {"--run-dir", "."}), "config.json");
  expect_refused("huge_ctr", train("config.json", {"--run-dir", "r", "--metrics-file", "train.txt"}), "train.txt");
  write_file(folder_ / "over.json", R"({"include": "config.json"})");
  expect_refused("huge_ctr", train("over.json", {"--run-dir", "r", "--metrics-file", "config.json"}), "config.json");
  const std::string data_file = fs::path(listed_file(folder_ / "train.txt", 0)).filename();
  write_file(folder_ / "bad.json", with_change(small_config(), "\"source\": \"train.txt\"",
                                               cat("\"source\": \"train.txt\", \"bad_records\": \"skip\", "
                                                   "\"bad_records_file\": \"",
                                                   data_file, "\"")));
  expect_refused("huge_ctr", train("bad.json", {"--run-dir", "r"}), data_file, 3);
  fs::copy(folder_ / "eval.txt", folder_ / "p_label_30");
  write_file(folder_ / "export.json", with_change(with_change(small_config(), "\"eval.txt\"", "\"p_label_30\""),
                                                  "\"seed\": 7", "\"seed\": 7, \"export_predictions_prefix\": \"p\""));
  expect_refused("huge_ctr", train("export.json", {"--run-dir", "r"}), "p_label_30", 3);
}

TEST_F(InputsStay, OfTheDataTools) {
  fs::create_directories(folder_ / "out");
  const std::string rows = "label,city\n1,a\n0,b\n1,a\n";
  write_file(folder_ / "out/train.0.data", rows);
  expect_refused("preprocess",
                 {"--csv", "out/train.0.data", "--label", "label", "--categories", "city", "--out", "out"},
                 "out/train.0.data");
  write_file(folder_ / "out/val.txt", rows);
  expect_refused("preprocess",
                 {"--csv", "out/val.txt", "--label", "label", "--categories", "city", "--out", "out", "--force"},
                 "out/val.txt");
  write_file(folder_ / "rows.txt", "1 2 3\n");
  expect_refused("criteo2hugectr", {"rows.txt", "norm/part", "./rows.txt"}, "rows.txt");
  expect_refused("criteo2hugectr", {"out/train.0.data", "out/train.", "list.txt"}, "out/train.0.data");
  write_file(folder_ / "config.json", small_config());
  make_data(folder_.path(), "config.json", 300, 100);
  expect_refused("data_inspect", {"--config", "config.json", "--json", "train.txt"}, "train.txt");
}

TEST(OutputsOfTwoPrograms, AreRefusedToTheSecond) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  write_file(folder / "rows.csv", "label,city\n1,a\n0,b\n");
  const FileLock out(folder / "out/", "a test"), list(folder / "train.txt", "a test");
  const auto expect_taken = [&](const std::string& program, const std::vector<std::string>& words) {
    const Outcome outcome = run_program(program, words, folder.path());
    EXPECT_EQ(outcome.exit_code, 5) << program << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("another process is writing to "), std::string::npos) << outcome.err;
  };
  expect_taken("preprocess", {"--csv", "rows.csv", "--label", "label", "--categories", "city", "--out", "out"});
  expect_taken("criteo2hugectr", {"--tsv", "rows.csv", "--out", "out"});
  expect_taken("criteo2hugectr", {"rows.csv", "part", "train.txt"});
  expect_taken("data_generator", {"--config", "config.json", "--samples", "10", "--eval-samples", "10"});
  EXPECT_FALSE(fs::exists(folder / "eval.txt"));
}

}  // namespace
}  // namespace hctr::test
