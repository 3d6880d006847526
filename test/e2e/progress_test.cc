// On a terminal, every tool that reads or writes whole data sets shows a progress bar, the rate and the remaining time,
// for every format.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/run_program.h"

namespace hctr::test {
namespace {

TEST(Progress, EveryToolShowsABarItsRateAndTheTimeLeft) {
  const TemporaryFolder folder;
  std::string clicks, old_text, csv;
  for (int i = 0; i < 20000; ++i) {
    clicks += std::to_string(i % 2);
    old_text += std::to_string(i % 2);
    for (int k = 0; k < 39; ++k) clicks += "\t" + std::to_string(i % (k + 7));
    for (int k = 0; k < 39; ++k) old_text += " " + std::to_string(i % (k + 7));
    csv += std::to_string(i % 2) + "," + std::to_string(i % 1000);
    for (std::string* text : {&clicks, &old_text, &csv}) *text += '\n';
  }
  write_file(folder / "rows.tsv", clicks);
  write_file(folder / "rows.txt", old_text);
  write_file(folder / "rows.csv", csv);
  write_file(folder / "small.json", small_config());
  write_file(
      folder / "criteo.json",
      R"({"layers": [{"type": "Data", "format": "Criteo", "source": "rows.tsv.gz", "label": {"top": "y", "label_dim": 1},
    "dense": {"top": "d", "dense_dim": 13}, "sparse": [{"top": "k", "slot_num": 26, "max_nnz": 1, "max_feature_num_per_sample": 26}]}]})");
  ASSERT_EQ(run_program("/bin/bash", {"-c", "gzip -k rows.tsv rows.csv"}, folder.path()).exit_code, 0);
  struct Run {
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> works;  // labels of the progress bars, in output order
  };
  const std::vector<std::string> describe = {"describe", "--features",    "y,a", "--label",
                                             "y",        "--categorical", "a",   "--train"};
  const auto described = [&](const std::string& file, const std::string& spec) {
    std::vector<std::string> all = describe;
    all.insert(all.end(), {file, "--out", spec});
    return all;
  };
  const std::vector<Run> runs = {{"preprocess",
                                  {"--criteo", "rows.tsv.gz", "--out", "ids", "--holdout", "0.1"},
                                  {"counting rows", "counting values", "writing"}},
                                 {"criteo2hugectr",
                                  {"--tsv", "rows.tsv", "--out", "criteo", "--min-count", "2", "--holdout", "0.1"},
                                  {"counting rows", "counting values", "writing"}},
                                 {"criteo2hugectr", {"rows.txt", "old/part", "old.txt"}, {"converting"}},
                                 {"data_generator",
                                  {"--config", "small.json", "--samples", "30000", "--eval-samples", "30000"},
                                  {"writing train.txt", "writing eval.txt"}},
                                 {"data_inspect", {"train.txt"}, {"reading"}},
                                 {"data_inspect", {"--config", "criteo.json"}, {"reading"}},
                                 {"feature_spec", described("rows.csv", "plain.yaml"), {"reading train"}},
                                 {"feature_spec", described("rows.csv.gz", "packed.yaml"), {"reading train"}},
                                 {"feature_spec", {"transcode", "packed.yaml", "--out", "binary"}, {"writing train"}},
                                 {"feature_spec", {"check", "binary/feature_spec.yaml"}, {"reading train"}}};
  const auto expect_shown = [&](const Run& run) {
    const Outcome done = run_on_terminal(run.program, run.arguments, folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    size_t at = 0;
    for (const std::string& work : run.works) {
      const size_t begin = done.err.find(work + ": [", at), end = done.err.find('\n', begin);
      ASSERT_NE(begin, std::string::npos)
          << run.program << " " << run.arguments[0] << ": no bar of " << work << " in:\n"
          << done.err;
      const std::string shown = done.err.substr(begin, end - begin);
      for (const char* piece : {" of ", "/s, ", " left", " in "})
        EXPECT_NE(shown.find(piece), std::string::npos) << run.program << ": no \"" << piece << "\" in:\n" << shown;
      at = end;
    }
  };
  for (const Run& run : runs) expect_shown(run);
  ASSERT_EQ(run_program("huge_ctr", {"--train", "small.json", "--run-dir", "run", "--device", "cpu"}, folder.path())
                .exit_code,
            0);
  expect_shown({"table_inspect",
                {"small.json", "out/1_sparse_60.model", "--count", "20000"},
                {"counting keys", "reading the table"}});
}

}  // namespace
}  // namespace hctr::test
