// huge_ctr --predict: one score per row, and the files of export_predictions_prefix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "core/base/expect.h"
#include "formats/data/text_grammar.h"
#include "formats/parquet/parquet_file.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

/// A small model on text rows: a price, a city and a user determine the click; no feature reads the column "id".
std::string text_config() {
  return R"({
  "solver": {"display": 0, "max_iter": 80, "batchsize": 100, "batchsize_eval": 70, "gpu": [0], "seed": 3,
             "replace_models": true, "snapshot_prefix": "out/", "eval_metrics": ["AUC", "AverageLoss"]},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "eval.csv",
     "csv": {"labels": ["click"], "dense": [{"columns": ["price"]}], "slots": [{"columns": ["city", "user"]}]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": 1}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": 8},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}
  ]
})";
}

/// Rows for text_config(). The cell of "id" needs quotes in every seventh row.
std::string text_rows(int rows, int seed, bool with_labels = true) {
  std::ostringstream text;
  text << "id,user,city,price" << (with_labels ? ",click" : "") << "\n";
  for (int r = 0; r < rows; ++r) {
    const int mixed = (r * 7919 + seed * 104729) % 10007, user = mixed % 13, city = mixed / 13 % 5;
    const double price = (mixed % 101) / 100.0;
    const bool click = (user % 3 == 0) != (mixed % 5 == 0);
    if (r % 7 == 0)
      text << "\"row \"\"" << r << "\"\", it\ts\"";
    else
      text << "row" << r;
    text << "," << user << ",city" << city << "," << price;
    if (with_labels) text << "," << click;
    text << "\n";
  }
  return text.str();
}

/// The "id" of row r of text_rows().
std::string id_of(int r) { return r % 7 == 0 ? cat("row \"", r, "\", it\ts") : cat("row", r); }

/// A table of text cells with a header.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  size_t column(const std::string& name) const {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) throw std::out_of_range("no column " + name);
    return static_cast<size_t>(found - columns.begin());
  }
  std::vector<std::string> texts(const std::string& name) const {
    std::vector<std::string> values;
    const size_t at = column(name);
    for (const auto& row : rows) values.push_back(row.at(at));
    return values;
  }
  std::vector<float> numbers(const std::string& name) const {
    std::vector<float> values;
    for (const std::string& text : texts(name)) values.push_back(std::strtof(text.c_str(), nullptr));
    return values;
  }
};

Table read_table(const std::string& text, char delimiter) {
  Table table;
  RecordSplitter splitter({.delimiter = delimiter});
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    p = splitter.split(p, end);
    EXPECT_EQ(splitter.problem(), "");
    std::vector<std::string> cells(splitter.cells().begin(), splitter.cells().end());
    if (table.columns.empty())
      table.columns = cells;
    else
      table.rows.push_back(cells);
  }
  return table;
}

/// AUC by definition: the fraction of (click, non-click) pairs in which the click has the higher score.
double auc_of(const std::vector<float>& labels, const std::vector<float>& scores) {
  double pairs = 0, in_order = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t j = 0; j < labels.size(); ++j)
      if (labels[i] > 0.5f && labels[j] < 0.5f) {
        ++pairs;
        in_order += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
  return in_order / pairs;
}

