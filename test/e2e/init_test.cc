// huge_ctr --init: from a table to a trained, evaluated and applied model without manual edits; and tables that --init
// rejects.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <vector>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/parquet/parquet_file.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// Pseudo-random number below `count`, determined by `row` and `purpose`.
int draw(int row, int purpose, int count) {
  return static_cast<int>(mix64(mix64(static_cast<uint64_t>(row)) + static_cast<uint64_t>(purpose)) %
                          static_cast<uint64_t>(count));
}

/// A row and its label. --init must find the columns that determine the label.
struct Row {
  int user, age, city, tags[3], tag_count, items[4], item_count, item;
  double income;
  bool positive;
};
Row row_of(int r) {
  Row row{};
  row.user = draw(r, 1, 40);
  row.age = 18 + draw(r, 2, 50);
  row.city = draw(r, 3, 6);
  row.income = std::exp(draw(r, 4, 1000) / 150.0);
  row.tag_count = draw(r, 5, 4);
  for (int i = 0; i < row.tag_count; ++i) row.tags[i] = draw(r, 10 + i, 8);
  row.item_count = draw(r, 6, 5);
  for (int i = 0; i < row.item_count; ++i) row.items[i] = draw(r, 20 + i, 30);
  row.item = draw(r, 7, 30);
  double score = (row.user % 3 - 1) * 1.5 + (row.city % 2 ? 1.2 : -1.2) + (std::abs(row.age - 43) < 12 ? 1.0 : -1.0);
  for (int i = 0; i < row.tag_count; ++i) score += row.tags[i] == 2 ? 2 : 0;
  row.positive = draw(r, 8, 1000) < 1000 / (1 + std::exp(-score));
  return row;
}

/// A Python list of strings as text, quoted for CSV.
std::string python_list(const Row& row) {
  std::string text;
  for (int i = 0; i < row.tag_count; ++i) text += cat(i ? ", '" : "'", "t", row.tags[i], "'");
  return cat("\"[", text, "]\"");
}

std::string joined_numbers(const int* numbers, int count, const char* separator, const char* prefix = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += cat(i ? separator : "", prefix, numbers[i]);
  return text;
}

/// A table with a column of each kind.
std::string mixed_table(int rows, int first = 0) {
  std::ostringstream text;
  text << "row,user,age,city,income,tags,liked,seen,item,day,note,bought\n";
  for (int r = first; r < first + rows; ++r) {
    const Row row = row_of(r);
    text << r << "," << row.user << "," << (draw(r, 9, 20) ? std::to_string(row.age) : "?") << ",\"town " << row.city
         << ", north\"," << row.income << "," << joined_numbers(row.tags, row.tag_count, "|", "t") << ","
         << python_list(row) << "," << joined_numbers(row.items, row.item_count, " ") << "," << row.item << ",2026-01-"
         << 10 + draw(r, 11, 20) << ",\"a note of some words, number " << draw(r, 12, 1 << 20) << "\","
         << (row.positive ? "yes" : "no") << "\n";
  }
  return text.str();
}

class InitTable : public testing::Test {
 protected:
  Outcome init(const std::vector<std::string>& more, const std::string& data = "data.csv") {
    std::vector<std::string> words = {"--init", data};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_.path());
  }
  Outcome huge_ctr(const std::vector<std::string>& words) { return run_program("huge_ctr", words, folder_.path()); }
  /// --init must fail with this exit code and a message that contains `part`, and must write no file.
  void expect_refusal(const std::vector<std::string>& words, int exit_code, const std::string& part,
                      const std::string& data = "data.csv") {
    const size_t before = files();
    const Outcome done = init(words, data);
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    EXPECT_NE(done.err.find(part), std::string::npos) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(files(), before) << "a refused --init leaves nothing";
  }
  /// The number of files in the folder. Hidden files belong to the test and do not count.
  size_t files() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      count += !entry.path().filename().string().starts_with(".");
    return count;
  }
  static double auc_of(const std::string& out) {
    const size_t at = out.find("AUC: ");
    return at == out.npos ? 0 : std::strtod(out.c_str() + at + 5, nullptr);
  }

  TemporaryFolder folder_;
};

