// The output of preprocess equals that of a plain Python implementation: with any number of threads, after an
// interruption, and on invalid input.
#include <gtest/gtest.h>

#include <csignal>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

const fs::path kReference = hctr::test::source_dir() / "test/reference/preprocess.py";

Outcome python(std::vector<std::string> arguments, const fs::path& folder) {
  arguments.insert(arguments.begin(), {"python3", kReference.string()});
  return run_program("/usr/bin/env", arguments, folder);
}

void make_rows(const TemporaryFolder& folder, int rows) {
  const Outcome made = python({"make", std::to_string(rows), "rows.tsv"}, folder.path());
  ASSERT_EQ(made.exit_code, 0) << made.err;
}

/// A table with line breaks in quotes, a list column, an optional column and a time column.
std::string table(int rows) {
  std::string text = "user,movie,time,genres,age,click\n";
  const char* lists[] = {"", "a", "b|ccc", "a|dd|e"};
  for (int i = 0; i < rows; ++i)
    text += "u" + std::to_string(i * i % 97) + ",\"the \"\"" + std::to_string(i % 31) + "\"\",\n film\",\"" +
            std::to_string(i * 7 % 1000) + "\"," + lists[i % 4] + "," +
            (i % 5 == 0   ? ""
             : i % 7 == 0 ? " +12 "
             : i % 3 == 0 ? "-2e1"
                          : std::to_string(i % 60)) +
            "," + std::to_string(i % 3 == 1) + "\n";
  return text;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Preprocess, EveryRecordIsWhatPlainPythonExpects) {
  const TemporaryFolder folder;
  make_rows(folder, 3000);
  const std::vector<std::vector<std::string>> rows = {
      {"--min-count", "6", "--log", "--normalize", "minmax", "--cross", "C1xC2", "C3xC4", "--holdout", "0.1"},
      {"--passes", "1", "--range", "1000", "--log", "--cross", "C1xC2", "--holdout", "0.25", "--random", "--seed", "5"},
      {"--format", "Raw", "--integers", "--modulo", "3000"},
      {"--format", "Raw", "--normalize", "standard", "--fill", "mean", "--min-count", "2", "--cross", "C5xC6",
       "--holdout", "0.3", "--random"},
      {"--key-bits", "64", "--check", "none", "--fill", "-1", "--normalize", "minmax"}};
  for (const auto& options : rows) {
    fs::remove_all(folder / "out");
    const Outcome done =
        run_program("preprocess", joined({"--criteo", "rows.tsv", "--out", "out"}, options), folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Outcome compared = python(joined({"compare", "out", "rows.tsv"}, options), folder.path());
    EXPECT_EQ(compared.exit_code, 0) << options[1] << ": " << compared.err;
  }
}

TEST(Preprocess, TablesWithNamesQuotesListsAndATimeToSplitBy) {
  const TemporaryFolder folder;
  write_file(folder / "rows.csv", table(2000));
  write_file(folder / "more.csv", table(300));
  const std::vector<std::string> roles = {"--label",      "click",      "--dense", "age",
                                          "--categories", "user,movie", "--lists", "genres"};
  const std::vector<std::vector<std::string>> rows = {
      {"--min-count", "3", "--split", "time=800", "--cross", "userxmovie", "--normalize", "standard"},
      {"--min-count", "3", "--eval-input", "more.csv", "--fill", "mean"},
      {"--passes", "1", "--range", "300", "--cross", "userxmovie"},
      {"--passes", "1", "--range", "300", "--modulo", "500"}};
  for (const auto& options : rows) {
    fs::remove_all(folder / "out");
    const auto all = joined(roles, options);
    const Outcome done = run_program("preprocess", joined({"--csv", "rows.csv", "--out", "out"}, all), folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("\"nnz_per_slot\": [\n        1,\n        1,\n        3\n      ]"), std::string::npos)
        << done.out;
    const Outcome compared = python(joined({"compare", "out", "rows.csv", "--csv"}, all), folder.path());
    EXPECT_EQ(compared.exit_code, 0) << compared.err;
  }
}

TEST(Preprocess, RowsOfADayOrLaterAreForEvaluation) {
  const TemporaryFolder folder;
  std::string text = "day,city,bought\n";
  for (int i = 0; i < 28; ++i) text += "2024-02-" + std::to_string(100 + i + 1).substr(1) + " 08:00,Oslo,0\n";
  write_file(folder / "rows.csv", text + "soon,Oslo,1\n");
  const Outcome done = run_program("preprocess",
                                   {"--csv", "rows.csv", "--out", "out", "--label", "bought", "--categories", "city",
                                    "--split", "day=2024-02-20", "--bad-rows", "skip"},
                                   folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json described = Json::read_file(folder / "out/preprocess.json");
  EXPECT_EQ(*described.find("train")->find("rows")->integer(), 19);
  EXPECT_EQ(*described.find("eval")->find("rows")->integer(), 9);
  EXPECT_NE(done.err.find("column day: expected a date such as 2017-04-01 or 2017-04-01T12:30, found 'soon'"),
            std::string::npos)
      << done.err;
}

TEST(Preprocess, BytesDoNotDependOnTheNumberOfThreads) {
  const TemporaryFolder folder;
  make_rows(folder, 20000);  // several blocks of a megabyte
  std::string results[3];
  for (int i = 0; i < 3; ++i) {
    const Outcome done = run_program(
        "preprocess",
        {"--criteo", "rows.tsv", "--out", "out", "--min-count", "3", "--log", "--normalize", "standard", "--holdout",
         "0.1", "--random", "--rows-per-file", "7000", "--threads", std::to_string(1 + 2 * i), "--force"},
        folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    for (const char* file :
         {"train.txt", "train.0.data", "train.1.data", "train.2.data", "val.txt", "val.0.data", "preprocess.json"}) {
      EXPECT_TRUE(fs::exists(folder / "out" / file)) << file;
      results[i] += read_file(folder / "out" / file);
    }
  }
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

TEST(Preprocess, TheResultTrainsWithThePrintedDataLayer) {
  const TemporaryFolder folder;
  make_rows(folder, 3000);
  const Outcome done = run_program("preprocess",
                                   {"--criteo", "rows.tsv", "--out", "out", "--log", "--cross", "C1xC2", "C3xC4",
                                    "--holdout", "0.2", "--key-bits", "64"},
                                   folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  std::string text = with_change(read_file(hctr::test::source_dir() / "samples/wdl/wdl.json"), "\"batchsize\": 16384",
                                 "\"batchsize\": 64");
  text = with_change(text, "\"batchsize_eval\": 16384", "\"batchsize_eval\": 64");
  const Json wdl = Json::parse(text, "wdl.json"), data = *Json::read_file(folder / "out/preprocess.json").find("data");
  EXPECT_NE(done.out.find(data.text(2)), std::string::npos) << "printed is what the description holds";
  Json config, layers(Json::Array{data});
  for (size_t i = 1; i < wdl.find("layers")->array()->size(); ++i) layers.add((*wdl.find("layers")->array())[i]);
  for (const auto& [key, value] : *wdl.object()) config.set(key, key == "layers" ? layers : value);
  write_file(folder / "config.json", config.text(2));
  const Outcome trained = run_program(
      "huge_ctr", {"--train", "config.json", "--run-dir", "run", "--max-iter", "3", "--device", "cpu"}, folder.path());
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST(Preprocess, AKilledRunLeavesNothingThatLooksWhole) {
  const TemporaryFolder folder;
  make_rows(folder, 60000);
  const Outcome first =
      run_program("preprocess", {"--criteo", "rows.tsv", "--out", "out", "--holdout", "0.5"}, folder.path());
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome killed = run_and_signal(
      "preprocess", {"--criteo", "rows.tsv", "--out", "out", "--holdout", "0.5", "--threads", "1", "--force"},
      folder.path(), "counting values", SIGKILL);
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << "it was done before it could be killed: make more rows";
  for (const char* file : {"train.txt", "val.txt", "preprocess.json"})
    EXPECT_FALSE(fs::exists(folder / "out" / file)) << file;
}

TEST(Preprocess, InputThatIsNotRightIsNamedWithItsPlaceAndARemedy) {
  const TemporaryFolder folder;
  make_rows(folder, 20);
  const std::string rows = read_file(folder / "rows.tsv");
  const auto message = [&](const std::string& text, std::vector<std::string> options, int code) {
    write_file(folder / "bad", text);
    const Outcome done = run_program("preprocess", joined(options, {"--out", "out", "--force"}), folder.path());
    EXPECT_EQ(done.exit_code, code) << done.err;
    EXPECT_FALSE(fs::exists(folder / "out/train.txt"));
    return done.err;
  };
  const auto says = [](const std::string& found, const std::string& piece) {
    EXPECT_NE(found.find(piece), std::string::npos) << "no \"" << piece << "\" in: " << found;
  };
  const std::vector<std::string> criteo = {"--criteo", "bad"};
  says(message(rows + "1\t2\n", criteo, 4), "'bad' line 21, at byte " + std::to_string(rows.size()) +
                                                ": expected 40 fields separated by tabs, found 2; --bad-rows skip");
  says(message("2" + rows.substr(1), criteo, 4), "'bad' line 1, at byte 0: column label: expected 0 or 1, found '2'");
  says(message(rows.substr(0, rows.find('\n')) + "x\n", criteo, 4),
       "column C26: expected up to 8 hexadecimal digits or nothing, found '");
  says(message("0\tx" + rows.substr(rows.find('\t', 2)), criteo, 4),
       "column I1: expected an integer or nothing, found 'x'");
  says(message(std::string("\x28\xb5\x2f\xfd") + rows, criteo, 4), "'bad' is damaged");
  says(message(std::string("\x1f\x8b\x08\0", 4) + rows, criteo, 4), "'bad' is damaged or truncated");
  says(message("", criteo, 4), "no rows for training");
  says(message(rows, {"--criteo", "none.tsv"}, 5), "cannot open data file 'none.tsv'");
  const std::vector<std::string> csv = {"--csv", "bad", "--label", "click", "--categories"};
  says(message(table(5), joined(csv, {"usr"}), 2), "there is no column \"usr\"; did you mean \"user\"?");
  says(message("user,click\na,1\nb\n", joined(csv, {"user"}), 4),
       "'bad' line 3, at byte 15: expected 2 fields separated by ',', found 1");
  says(message("user,click\na\"b,1\n\"a\"b,1\n", joined(csv, {"user"}), 4),
       "line 3, at byte 17: value 1 continues after its closing quote: 'b'");
  says(message("user,click\na,\n", joined(csv, {"user"}), 4), "column click: expected a number, found ''");
  says(message(rows, {"--criteo", "bad", "--passes", "1", "--normalize", "minmax"}, 2), "use --passes 2");
  says(message(rows, {"--criteo", "bad", "--format", "raw"}, 2),
       "--format: expected Norm, Parquet or Raw, found \"raw\"; did you mean \"Raw\"?");
  says(message(rows, {"--criteo", "bad", "--integers"}, 2), "--integers requires --format Raw");
  says(message(rows, {"--criteo", "bad", "--fill", "1e39"}, 2), "--fill: expected a number, found '1e39'");
  says(message(rows, {"--criteo", "bad", "--cross", "C1xC99"}, 2), "there is no category \"C99\"");
}

TEST(Preprocess, BadRowsAreLeftOutWhereAskedFor) {
  const TemporaryFolder folder;
  make_rows(folder, 50);
  write_file(folder / "bad.tsv", "1\t2\n" + read_file(folder / "rows.tsv") + "nonsense\n");
  const Outcome done =
      run_program("preprocess", {"--criteo", "bad.tsv", "--out", "out", "--bad-rows", "skip"}, folder.path());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("2 bad rows were skipped, the first: 'bad.tsv' line 1, at byte 0: expected 40 fields"),
            std::string::npos)
      << done.err;
  EXPECT_EQ(*Json::read_file(folder / "out/preprocess.json").find("train")->find("rows")->integer(), 50);

  const std::vector<std::string> limited = {"--criteo",   "bad.tsv", "--out",         "limited",
                                            "--bad-rows", "skip",    "--max-bad-rows"};
  for (const char* passes : {"1", "2"}) {
    const Outcome stopped = run_program("preprocess", joined(limited, {"1", "--passes", passes}), folder.path());
    EXPECT_EQ(stopped.exit_code, 4) << stopped.err;
    EXPECT_NE(stopped.err.find("2 bad rows so far, but --max-bad-rows allows 1; one of the last bad rows: 'bad.tsv' "
                               "line "),
              std::string::npos)
        << stopped.err;
    EXPECT_FALSE(fs::exists(folder / "limited/train.txt"));
  }
  EXPECT_EQ(run_program("preprocess", joined(limited, {"2"}), folder.path()).exit_code, 0);
}

}  // namespace
}  // namespace hctr::test
