// --init for Parquet tables: the guessed column kinds. The config reads the original files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/json.h"
#include "core/base/random.h"
#include "prepare/init/init.h"
#include "support/paths.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

constexpr int kRows = 400;

struct InitParquet : ::testing::Test {
  void SetUp() override { HCTR_SKIP_WITHOUT_PARQUET(); }

  static int drawn(int row, int count) {
    return static_cast<int>(mix64(static_cast<uint64_t>(row)) % static_cast<uint64_t>(count));
  }
  /// A column with kRows values.
  template <class T, class Of>
  static Column made(const std::string& name, ParquetType type, const Of& value_of) {
    std::vector<T> values;
    for (int r = 0; r < kRows; ++r) values.push_back(static_cast<T>(value_of(r)));
    return numbers<T>(name, type, values);
  }
  static Column label() {
    return made<int64_t>("y", ParquetType::i64, [](int r) { return drawn(r + 7000, 3) == 0; });
  }
  /// Runs --init on `data`. Without `eval`, evaluation rows are held out.
  InitResult init_of(const fs::path& data, const fs::path& eval = {}) {
    InitOptions options;
    options.data = data.string();
    options.label = "y";
    options.eval = eval.string();
    options.out = (folder / cat("config", count++, ".json")).string();
    return init(options);
  }
  /// Returns the report's line about a column; empty if there is none.
  static std::string line(const InitResult& result, const std::string& column) {
    for (const std::string& one : result.report)
      if (one.starts_with(cat("  ", column, ": "))) return one.substr(column.size() + 4);
    return "";
  }
  static Json parquet_section(const InitResult& result) {
    return *Json::parse(result.config, "config").find("layers")->array()->front().find("parquet");
  }

  Folder folder;
  const fs::path file = folder / "rows.parquet";
  int count = 0;
};

TEST_F(InitParquet, NanIsMissingAndTheSplitKeepsIt) {
  const double nan = std::nan("");
  write_parquet(file, {label(), made<double>("x", ParquetType::f64,
                                             [&](int r) { return r % 4 == 0 ? nan : 0.5 + drawn(r, 1000); })});
  for (const fs::path& eval : {fs::path(), file}) {
    const InitResult result = init_of(file, eval);
    EXPECT_TRUE(line(result, "x").starts_with("number")) << line(result, "x");
    EXPECT_NE(line(result, "x").find("% missing"), std::string::npos) << line(result, "x");
  }
}

TEST_F(InitParquet, InfiniteRowsAreBadAndMoreThanAFewAreAnError) {
  const double infinity = std::numeric_limits<double>::infinity();
  write_parquet(file, {label(), made<double>("ratio", ParquetType::f64,
                                             [&](int r) { return r == 17 ? infinity : 0.5 + drawn(r, 1000); })});
  const std::string message = message_of([&] { init_of(file); });
  EXPECT_SAYS(message, "rows.parquet': row 18: column 'ratio' (double): the value inf is not a finite float");
  EXPECT_SAYS(message, "make it null or NaN, or name the column in --leave-out");
}

TEST_F(InitParquet, TextsThatMeanMissingAreNamedInTheConfig) {
  std::vector<std::optional<std::string>> words;
  for (int r = 0; r < kRows; ++r) words.push_back(r % 5 == 0 ? "NA" : cat(" ", drawn(r, 300) + 0.25));
  write_parquet(file, {label(), texts("x", words)});
  for (const fs::path& eval : {fs::path(), file}) {
    const InitResult result = init_of(file, eval);
    EXPECT_TRUE(line(result, "x").starts_with("number")) << line(result, "x");
    const Json section = parquet_section(result);
    ASSERT_TRUE(section.find("missing")) << result.config;
    EXPECT_EQ(*section.find("missing")->array()->front().string(), "NA");
    EXPECT_TRUE(section.find("trim") && *section.find("trim")->boolean());
  }
}

TEST_F(InitParquet, AColumnOfTypeNullIsLeftOut) {
  Column nothing = made<uint8_t>("none", ParquetType::null, [](int) { return 0; });
  nothing.valid.assign(kRows, 0);
  write_parquet(file,
                {label(), nothing, made<double>("x", ParquetType::f64, [](int r) { return 0.5 + drawn(r, 999); })});
  EXPECT_EQ(line(init_of(file), "none"), "omitted: no row has a value");
}

TEST_F(InitParquet, WholeFloatsUnderTheNameOfAnIdAreCategoriesAsIntegersAre) {
  const double nan = std::nan("");
  const auto id = [](int r) { return 1000.0 * drawn(r, 30); };
  write_parquet(file, {label(), made<double>("user_id", ParquetType::f64, [&](int r) { return r == 5 ? nan : id(r); }),
                       made<int64_t>("item_id", ParquetType::i64, [&](int r) { return id(r); }),
                       made<float>("weight", ParquetType::f32, [](int r) { return drawn(r, 999); }),
                       made<double>("zip", ParquetType::f64, [](int r) { return r % 10 == 1 ? 0.5 : drawn(r, 30); }),
                       made<double>("code", ParquetType::f64, [](int r) { return 1e17 + 64 * drawn(r, 30); })});
  const InitResult result = init_of(file);
  EXPECT_TRUE(line(result, "user_id").starts_with("category: integers used as ids (the name contains 'user'); 30 dist"))
      << line(result, "user_id");
  EXPECT_TRUE(line(result, "item_id").starts_with("category: integers used as ids")) << line(result, "item_id");
  EXPECT_TRUE(line(result, "weight").starts_with("number: ")) << line(result, "weight");
  EXPECT_TRUE(line(result, "zip").starts_with("number: ")) << line(result, "zip");
  EXPECT_TRUE(line(result, "code").starts_with("omitted: ids by 'code'")) << line(result, "code");
}

