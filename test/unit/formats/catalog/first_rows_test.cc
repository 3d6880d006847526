// Statistics of dense columns before training, and warnings about labels that do not occur.
#include "formats/catalog/first_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "formats/catalog/first_matches.h"
#include "formats/catalog/format_table.h"
#include "formats/parquet/parquet_set.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

/// A section with label y, dense columns a, b (logarithm) and c (untransformed), and a slot.
DataSection section_of_text() {
  DataSection section = section_of(1, 3, {input_of("x", 1, 1, 1)});
  section.format = kCsvFormat;
  auto& csv = section.options.edit<CsvOptions>();
  csv.missing = {"?"};
  csv.labels = {"y"};
  csv.dense = {{{"a"}, DenseTransform::standardise, {}, {}, 5},
               {{"c"}, DenseTransform::none, {}, {}, {}},
               {{"b"}, DenseTransform::standardise, {}, {}, {}}};
  csv.dense[2].transform.log = true;
  csv.slots = {{{"s"}, KeyRule::hash, 0, "", "", {}}};
  return section;
}

/// Records all log lines. Warnings start with "warning: ".
struct Lines {
  std::string text;
  Log log{[this](Level level, std::string_view line) {
    text += cat(level == Level::warning ? "warning: " : "", line, "\n");
  }};
};

struct FirstRows : ::testing::Test {
  std::vector<ColumnStatistics> learn(DataSection section, const fs::path& source) {
    section.source = source.string();
    return learn_statistics(section, KeyWidth::detect, lines.log);
  }
  /// Returns what check_positives() logs about a file with this text.
  std::string said(const DataSection& section, const std::string& text) {
    write_text(folder / "labels", text);
    Lines own;
    check_positives(section, {.path = (folder / "labels").string()}, KeyWidth::detect, false, own.log);
    return own.text;
  }
  Folder folder;
  Lines lines;
};

TEST_F(FirstRows, MeanAndDeviationAreThoseOfTheDefinition) {
  std::string text = "y,a,b,c,s\n";
  std::vector<double> a, b;
  uint64_t draw = 3;
  for (int r = 0; r < 30000; ++r) {  // enough rows for several chunks
    const auto x = static_cast<double>((draw = mix64(draw)) % 100000) / 8 + 1e5;
    const auto z = static_cast<double>((draw = mix64(draw)) % 1000) - 5;
    const bool no_a = draw % 11 == 0, no_b = draw % 13 == 0;
    if (!no_a) a.push_back(x);
    if (!no_b) b.push_back(std::log1p(std::max(z, 0.0)));
    text += cat("0,", no_a ? "?" : cat(x), ",", no_b ? "" : cat(z), ",1,", r, "\n");
  }
  const auto expect = [](const ColumnStatistics& seen, const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double value : values) sum += value;
    const double mean = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    EXPECT_NEAR(seen.mean, mean, 1e-7 * std::abs(mean));
    EXPECT_NEAR(seen.std, std::sqrt(squares / static_cast<double>(values.size())), 1e-6 * seen.std);
    EXPECT_EQ(seen.values, static_cast<int64_t>(values.size()));
  };
  write_text(folder / "a.csv", text);
  write_gzip(folder / "a.csv.gz", text);
  const auto seen = learn(section_of_text(), folder / "a.csv");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].column, "a");
  EXPECT_FALSE(seen[0].log);
  EXPECT_EQ(seen[1].column, "b");
  EXPECT_TRUE(seen[1].log);
  expect(seen[0], a);
  expect(seen[1], b);
  EXPECT_SAYS(lines.text, cat("Mean and standard deviation of 2 dense columns were computed from the first 30000 "
                              "rows of '",
                              (folder / "a.csv").string(), "'."));
  // The statistics depend neither on the compression of the file nor on other columns that are read.
  DataSection other = section_of_text();
  other.num_workers = 7;
  other.shuffle = 100;
  other.options.edit<CsvOptions>().quote = "";
  EXPECT_EQ(to_json(learn(other, folder / "a.csv.gz")).text(), to_json(seen).text());
  EXPECT_EQ(to_json(column_statistics(Json::parse(to_json(seen).text(), "x"))).text(), to_json(seen).text())
      << "they survive a round trip bit for bit";
}