class Predict : public testing::Test {
 protected:
  /// All tests share one run.
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_file(*folder_ / "config.json", text_config());
    write_file(*folder_ / "train.csv", text_rows(2000, 1));
    write_file(*folder_ / "eval.csv", text_rows(500, 2));
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder_->path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Outcome predict(const std::string& out, const std::vector<std::string>& more = {},
                         const std::string& config = "config.json") {
    std::vector<std::string> words = {"--predict", config, "--model", "run", "--out", out, "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_->path());
  }
  static Table predicted(const std::string& out, const std::vector<std::string>& more = {},
                         const std::string& config = "config.json") {
    const Outcome done = predict(out, more, config);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return read_table(out == "-" ? done.out : read_file(*folder_ / out), out.ends_with(".csv") ? ',' : '\t');
  }
  static std::string changed(const std::string& name, const std::string& from, const std::string& to) {
    write_file(*folder_ / name, with_change(text_config(), from, to));
    return name;
  }
  static double metric(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"--eval", "config.json", "--model", "run", "--log", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome done = run_program("huge_ctr", words, folder_->path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Json::parse(done.out, "output").find("metrics")->find(name)->number();
  }
  static void expect_fails(const Outcome& outcome, int exit_code, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << outcome.err;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Predict::folder_ = nullptr;

TEST_F(Predict, WritesAScoreForEachRowInTheirOrderWhoseAucIsTheMetric) {
  const Table scores = predicted("scores.tsv");
  EXPECT_EQ(scores.columns, (std::vector<std::string>{"row", "label", "score"}));
  ASSERT_EQ(scores.rows.size(), 500u);
  for (size_t r = 0; r < 500; ++r) EXPECT_EQ(scores.rows[r][0], std::to_string(r));
  EXPECT_EQ(scores.texts("label"), read_table(text_rows(500, 2), ',').texts("click"));
  const double auc = auc_of(scores.numbers("label"), scores.numbers("score"));
  EXPECT_NEAR(auc, metric("AUC"), 1e-12);
  EXPECT_GT(auc, 0.6);  // an AUC near 0.5 could not reveal mixed-up rows
  double loss = 0;
  const auto labels = scores.numbers("label"), values = scores.numbers("score");
  for (size_t r = 0; r < 500; ++r) loss -= std::log(labels[r] > 0.5f ? double{values[r]} : 1 - double{values[r]}) / 500;
  EXPECT_NEAR(loss, metric("AverageLoss"), 1e-5);
}

TEST_F(Predict, WritesNineDigits) {
  const Table scores = predicted("-");
  for (const std::string& text : scores.texts("score")) {
    char nine[32];
    std::snprintf(nine, sizeof nine, "%.9g", static_cast<double>(std::strtof(text.c_str(), nullptr)));
    EXPECT_EQ(text, nine);
  }
}

TEST_F(Predict, WritesTheSameInEveryFormatAndOnAnyNumberOfRanksAndReaders) {
  const Table tsv = predicted("a/b/scores.tsv", {"--keep", "id,price"});
  EXPECT_EQ(tsv.columns, (std::vector<std::string>{"row", "label", "score", "id", "price"}));
  for (int r = 0; r < 500; ++r) EXPECT_EQ(tsv.texts("id")[static_cast<size_t>(r)], id_of(r));
  EXPECT_EQ(tsv.texts("price"), read_table(text_rows(500, 2), ',').texts("price"));
  EXPECT_EQ(predicted("scores.csv", {"--keep", "id", "--keep", "price"}).rows, tsv.rows);
  EXPECT_EQ(predicted("-", {"--keep", "id,price"}).rows, tsv.rows);
  EXPECT_EQ(predicted("-", {"--keep", "id,price", "--data", "eval.csv"}).rows, tsv.rows);
  for (const char* gpu : {"[0, 1]", "[0, 1, 2]"})
    for (const char* readers : {"1", "4"}) {
      SCOPED_TRACE(cat(gpu, " with ", readers));
      const std::string config = with_change(text_config(), "\"gpu\": [0]", cat("\"gpu\": ", gpu));
      write_file(*folder_ / "ranks.json",
                 with_change(config, "\"format\"", cat("\"num_workers\": ", readers, ", \"format\"")));
      const Table several = predicted("several.tsv", {"--keep", "id,price"}, "ranks.json");
      EXPECT_EQ(several.columns, tsv.columns);
      for (const char* column : {"row", "label", "id", "price"})
        EXPECT_EQ(several.texts(column), tsv.texts(column)) << column;
      const auto scores = several.numbers("score"), expected = tsv.numbers("score");
      for (size_t r = 0; r < scores.size(); ++r) EXPECT_NEAR(scores[r], expected[r], 1e-6) << r;
    }
}

TEST_F(Predict, WritesParquet) {
  if (const std::string why = why_no_parquet(); !why.empty()) GTEST_SKIP() << why;
  const Table tsv = predicted("scores.tsv", {"--keep", "id"});
  const Outcome done = predict("scores.parquet", {"--keep", "id"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto file = open_parquet(*folder_ / "scores.parquet");
  const ParquetFileInfo& info = file->info();
  ASSERT_EQ(info.rows, 500);
  ASSERT_EQ(info.field_count, 4);
  const std::vector<std::pair<std::string, ParquetType>> fields = {
      {"row", ParquetType::i64}, {"label", ParquetType::f32}, {"score", ParquetType::f32}, {"id", ParquetType::text}};
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(info.fields[c].name, fields[static_cast<size_t>(c)].first);
    EXPECT_EQ(info.fields[c].type, fields[static_cast<size_t>(c)].second);
    ParquetColumn* column = nullptr;
    ASSERT_EQ(file->open_column(0, c, ParquetForm::number, column), nullptr);
    const std::unique_ptr<ParquetColumn> owned(column);
    ParquetValues values;
    void* owner = nullptr;
    ASSERT_EQ(column->read(values, owner), nullptr);
    ASSERT_EQ(values.rows, 500);
    for (size_t r = 0; r < 500; ++r) {
      const std::string& expected = tsv.rows[r][static_cast<size_t>(c)];
      if (c == 0) {
        EXPECT_EQ(std::to_string(static_cast<const int64_t*>(values.values)[r]), expected);
      } else if (c < 3) {
        EXPECT_EQ(static_cast<const float*>(values.values)[r], std::strtof(expected.c_str(), nullptr));
      } else {
        EXPECT_EQ(std::string(static_cast<const char*>(values.values) + values.text[r],
                              static_cast<size_t>(values.text[r + 1] - values.text[r])),
                  expected);
      }
    }
    parquet_plugin().drop(owner);
  }
}

TEST_F(Predict, NeedsNoLabels) {
  const Table with_labels = predicted("scores.tsv");
  write_file(*folder_ / "no_labels.csv", text_rows(500, 2, false));
  const Table without = predicted("-", {"--data", "no_labels.csv", "--keep", "id"});
  EXPECT_EQ(without.columns, (std::vector<std::string>{"row", "score", "id"}));
  EXPECT_EQ(without.texts("score"), with_labels.texts("score"));
  // Rows without labels.
  std::string rows = text_rows(500, 2);
  const size_t end_of_row = rows.find('\n', rows.find("row2,"));
  rows.erase(end_of_row - 1, 1);
  write_file(*folder_ / "one_missing.csv", rows);
  const Table one_missing = predicted("-", {"--data", "one_missing.csv"});
  EXPECT_EQ(one_missing.rows[2][1], "");
  EXPECT_EQ(one_missing.rows[3], with_labels.rows[3]);
  EXPECT_EQ(one_missing.texts("score"), with_labels.texts("score"));
  // Training and evaluation need labels.
  for (const char* data : {"no_labels.csv", "one_missing.csv"})
    expect_fails(run_program("huge_ctr", {"--eval", "config.json", "--model", "run", "--data", data}, folder_->path()),
                 4, {"'click'"});
}

TEST_F(Predict, TakesAllRowsWhateverAnEvaluationTakes) {
  const std::string config = changed("short.json", "\"display\": 0", "\"display\": 0, \"max_eval_batches\": 1");
  EXPECT_EQ(predicted("-", {}, config).rows.size(), 500u);
}

TEST_F(Predict, NumbersRowsAsTheDataHaveThemWhereBadRecordsAreLeftOut) {
  const std::string rows = with_change(text_rows(500, 2), "row3,", "row3,superfluous,");
  write_file(*folder_ / "bad.csv", rows);
  expect_fails(predict("bad.tsv", {"--data", "bad.csv"}), 4, {"'bad.csv' line 5", "expected 5 values, found 6"});
  EXPECT_FALSE(fs::exists(*folder_ / "bad.tsv"));
  const std::string skipping = changed("skipping.json", "\"format\"", "\"bad_records\": \"skip\", \"format\"");
  const Outcome done = predict("bad.tsv", {"--data", "bad.csv", "--keep", "id"}, skipping);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.err.find("1 bad record was skipped; row numbers in the scores count bad records too"),
            std::string::npos)
      << done.err;
  const Table scores = read_table(read_file(*folder_ / "bad.tsv"), '\t');
  ASSERT_EQ(scores.rows.size(), 499u);
  EXPECT_EQ(scores.texts("id")[2], "row2");
  EXPECT_EQ(scores.texts("id")[3], "row4");
  // Tests invalid records before the first row, next to each other, at batch boundaries and after the last row, on one
  // rank and on two.
  const std::set<int> bad = {0, 1, 98, 99, 100, 255, 256, 498, 499};
  std::istringstream lines(text_rows(500, 2));
  std::string many, line;
  for (int row = -1; std::getline(lines, line); ++row) many += cat(bad.contains(row) ? "superfluous," : "", line, "\n");
  write_file(*folder_ / "many_bad.csv", many);
  const std::string two_ranks = "two_ranks.json";
  write_file(*folder_ / two_ranks, with_change(read_file(*folder_ / skipping), "\"gpu\": [0]", "\"gpu\": [0, 1]"));
  for (const std::string& config : {skipping, two_ranks}) {
    const Table all = predicted("-", {"--data", "many_bad.csv", "--keep", "id"}, config);
    ASSERT_EQ(all.rows.size(), 491u) << config;
    const std::vector<std::string> numbers = all.texts("row"), ids = all.texts("id");
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(id_of(std::stoi(numbers[i])), ids[i]) << config;
  }
}

TEST_F(Predict, SaysWhatIsWrong) {
  expect_fails(predict("scores.txt"), 2, {"--out 'scores.txt'", ".tsv, .csv or .parquet"});
  expect_fails(predict("scores.tsv", {"--keep", "name"}), 4,
               {"there is no column 'name' to keep; the columns are 'id', 'user', 'city', 'price', 'click'"});
  write_file(*folder_ / "score.csv", with_change(text_rows(5, 2), "id,", "score,"));
  expect_fails(predict("x.tsv", {"--data", "score.csv", "--keep", "score"}), 2,
               {"--keep score: the scores already have a column of this name"});
  write_file(*folder_ / "file", "");
  expect_fails(predict("file/scores.tsv"), 5, {"file"});
  const auto run = [&](const std::vector<std::string>& words) {
    return run_program("huge_ctr", words, folder_->path());
  };
  expect_fails(run({"--predict", "config.json", "--model", "run"}), 2, {"--predict needs --out"});
  expect_fails(run({"--predict", "config.json", "--out", "-"}), 2, {"--predict needs --model"});
  expect_fails(run({"--eval", "config.json", "--model", "run", "--out", "-"}), 2, {"--out requires --predict"});
  expect_fails(run_program("/bin/bash",
                           {"-c", "PATH=" + bin_dir().string() +
                                      ":$PATH; huge_ctr --predict config.json --model run --out - > /dev/full"},
                           folder_->path()),
               5, {"cannot write the scores to the standard output"});
}

TEST_F(Predict, ReplacesNoFileThatItReads) {
  const std::string rows = read_file(*folder_ / "eval.csv");
  fs::create_hard_link(*folder_ / "eval.csv", *folder_ / "hard.csv");
  fs::create_symlink("eval.csv", *folder_ / "link.csv");
  for (const char* out : {"eval.csv", "./out/../eval.csv", "hard.csv", "link.csv"})
    expect_fails(predict(out), 2, {cat("--out '", out, "' is a file that this command reads")});
  fs::create_symlink("run/config.json", *folder_ / "config.tsv");
  expect_fails(predict("config.tsv"), 2, {"(as 'run/config.json')"});
  write_file(*folder_ / "rows.csv", text_rows(5, 2));
  expect_fails(predict("rows.csv", {"--data", "rows.csv"}), 2, {"name another path"});
  EXPECT_EQ(read_file(*folder_ / "rows.csv"), text_rows(5, 2));
  EXPECT_EQ(read_file(*folder_ / "eval.csv"), rows);
  for (const char* made : {"hard.csv", "link.csv", "config.tsv", "rows.csv"}) fs::remove(*folder_ / made);
}

TEST_F(Predict, KeepsNoColumnsOfFormatsWithoutNames) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  make_data(folder.path(), "config.json", 1000, 300);
  ASSERT_EQ(run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run"}, folder.path()).exit_code, 0);
  const std::vector<std::string> words = {"--predict", "config.json", "--model", "run", "--out", "-"};
  const Outcome done = run_program("huge_ctr", words, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(read_table(done.out, '\t').rows.size(), 300u);
  std::vector<std::string> keeping = words;
  keeping.insert(keeping.end(), {"--keep", "id"});
  expect_fails(
      run_program("huge_ctr", keeping, folder.path()), 2,
      {"column 'id' cannot be copied to the output: only columns of Csv, Criteo and Parquet data can", "Norm"});
}

TEST_F(Predict, NamesScoresOfSeveralLossesByTheirTops) {
  const TemporaryFolder folder;
  std::string config = with_change(text_config(), R"("labels": ["click"])", R"("labels": ["click", "user"])");
  config = with_change(config, R"("label_dim": 1)", R"("label_dim": 2)");
  config = with_change(config, R"({"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"})",
                       R"({"type": "Slice", "bottom": "label", "top": ["click", "user"], "ranges": [[0, 1], [1, 2]]},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "click"], "top": "clicks"},
    {"type": "CrossEntropyLoss", "bottom": ["two", "user"], "top": "users"},
    {"type": "InnerProduct", "bottom": "all", "top": "two", "fc_param": {"num_output": 2}})");
  write_file(folder / "config.json", config);
  write_file(folder / "train.csv", text_rows(500, 1));
  write_file(folder / "eval.csv", text_rows(100, 2));
  const Outcome trained = run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run"}, folder.path());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome done =
      run_program("huge_ctr", {"--predict", "config.json", "--model", "run", "--out", "-"}, folder.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Table scores = read_table(done.out, '\t');
  EXPECT_EQ(scores.columns,
            (std::vector<std::string>{"row", "label_clicks", "label_users", "score_clicks", "score_users"}));
  EXPECT_EQ(scores.texts("label_users"), read_table(text_rows(100, 2), ',').texts("user"));
}

TEST_F(Predict, EvaluationsExportWhatHugeCtrExports) {
  const TemporaryFolder folder;
  const std::string config =
      with_change(text_config(), "\"display\": 0",
                  "\"display\": 0, \"eval_interval\": 40, \"export_predictions_prefix\": \"made/p\"");
  for (const char* gpu : {"[0]", "[0, 1, 2]"}) {
    SCOPED_TRACE(gpu);
    // three ranks run on the CPU, because a machine may have only one GPU
    const std::string device = gpu == std::string("[0]") ? "auto" : "cpu";
    write_file(folder / "config.json", with_change(config, "\"gpu\": [0]", cat("\"gpu\": ", gpu)));
    write_file(folder / "train.csv", text_rows(2000, 1));
    write_file(folder / "eval.csv", text_rows(500, 2));
    const Outcome done =
        run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", device}, folder.path());
    ASSERT_EQ(done.exit_code, 0) << done.err;
    for (const char* iteration : {"40", "80"}) {
      const std::string scores = read_file(folder / cat("made/p_prediction_", iteration)),
                        labels = read_file(folder / cat("made/p_label_", iteration));
      EXPECT_EQ(std::count(scores.begin(), scores.end(), ' '), 499);
      EXPECT_EQ(scores.find_first_not_of("0123456789.e- "), std::string::npos);
      std::string expected;
      for (const std::string& label : read_table(text_rows(500, 2), ',').texts("click"))
        expected += (expected.empty() ? "" : " ") + label;
      EXPECT_EQ(labels, expected);
    }
    const Outcome predicted = run_program(
        "huge_ctr", {"--predict", "config.json", "--model", "run", "--out", "-", "--device", device}, folder.path());
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const std::vector<float> again = read_table(predicted.out, '\t').numbers("score");
    std::istringstream numbers(read_file(folder / "made/p_prediction_80"));
    for (const float score : again) {
      float exported = 0;
      numbers >> exported;
      EXPECT_NEAR(exported, score, 1e-6);
    }
    fs::remove_all(folder / "made");
  }
  // A failure to write predictions does not end training.
  write_file(folder / "made", "a file");
  const Outcome done =
      run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder.path());
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("warning: the predictions of this evaluation are not exported"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