TEST_F(InitParquet, ListsOfWholeFloatsAreListsAndOthersAreLeftOut) {
  std::vector<std::vector<double>> whole, fractions;
  for (int r = 0; r < kRows; ++r) {
    whole.push_back({1.0 + drawn(r, 7), 3});
    fractions.push_back({0.5 + drawn(r, 7)});
  }
  write_parquet(file, {label(), lists("seen", ParquetType::f64, whole), lists("vector", ParquetType::f64, fractions)});
  const InitResult result = init_of(file);
  EXPECT_TRUE(line(result, "seen").starts_with("list of categories: up to 2 in a row, 7 ")) << line(result, "seen");
  EXPECT_EQ(line(result, "vector"), "omitted: lists of fractions; fractions cannot be keys");
}

TEST_F(InitParquet, DecimalsAreNumbersOrIdsAndDatesAreTimes) {
  const fs::path stored = test::source_dir() / "test/unit/formats/parquet/warehouse.parquet";
  const InitResult result = init_of(stored, stored);
  EXPECT_TRUE(line(result, "price").starts_with("number: -0.05 to 17")) << line(result, "price");
  for (const char* column : {"day", "s", "us", "ns"})
    EXPECT_TRUE(line(result, column).starts_with("time: seconds since 1970")) << line(result, column);
  EXPECT_TRUE(line(result, "clock").starts_with("number: 0 to 86399.999")) << line(result, "clock");
}

TEST_F(InitParquet, WholeDecimalsBeyond64BitsAreReadAsTexts) {
  // All columns are decimal(38, 0). wide_id: 10^25 plus up to 20; small_id: below 30; amount: below 10^21, some null.
  const fs::path stored = test::source_dir() / "test/unit/prepare/init/wide_decimals.parquet";
  for (const fs::path& eval : {fs::path(), stored}) {
    const InitResult result = init_of(stored, eval);
    EXPECT_NE(line(result, "wide_id").find("category: integers used as ids"), std::string::npos)
        << line(result, "wide_id");
    EXPECT_NE(line(result, "wide_id").find("20 distinct ones"), std::string::npos) << "none is rounded to another";
    EXPECT_TRUE(line(result, "small_id").starts_with("category")) << line(result, "small_id");
    EXPECT_TRUE(line(result, "amount").starts_with("number: ")) << line(result, "amount");
  }
}

TEST_F(InitParquet, AFolderIsLookedAtAsAWhole) {
  const fs::path set = folder / "set";
  fs::create_directories(set);
  const Column y = label(), x = made<double>("x", ParquetType::f64, [](int r) { return 0.5 + drawn(r, 999); });
  std::vector<std::optional<std::string>> towns(kRows), none(kRows);
  for (int r = 0; r < kRows; ++r) towns[static_cast<size_t>(r)] = cat("town ", drawn(r, 9));
  Column nothing = made<uint8_t>("town", ParquetType::null, [](int) { return 0; });
  nothing.valid.assign(kRows, 0);
  write_parquet(set / "part-0.parquet", {y, nothing, x});
  write_parquet(set / "part-1.parquet", {x, y, texts("town", towns)});
  write_text(set / "_SUCCESS", "");
  for (const fs::path& data : {set, set / "*.parquet"}) {
    const InitResult result = init_of(data);
    EXPECT_TRUE(line(result, "town").starts_with("category: 9 different values")) << line(result, "town");
    EXPECT_NE(line(result, "town").find("% missing"), std::string::npos) << line(result, "town");
    EXPECT_NE(result.report.end(), std::find_if(result.report.begin(), result.report.end(),
                                                [](const auto& l) { return l.starts_with("rows: "); }));
  }
  const InitResult beside = init_of(file.parent_path() / "set", set / "part-1.parquet");
  EXPECT_TRUE(beside.config.find("set\"") != std::string::npos) << "the folder is the source";
  write_parquet(set / "part-2.parquet", {y, texts("x", towns), texts("town", towns)});
  EXPECT_SAYS(message_of([&] { init_of(set); }),
              "part-2.parquet': column 'x' has the type string, but in earlier files the type double");
}

TEST_F(InitParquet, TextsThatHoldSeveralValuesAreListsAsInTexts) {
  std::vector<std::optional<std::string>> brackets, between;
  for (int r = 0; r < kRows; ++r) {
    brackets.push_back(r % 9 == 0 ? "[]" : cat("['a", drawn(r, 20), "', 'b ", drawn(r + 500, 5), "']"));
    between.push_back(cat("k", drawn(r + 900, 7), r % 2 ? "" : cat("|k", drawn(r + 901, 7))));
  }
  write_parquet(file, {label(), texts("tags", brackets), texts("words", between)});
  const InitResult result = init_of(file);
  EXPECT_EQ(line(result, "tags"), "list of categories: in brackets, up to 2 values, 25 different ones");
  EXPECT_NE(line(result, "words").find("list of categories: '|'"), std::string::npos) << line(result, "words");
  const Json section = parquet_section(result);
  const Json::Array& slots = *section.find("slots")->array();
  ASSERT_EQ(slots.size(), 2u) << result.config;
  EXPECT_TRUE(*slots[0].find("brackets")->boolean());
  EXPECT_EQ(*slots[1].find("separator")->string(), "|");
}

}  // namespace
}  // namespace hctr::data_test