TEST_F(InitTable, TrainsAndIsUsedWithNoHandEdit) {
  write_file(folder_ / "data.csv", mixed_table(3000));
  write_file(folder_ / "later.csv", mixed_table(500, 100'000));
  const Outcome done = init({"--label", "bought", "--positive", "yes", "--out", "bought.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  for (const char* line :
       {"label bought: positive if it is 'yes'", "  row: omitted: id", "  user: category", "  age: number and category",
        "  city: category: 6", "  income: number", "by its logarithm", "  tags: list of categories: '|'",
        "  liked: list of categories: in brackets, up to 3 values, 8 different ones", "  seen: list of categories: ' '",
        "  item: category", "  day: omitted: a date or time as text", "  note: omitted: text",
        "missing values: empty cells and '?'"})
    EXPECT_NE(done.err.find(line), std::string::npos) << line << " in\n" << done.err;
  const Outcome trained = huge_ctr({"--train", "bought.json", "--run-dir", "run", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome measured =
      huge_ctr({"--eval", "bought.json", "--model", "run", "--data", "later.csv", "--device", "cpu"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_GT(auc_of(measured.out), 0.8) << "the truth is at 0.87";
  const Outcome used = huge_ctr(
      {"--predict", "bought.json", "--model", "run", "--data", "later.csv", "--out", "scores.csv", "--device", "cpu"});
  ASSERT_EQ(used.exit_code, 0) << used.err;
}

TEST_F(InitTable, HoldsOutATenthByTheRowAlone) {
  const std::string text = mixed_table(2000);
  const size_t header = text.find('\n') + 1;
  write_file(folder_ / "data.csv", text);
  ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--out", "a.json"}).exit_code, 0);
  const std::string train = read_file(folder_ / "a.train.csv"), eval = read_file(folder_ / "a.eval.csv");
  const auto lines = [](const std::string& of) { return std::count(of.begin(), of.end(), '\n'); };
  EXPECT_EQ(lines(train) + lines(eval), lines(text) + 1) << "each row once, and the header twice";
  EXPECT_NEAR(static_cast<double>(lines(eval)), 200, 60);
  // Inserts additional rows before the earlier rows. Each earlier row must stay in its set (training or evaluation).
  write_file(folder_ / "data.csv",
             text.substr(0, header) + mixed_table(100, 50'000).substr(header) + text.substr(header));
  ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--out", "b.json"}).exit_code, 0);
  EXPECT_TRUE(read_file(folder_ / "b.eval.csv").ends_with(eval.substr(header)));
  EXPECT_TRUE(read_file(folder_ / "b.train.csv").ends_with(train.substr(header)));
}

TEST_F(InitTable, WritesTheConfigToTheStandardOutput) {
  write_file(folder_ / "data.csv", mixed_table(600));
  write_file(folder_ / "rest.csv", mixed_table(200, 1000));
  const Outcome done = init({"--label", "bought", "--positive", "yes", "--eval", "rest.csv"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(files(), 2U) << "with evaluation rows nothing is written";
  write_file(folder_ / "c.json", done.out);
  EXPECT_EQ(huge_ctr({"--check", "c.json", "--strict"}).exit_code, 0);
}

/// For all kinds of columns and all models, the config that --init writes has no error and no warning, and trains one
/// step.
TEST_F(InitTable, EveryConfigPassesTheStrictCheck) {
  const char* const columns[] = {"age", "income", "city", "user", "tags", "seen", "item"};
  const std::string all = mixed_table(400);
  int checked = 0;
  for (unsigned chosen = 1; chosen < 128; chosen += 9) {
    std::istringstream rows(all);
    std::string text;
    for (std::string line; std::getline(rows, line);) {
      // Cells of a row: row,user,age,city,income,tags,liked,seen,item,...,bought. The city is quoted and contains a
      // comma.
      std::vector<std::string> cells(1);
      bool inside = false;
      for (const char c : line) {
        inside = inside != (c == '"');
        if (c == ',' && !inside)
          cells.emplace_back();
        else
          cells.back() += c;
      }
      const size_t places[] = {2, 4, 3, 1, 5, 7, 8};
      for (size_t i = 0; i < 7; ++i)
        if (chosen & 1U << i) text += cells[places[i]] + ",";
      text += cells.back() + "\n";
    }
    write_file(folder_ / "data.csv", text);
    for (const char* model : {"wdl", "deepfm", "dcn", "dlrm", "din"}) {
      const std::string config = cat("c", chosen, model, ".json");
      const Outcome done = init({"--label", "bought", "--positive", "yes", "--template", model, "--out", config});
      const bool number = chosen & 3, category = chosen & 0x7d, din = (chosen & 0x20) && (chosen & 0x48);
      const bool possible = std::string(model) == "dlrm"  ? number && category
                            : std::string(model) == "din" ? din
                                                          : true;
      ASSERT_EQ(done.exit_code, possible ? 0 : 2) << config << " of " << columns[chosen % 7] << "\n" << done.err;
      if (!possible) continue;
      const Outcome right = huge_ctr({"--check", config, "--strict"});
      EXPECT_EQ(right.exit_code, 0) << right.err << read_file(folder_ / config);
      ++checked;
    }
  }
  EXPECT_GT(checked, 40);
}

TEST_F(InitTable, EveryModelTrains) {
  write_file(folder_ / "data.csv", mixed_table(500));
  for (const char* model : {"wdl", "deepfm", "dcn", "dlrm", "din"}) {
    const std::string name = model;
    ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--template", name, "--out", name + ".json"}).exit_code,
              0);
    const Outcome trained =
        huge_ctr({"--train", name + ".json", "--run-dir", name, "--max-iter", "20", "--device", "cpu"});
    EXPECT_EQ(trained.exit_code, 0) << name << "\n" << trained.err;
  }
}

TEST_F(InitTable, ItemsAndHistoriesOfTextShareTheRowsOfATable) {
  std::string text = "bought,item,seen\n";
  for (int r = 0; r < 600; ++r) {
    const Row row = row_of(r);
    text += cat(row.positive ? 1 : 0, ",sku-", row.item, ",", joined_numbers(row.items, row.item_count, "; ", "sku-"),
                "\n");
  }
  write_file(folder_ / "data.csv", text);
  const Outcome done = init({"--label", "bought", "--template", "din", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Outcome trained =
      huge_ctr({"--train", "c.json", "--run-dir", "run", "--max-iter", "40", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(read_file(folder_ / "run/metrics.jsonl").find("\"rows\":30,"), std::string::npos) << "30 items, once each";
}

TEST_F(InitTable, ReadsTextsWithoutAHeader) {
  std::string text;
  for (int r = 0; r < 400; ++r) {
    const Row row = row_of(r);
    text += cat(row.positive ? "1" : "0", "::", row.city, "::x", row.user, "\n");
  }
  write_file(folder_ / "data.csv", text);
  const Outcome done = init({"--label", "1", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(
      huge_ctr({"--train", "c.json", "--run-dir", "run", "--max-iter", "10", "--device", "cpu", "--strict"}).exit_code,
      0);
}

TEST_F(InitTable, ReadsParquet) {
  if (const std::string why = why_no_parquet(); !why.empty()) GTEST_SKIP() << why;
  // The output of --predict in Parquet is also a valid table for --init.
  write_file(folder_ / "data.csv", mixed_table(1500));
  ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--out", "first.json"}).exit_code, 0);
  ASSERT_EQ(huge_ctr({"--train", "first.json", "--run-dir", "first", "--device", "cpu"}).exit_code, 0);
  ASSERT_EQ(huge_ctr({"--predict", "first.json", "--model", "first", "--data", "data.csv", "--out", "scores.parquet",
                      "--keep", "city,user,age", "--device", "cpu"})
                .exit_code,
            0);
  const Outcome done = init({"--label", "label", "--out", "second.json"}, "scores.parquet");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("  row: omitted: id"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("  score: number"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("  city: category"), std::string::npos) << done.err;
  expect_refusal({"--label", "label", "--positive", "0"}, 2,
                 "--positive 0: label 'label' has fractions, so only its larger number can be positive",
                 "scores.parquet");
  const Outcome trained = huge_ctr({"--train", "second.json", "--run-dir", "second", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome measured = huge_ctr({"--eval", "second.json", "--model", "second", "--device", "cpu"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_GT(auc_of(measured.out), 0.8) << "the score of the first model is a column";
}

TEST_F(InitTable, SaysWhatItNeeds) {
  write_file(folder_ / "data.csv", mixed_table(300));
  expect_refusal({}, 2, "--init needs --label COLUMN");
  expect_refusal({"--label", "bougt", "--out", "c.json"}, 2, "did you mean \"bought\"?");
  expect_refusal({"--label", "bought"}, 2, "huge_ctr --init data.csv --label bought --positive yes");
  expect_refusal({"--label", "bought", "--positive", "Yes"}, 2, "has no such value; the values are 'no'");
  expect_refusal({"--label", "age"}, 2, "--label age --positive ");
  expect_refusal({"--label", "bought", "--positive", "yes", "--eval", "none.csv"}, 5, "none.csv");
  expect_refusal({"--label", "bought", "--positive", "yes", "--train", "c.json"}, 2,
                 "--init and --train are two commands");
  expect_refusal({"--label", "bought", "--positive", "yes", "--model", "run"}, 2, "--model requires");
  expect_refusal({"--label", "bought"}, 5, "there is no such file", "nothing.csv");
  std::filesystem::create_directory(folder_ / "empty");
  expect_refusal({"--label", "bought"}, 5, "the folder 'empty' contains no data file", "empty");
  expect_refusal({"--label", "bought"}, 5, "there is no such file", "none/*.csv");
  write_file(folder_ / "other.csv", "age,bought\n30,yes\n");
  expect_refusal({"--label", "bought", "--positive", "yes", "--eval", "other.csv"}, 4, "lacks the column 'user'");
  write_file(folder_ / "dots.csv", with_change(mixed_table(300, 900), "yes", "yes."));
  expect_refusal({"--label", "bought", "--positive", "yes", "--eval", "dots.csv"}, 4,
                 "has the value 'yes.', which no training row has; training rows have 'no', 'yes'; use the same "
                 "words");
}

TEST_F(InitTable, RowsWithoutALabelAreSkippedWhereNothingIsWrittenAnew) {
  write_file(folder_ / "data.csv", mixed_table(600) + "9,9,9,x,9,t1,[],1,1,2026-01-01,a,?\n");
  write_file(folder_ / "rest.csv", mixed_table(200, 1000));
  const Outcome done = init({"--label", "bought", "--positive", "yes", "--eval", "rest.csv", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Outcome trained =
      huge_ctr({"--train", "c.json", "--run-dir", "run", "--max-iter", "60", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("expected a text, found '?'"), std::string::npos) << trained.err;
}

TEST_F(InitTable, LeavesOutColumnsThatAreNamed) {
  write_file(folder_ / "data.csv", mixed_table(300));
  expect_refusal({"--label", "bought", "--positive", "yes", "--leave-out", "item,citi"}, 2, "did you mean \"city\"?");
  const Outcome done = init({"--label", "bought", "--positive", "yes", "--leave-out", "item,city", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("  city: omitted: by --leave-out"), std::string::npos) << done.err;
  EXPECT_EQ(read_file(folder_ / "c.json").find("city"), std::string::npos);
}

TEST_F(InitTable, TakesColumnsForWhatIsStated) {
  std::string text;  // without a header, columns are numbered
  for (int r = 0; r < 2000; ++r)
    text += cat(draw(r, 1, 300), "::", draw(r, 2, 1500), "::", 1 + draw(r, 3, 5), "::", 978'300'000 + r * 37, "\n");
  write_file(folder_ / "data.dat", text);
  expect_refusal({"--label", "3", "--positive", "4", "--category", "5"}, 2,
                 "--category 5: the table has no such "
                 "column",
                 "data.dat");
  const Outcome done =
      init({"--label", "3", "--positive", "4", "--category", "1,2", "--number", "1", "--out", "c.json"}, "data.dat");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("  1: number and category, by --number and --category: 0 to 299"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("  2: category, by --category: "), std::string::npos) << done.err;
  const Outcome trained = huge_ctr({"--train", "c.json", "--max-iter", "3", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
}

TEST_F(InitTable, NumbersInOtherNotationsAreReadAsTheyAreWrittenInEveryCommand) {
  std::string text = "y;price;rate;n\n";
  for (int r = 0; r < 400; ++r)
    text += cat(draw(r, 1, 2), ";", 1 + draw(r, 2, 9), ".", 100 + draw(r, 3, 900), ",5 EUR;", draw(r, 4, 100), ",",
                1 + draw(r, 5, 9), "%;", draw(r, 6, 9), "\n");
  write_file(folder_ / "data.csv", text);
  const Outcome done = init({"--label", "y", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("numbers: written as 1.234,5"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find(", written as 1.234,5 with '%'"), std::string::npos) << done.err;
  const Outcome trained = huge_ctr({"--train", "c.json", "--max-iter", "3", "--run-dir", "r", "--device", "cpu"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(huge_ctr({"--predict", "c.json", "--model", "r", "--out", "s.tsv", "--device", "cpu"}).exit_code, 0);
  EXPECT_EQ(run_program("data_inspect", {"--config", "c.json"}, folder_.path()).exit_code, 0);
  std::string other = read_file(folder_ / "c.json");
  const size_t at = other.find("1.234,5");
  ASSERT_NE(at, other.npos);
  write_file(folder_ / "other.json", other.replace(at, 7, "1 234,5"));
  const Outcome refused = huge_ctr({"--eval", "other.json", "--model", "r", "--device", "cpu"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("/number_format was \"1.234,5\" and is \"1 234,5\""), std::string::npos) << refused.err;
}

TEST_F(InitTable, RefusesWhatCanBeReadOnceOnly) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.csv").c_str(), 0600), 0);
  write_file(folder_ / "data.csv", mixed_table(300));
  expect_refusal({"--label", "bought"}, 2,
                 "'pipe.csv' is a pipe or a device, but --init reads the rows several "
                 "times",
                 "pipe.csv");
  expect_refusal({"--label", "bought", "--positive", "yes", "--eval", "pipe.csv"}, 2,
                 "'pipe.csv' of --eval is a pipe or a device");
  expect_refusal({"--label", "bought", "--positive", "yes", "--eval", "."}, 2,
                 "pipe.csv' of --eval is a pipe or a device");
}

TEST_F(InitTable, BlanksAroundLabelsAreDroppedWhereverTheyBegin) {
  std::string rows = mixed_table(1000);
  for (size_t at = rows.size() / 2; (at = rows.find(",yes\n", at)) != rows.npos;) rows.replace(at, 5, ",yes \n");
  write_file(folder_ / "data.csv", rows);
  ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--out", "c.json"}).exit_code, 0);
  EXPECT_NE(read_file(folder_ / "c.json").find("\"trim\": true"), std::string::npos) << read_file(folder_ / "c.json");
}

TEST_F(InitTable, OddValuesInHeldOutRowsStopNoEvaluation) {
  const std::string more = [] {
    std::string rows;
    for (int r = 0; r < 100; ++r) rows += cat(r, ",1,30,\"town 1, north\",abc,t1,[],1,1,2026-01-11,a,no\n");
    return rows;
  }();
  write_file(folder_ / "data.csv", mixed_table(300) + more);
  ASSERT_EQ(init({"--label", "bought", "--positive", "yes", "--out", "which.json"}).exit_code, 0);
  const std::string held_out = read_file(folder_ / "which.eval.csv");
  const size_t odd = held_out.find(",abc,"), begin = held_out.rfind('\n', odd) + 1;
  ASSERT_NE(odd, held_out.npos);
  const std::string row = held_out.substr(begin, held_out.find('\n', odd) + 1 - begin);
  write_file(folder_ / "data.csv", mixed_table(600) + row + with_change(row, "abc", "?"));
  write_file(folder_ / "plain.csv", mixed_table(600));
  // Evaluation rows are held out from the table, or read from a file. Some evaluation rows are invalid.
  write_file(folder_ / "rest.csv", mixed_table(100, 5000) + row + "1,2,3\n" + with_change(row, ",no\n", ",NA\n"));
  const Outcome split = init({"--label", "bought", "--positive", "yes", "--out", "split.json"});
  const Outcome given =
      init({"--label", "bought", "--positive", "yes", "--eval", "rest.csv", "--out", "given.json"}, "plain.csv");
  for (const Outcome* done : {&split, &given}) {
    EXPECT_EQ(done->exit_code, 0) << done->err;
    EXPECT_NE(done->err.find("values are numbers, but not 'abc' of an evaluation row"), std::string::npos) << done->err;
  }
  EXPECT_NE(given.err.find("1 bad evaluation rows are skipped: 'rest.csv' line 103: expected 12 cells, found 3"),
            std::string::npos)
      << given.err;
  EXPECT_NE(given.err.find("1 evaluation rows without a label are skipped"), std::string::npos) << given.err;
  for (const std::string name : {"split", "given"}) {
    const Outcome trained =
        huge_ctr({"--train", name + ".json", "--run-dir", name, "--max-iter", "40", "--device", "cpu", "--strict"});
    EXPECT_EQ(trained.exit_code, 0) << name << "\n" << trained.err;
  }
}

TEST_F(InitTable, LabelsThatAreNotUtf8AreRefused) {
  std::string text = "a,y\n";
  for (int r = 0; r < 300; ++r) text += cat(draw(r, 1, 1000), ",", r % 3 == 0 ? "gr\xfcn" : "rot", "\n");
  write_file(folder_ / "data.csv", text);
  expect_refusal({"--label", "y", "--positive", "gr\xfcn"}, 4, "label 'y': the name or a value is not UTF-8");
}

TEST_F(InitTable, TheCommandThatItProposesCanBeTyped) {
  write_file(folder_ / "my data.csv", mixed_table(300));
  const Outcome done =
      init({"--label", "bought", "--template", "dcn", "--leave-out", "item,city", "--out", "it's.json"}, "my data.csv");
  EXPECT_NE(done.err.find("\n  huge_ctr --init 'my data.csv' --label bought --template dcn --leave-out item,city --out "
                          R"('it'\''s.json' --positive yes)"),
            std::string::npos)
      << done.err;
}

TEST_F(InitTable, AFullStandardOutputLeavesNoFiles) {
  write_file(folder_ / "data.csv", mixed_table(300));
  const Outcome done =
      run_program("/bin/sh",
                  {"-c", "PATH=" + bin_dir().string() +
                             ":$PATH; huge_ctr --init data.csv --label bought --positive yes > /dev/full"},
                  folder_.path());
  EXPECT_EQ(done.exit_code, 5) << done.err;
  EXPECT_NE(done.err.find("cannot write the standard output"), std::string::npos) << done.err;
  EXPECT_EQ(files(), 1U);
}

TEST_F(InitTable, ReplacesNothing) {
  write_file(folder_ / "data.csv", mixed_table(300));
  for (const char* file : {"c.json", "c.train.csv", "c.eval.csv"}) {
    write_file(folder_ / file, "mine");
    expect_refusal({"--label", "bought", "--positive", "yes", "--out", "c.json"}, 5,
                   cat("'", file, "' already exists"));
    EXPECT_EQ(read_file(folder_ / file), "mine");
    fs::remove(folder_ / file);
  }
}

TEST_F(InitTable, RefusesWhatIsNoTable) {
  const auto refused = [&](const std::string& text, const std::string& part) {
    write_file(folder_ / "data.csv", text);
    expect_refusal({"--label", "y", "--out", "c.json"}, 4, part);
  };
  refused("", "it is empty");
  refused("a,b,y\n", "has no rows but a header");
  refused("a,b,y\n1,2,0\n1,2\n3,4,1\n", "line 3: expected 3 cells, found 2");
  using std::string_literals::operator""s;
  refused(
      "\x7f"
      "ELF\0\0\0\1a,b\n1,2\n"s,
      "is not a text of separated values: byte 4 is zero");
  refused("a,b,y\n1,2,1\n2,3,1\n", "all rows have the value '1'");
  refused("a,b,y\n1,2,?\n2,3,\n", "no row has a value");
  refused("a,b,y\n1,2,1\n2,3,-\n3,2,1\n", "except 1 with '-', which means missing");
  refused("a,b,y\n1,2,1\n2,3,0\n", "name evaluation rows with --eval FILE");
  std::string constant = "a,y\n";
  for (int r = 0; r < 200; ++r) constant += cat("same,", r % 2, "\n");
  refused(constant, "every column except the label was omitted");
}

TEST_F(InitTable, LeavesOutFewBadRowsAndRowsWithoutALabel) {
  std::string text = mixed_table(3000);
  text += "1,2,3\n";
  text += "9,9,9,x,9,t1,[],1,1,2026-01-01,a,\n";
  write_file(folder_ / "data.csv", text);
  const Outcome done = init({"--label", "bought", "--positive", "yes", "--out", "c.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("1 bad rows are omitted: 'data.csv' line 3002: expected 12 cells, found 3"),
            std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("1 rows without a label are omitted"), std::string::npos) << done.err;
}

/// The folder with the real data set `name`, if present.
fs::path shared_rows(const std::string& name) {
  const char* given = std::getenv("HCTR_SHARED_DATA");
  return (given ? fs::path(given) : source_dir() / "../shared/data") / name;
}

TEST_F(InitTable, TrainsOnRealRowsAsTheyArePublished) {
  const fs::path rows = shared_rows("adult/adult.data.gz");
  if (!fs::exists(rows)) GTEST_SKIP() << "no real rows at " << rows << "; set HCTR_SHARED_DATA to the folder above";
  const Outcome done =
      init({"--label", "15", "--positive", ">50K", "--out", "adult.json"}, fs::canonical(rows).string());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Outcome trained =
      huge_ctr({"--train", "adult.json", "--run-dir", "run", "--max-iter", "460", "--device", "cpu", "--strict"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome measured = huge_ctr({"--eval", "adult.json", "--model", "run", "--device", "cpu"});
  EXPECT_GT(auc_of(measured.out), 0.92) << measured.out;
}

}  // namespace
}  // namespace hctr::test
