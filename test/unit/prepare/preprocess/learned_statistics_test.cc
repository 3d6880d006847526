// Mean and deviation of columns with values from 1e-9 to 1e18, in every place that computes them, compared with sums in
// long double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/base/random.h"
#include "formats/catalog/first_rows.h"
#include "formats/parquet/parquet_set.h"
#include "formats/text/csv_set.h"
#include "prepare/inspect/inspect.h"
#include "prepare/preprocess/dense_statistics.h"
#include "prepare/preprocess/table_parser.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

/// Values within `spread` of `middle`; if `middle` is 0, values of all magnitudes up to `spread`.
struct Around {
  double middle, spread;
};
constexpr Around kColumns[] = {{1e-9, 1e-9}, {1e-9, 1e-13}, {-3, 1e-6},   {0.1, 1e-12}, {5e6, 1},    {1.7e9, 3e4},
                               {1.7e12, 10}, {1.7e15, 500}, {-4e15, 1e3}, {1e18, 1e5},  {1e18, 1e9}, {0, 1e18}};

std::vector<double> drawn_around(const Around& around) {
  std::vector<double> values;
  for (uint64_t i = 0; i < 4000; ++i) {
    const double unit = static_cast<double>(mix64(i) >> 11) * 0x1p-53;
    values.push_back(around.middle == 0 ? around.spread * std::pow(10, -27 * unit)
                                        : around.middle + around.spread * (2 * unit - 1));
  }
  return values;
}

/// Reference in two passes over differences from the first value. The differences are exact if the values are close
/// together.
struct TwoPasses {
  explicit TwoPasses(const std::vector<double>& values) {
    const auto n = static_cast<long double>(values.size());
    long double sum = 0, squares = 0;
    for (const double x : values) sum += static_cast<long double>(x) - values[0];
    const long double shift = sum / n;
    for (const double x : values) {
      const long double distance = (static_cast<long double>(x) - values[0]) - shift;
      squares += distance * distance;
    }
    mean = static_cast<double>(values[0] + shift);
    deviation = static_cast<double>(std::sqrt(squares / n));
  }
  double mean, deviation;
};

void expect_near(double mean, double deviation, const TwoPasses& exact, const char* who) {
  EXPECT_NEAR(mean, exact.mean, 1e-15 * std::fabs(exact.mean) + 1e-10 * exact.deviation) << who << " " << exact.mean;
  EXPECT_NEAR(deviation, exact.deviation, 1e-10 * exact.deviation) << who << " " << exact.mean;
}

struct LearnedStatistics : testing::Test {
  LearnedStatistics() {
    for (size_t c = 0; c < std::size(kColumns); ++c) {
      columns.push_back(drawn_around(kColumns[c]));
      exact.emplace_back(columns.back());
      names.push_back(cat("c", c));
    }
    header = "y,s";
    for (const std::string& name : names) header += "," + name;
    for (size_t r = 0; r < columns[0].size(); ++r) {
      rows += cat(r % 2, ",", r % 5);
      for (const std::vector<double>& column : columns) {
        char cell[40];
        std::snprintf(cell, sizeof cell, ",%.17g", column[r]);
        rows += cell;
      }
      rows += "\n";
    }
  }
  /// Options with all columns standardized, a label and a slot.
  template <class Options>
  DataSection section(DataFormat format) {
    DataSection section = section_of(1, static_cast<int64_t>(names.size()), {input_of("x", 1, 1, 1)});
    section.format = format;
    auto& options = section.options.edit<Options>();
    options.labels = {"y"};
    options.dense = {{.columns = names, .transform = DenseTransform::standardise}};
    options.slots = {{.columns = {"s"}, .keys = KeyRule::number}};
    return section;
  }
  void expect_learned(DataSection section, const fs::path& file, const char* who) {
    section.source = file.string();
    const auto learned = learn_statistics(section, KeyWidth::detect, Log::silent());
    ASSERT_EQ(learned.size(), exact.size());
    for (size_t c = 0; c < exact.size(); ++c) expect_near(learned[c].mean, learned[c].std, exact[c], who);
  }

  std::vector<std::vector<double>> columns;
  std::vector<TwoPasses> exact;
  std::vector<std::string> names;
  std::string header, rows;
  const Folder folder;
};

TEST_F(LearnedStatistics, OfCsvAreThoseOfTwoPassesInLongDouble) {
  write_text(folder / "a.csv", header + "\n" + rows);
  expect_learned(section<CsvOptions>(kCsvFormat), folder / "a.csv", "Csv");
}

TEST_F(LearnedStatistics, OfParquetAreThoseOfTwoPassesInLongDouble) {
  HCTR_SKIP_WITHOUT_PARQUET();
  std::vector<float> labels(columns[0].size(), 1);
  std::vector<int64_t> keys(columns[0].size(), 3);
  std::vector<Column> all = {numbers("y", ParquetType::f32, labels), numbers("s", ParquetType::i64, keys)};
  for (size_t c = 0; c < columns.size(); ++c) all.push_back(numbers(names[c], ParquetType::f64, columns[c]));
  write_parquet(folder / "a.parquet", all, 900);
  expect_learned(section<ParquetOptions>(kParquetFormat), folder / "a.parquet", "Parquet");
}

TEST_F(LearnedStatistics, OfPreprocessAreThoseOfTwoPassesInLongDouble) {
  const TableParser parser(named_table(header, ',', {.labels = {"y"}, .numbers = names, .categories = {"s"}}), {});
  std::vector<DenseColumn> found(names.size());
  for (size_t begin = 0; begin < rows.size();) {  // passes the rows in blocks, like the threads that parse
    const size_t end = std::min(rows.size(), rows.find('\n', begin + 100'000)) + 1;
    ParsedRows parsed;
    const std::string block = rows.substr(begin, end - begin);
    parser.parse({.text = block, .file = "f", .first_line = 1, .first_row = 0}, parsed);
    for (size_t c = 0; c < names.size(); ++c) {
      DenseColumn one;
      one.add({parsed.numbers[c].data(), parsed.rows}, false);
      found[c].merge(one);
    }
    begin = end;
  }
  for (size_t c = 0; c < names.size(); ++c)
    expect_near(found[c].scaled.moments.mean(), found[c].scaled.moments.deviation(), exact[c], "preprocess");
}

TEST_F(LearnedStatistics, OfDataInspectAreThoseOfTwoPassesInLongDouble) {
  write_text(folder / "a.csv", header + "\n" + rows);
  InspectOptions options;
  options.section = section<CsvOptions>(kCsvFormat);
  const Inspection found = inspect({folder / "a.csv"}, options);
  ASSERT_EQ(found.dense.size(), exact.size());
  for (size_t c = 0; c < exact.size(); ++c) {
    const Moments& moments = found.dense[c].finite.moments;
    expect_near(moments.mean(), moments.deviation(), exact[c], "data_inspect");
  }
}

}  // namespace
}  // namespace hctr::data_test