TEST_F(FirstRows, EachFileOfAListContributesAsManyRowsAndTheyAreLimited) {
  std::string ones = "y,a,b,c,s\n", twos = ones;
  for (int r = 0; r < 400000; ++r) {
    ones += "0,1,1,1,1\n";
    twos += "0,2,1,1,1\n";
  }
  for (int r = 0; r < 400000; ++r) twos += "0,1000,1,1,1\n";
  write_text(folder / "ones", ones);
  write_text(folder / "twos", twos);
  write_file_list(folder / "list.txt", {folder / "ones", folder / "twos"}, true);
  const auto seen = learn(section_of_text(), folder / "list.txt");
  const int64_t of_file = kFirstRows / 2;
  EXPECT_EQ(seen[0].values, 400000 + of_file);
  const double sum = 400000 * 1.0 + 400000 * 2.0 + static_cast<double>(of_file - 400000) * 1000;
  EXPECT_NEAR(seen[0].mean, sum / static_cast<double>(400000 + of_file), 1e-9);
}

TEST_F(FirstRows, NumbersFarFromZeroKeepTheirDeviation) {
  // Values far from zero relative to their deviation, such as times in nanoseconds since 1970: adjacent floats differ
  // by 137 s.
  for (const double far : {1e-9, 1e6, 1.5e15, 4e15}) {
    std::string text = "y,a,b,c,s\n";
    long double sum = 0, squares = 0;
    constexpr int kRows = 5000;
    const auto value = [&](int r) { return far + static_cast<double>((r * 7919) % 1000) * (far < 1 ? 1e-9 : 1.0); };
    for (int r = 0; r < kRows; ++r) {
      char cell[64];
      std::snprintf(cell, sizeof cell, "%.17g", value(r));
      text += cat("0,", cell, ",1,1,1\n");
      sum += value(r);
    }
    const long double mean = sum / kRows;
    for (int r = 0; r < kRows; ++r) squares += (value(r) - mean) * (value(r) - mean);
    write_text(folder / "far", text);
    const auto seen = learn(section_of_text(), folder / "far");
    const auto std = static_cast<double>(std::sqrt(squares / kRows));
    EXPECT_NEAR(seen[0].std, std, 1e-6 * std) << far << ": a mean near 4e15 is rounded to halves";
    EXPECT_NEAR(seen[0].mean, static_cast<double>(mean), 1e-3 * std) << far;
  }
}

TEST_F(FirstRows, AColumnThatNeverChangesOrIsEmptyIsWarnedOf) {
  write_text(folder / "a", "y,a,b,c,s\n0,7,,1,1\n0,7,?,2,2\n");
  const auto seen = learn(section_of_text(), folder / "a");
  EXPECT_EQ(seen[0].mean, 7);
  EXPECT_EQ(seen[0].std, 1);
  EXPECT_EQ(seen[1].mean, 0);
  EXPECT_EQ(seen[1].values, 0);
  EXPECT_SAYS(lines.text, "warning: column 'a' is 7.0 in each of the first 2 rows: only the mean is subtracted");
  EXPECT_SAYS(lines.text, "column 'b' is empty in the first 2 rows and is not standardized");
}

TEST_F(FirstRows, OnlyColumnsWithoutStatedNumbersAreLearned) {
  DataSection section = section_of_text();
  EXPECT_TRUE(needs_statistics(section));
  for (DenseColumns& group : section.options.edit<CsvOptions>().dense)
    if (group.learned()) group.mean = {0}, group.std = {1};
  EXPECT_FALSE(needs_statistics(section));
  EXPECT_TRUE(learn(section, folder / "no such file").empty());
  EXPECT_FALSE(needs_statistics(section_of(1, 1, {}))) << "a format without columns";
}

TEST_F(FirstRows, StatisticsOfAnotherModelAreRefusedByColumn) {
  const std::vector<ColumnStatistics> known = {{"a", false, 1, 2, 3}, {"b", false, 1, 2, 3}, {"z", false, 1, 2, 3}};
  const std::string why = message_of([&] { select_statistics(section_of_text(), known, "the model 'm'"); });
  EXPECT_SAYS(why,
              "the model 'm' has no mean and standard deviation of 'b' (of its log), which \"standardize\" "
              "reads");
  DataSection section = section_of_text();
  section.options.edit<CsvOptions>().dense[2].transform.log = false;
  const auto taken = select_statistics(section, known, "");
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].column, "b");
  for (const char* bad :
       {"3", R"([{"column": "a"}])", R"([{"column": "a", "log": false, "mean": 1, "std": 0, "values": 1}])"})
    EXPECT_SAYS(message_of([&] { column_statistics(Json::parse(bad, "x")); }), "\"statistics\"");
}

TEST_F(FirstRows, ALabelThatNeverOccursIsSaidWithWhatIsThere) {
  DataSection section = section_of_text();
  auto& csv = section.options.edit<CsvOptions>();
  csv.dense = {};
  section.dense.dense_dim = 0;
  csv.labels[0].positive.texts = {">50K"};
  EXPECT_EQ(said(section, "y,s\n<=50K,1\n>50K,1\n"), "");
  EXPECT_SAYS(said(section, "y,s\n<=50K.,1\n>50K.,1\n<=50K.,1\n"),
              "is 1: none of its first 3 rows has '>50K' in column 'y'; there are '<=50K.', '>50K.'");
  std::string many = "y,s\n";
  for (int i = 0; i < 9; ++i) many += cat("v", i, ",1\n");
  EXPECT_SAYS(said(section, many), "there are 'v0', 'v1', 'v2', 'v3', 'v4', 'v5' and others");
  csv.labels[0].positive = {{}, 4};
  EXPECT_EQ(said(section, "y,s\n1,1\n4,1\n"), "");
  EXPECT_SAYS(said(section, "y,s\n1,1\n3.5,1\n"), "none of its first 2 rows has at least 4 in column 'y'");
  csv.labels[0].positive = {};
  EXPECT_EQ(said(section, "y,s\n0,1\n0,1\n"), "") << "numbers as they stand promise no 1";
}

TEST_F(FirstRows, ParquetToo) {
  HCTR_SKIP_WITHOUT_PARQUET();
  DataSection section = section_of(1, 1, {input_of("x", 1, 1, 1)});
  section.format = kParquetFormat;
  auto& parquet = section.options.edit<ParquetOptions>();
  parquet.labels = {"y"};
  parquet.labels[0].positive.texts = {"yes"};
  parquet.dense = {{{"a"}, DenseTransform::standardise, {}, {}, {}}};
  parquet.slots = {{{"s"}, {}, 0, "", "", {}}};
  const fs::path file = folder / "a.parquet";
  write_parquet(file, {texts("y", {"no", "yes", "yes"}), numbers<float>("a", ParquetType::f32, {1, 100, 4}, {1}),
                       numbers<int64_t>("s", ParquetType::i64, {1, 2, 3})});
  const auto seen = learn(section, file);
  EXPECT_EQ(seen[0].mean, 2.5);
  EXPECT_EQ(seen[0].std, 1.5);
  EXPECT_EQ(seen[0].values, 2);
  section.statistics = seen;
  Rig rig(section, file, {.batch = 3, .repeat = false});
  const ReadBatch batch = *rig.next();
  EXPECT_EQ(batch.dense, (std::vector<float>{-1, 0, 1})) << "a null is the mean";
  EXPECT_EQ(batch.label, (std::vector<float>{0, 1, 1}));
  check_positives(section, {.path = file.string()}, KeyWidth::detect, false, lines.log);
  parquet.labels[0].positive.texts = {"Yes"};
  section.options.edit<ParquetOptions>() = parquet;
  check_positives(section, {.path = file.string()}, KeyWidth::detect, false, lines.log);
  EXPECT_SAYS(lines.text, "none of its first 3 rows has 'Yes' in column 'y'");
}

}  // namespace
}  // namespace hctr::data_test
