// Warnings about label words and vocabulary values that do not occur in the data.
#include "formats/catalog/first_matches.h"

#include <gtest/gtest.h>

#include "formats/catalog/unlisted_keys.h"
#include "formats/parquet/parquet_set.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

struct FirstMatches : ::testing::Test {
  /// A section with a label, a slot of numbers, and a slot with the vocabulary "cities".
  DataSection section() {
    DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
    section.format = kCsvFormat;
    auto& csv = section.options.edit<CsvOptions>();
    csv.labels = {"y"};
    csv.slots = {{{"s"}, KeyRule::number, 0, "", "", {}},
                 {{"city"}, KeyRule::vocabulary, 0, (folder / "cities").string(), "", {}}};
    write_text(folder / "cities", "Oslo\nParis\n");
    return section;
  }
  static std::string table(int rows, const std::string& label, const std::string& city) {
    std::string text = "y,s,city\n";
    for (int i = 0; i < rows; ++i) text += cat(label, ",", i, ",", city, "\n");
    return text;
  }
  Source file_of(const std::string& text) {
    write_text(folder / "rows.csv", text);
    return {.path = (folder / "rows.csv").string()};
  }
  Folder folder;
  std::string said;
  Log log{[this](Level level, std::string_view line) {
    said += cat(level == Level::warning ? "warning: " : "", line, "\n");
  }};
};

TEST_F(FirstMatches, ALabelOfNoneOfManyRowsIsAnErrorUnlessItIsAllowed) {
  DataSection rated = section();
  rated.options.edit<CsvOptions>().labels[0].positive.texts = {"True"};
  const auto check = [&](int rows, const std::string& label, bool allowed) {
    check_positives(rated, file_of(table(rows, label, "Oslo")), KeyWidth::detect, allowed, log);
  };
  const std::string message = message_of([&] { check(140, "true", false); });
  EXPECT_SAYS(message, "none of its first 140 rows has 'True' in column 'y'; there are 'true'");
  EXPECT_SAYS(message, "Add --unmatched allow");
  EXPECT_EQ(said, "");
  check(99, "true", false);
  check(140, "true", true);
  EXPECT_SAYS(said, "warning: no label of");
  EXPECT_SAYS(said, "none of its first 140 rows");
  rated.options.edit<CsvOptions>().labels[0].positive = {{}, 3};
  EXPECT_SAYS(message_of([&] { check(300, "2.5", false); }), "has at least 3");
  check_positives(rated, file_of(table(300, "3", "Oslo") + "2,1,Oslo\n"), KeyWidth::detect, false, log);
}

TEST_F(FirstMatches, ALabelOfAllOfManyRowsIsAnErrorUnlessItIsAllowed) {
  DataSection rated = section();
  rated.options.edit<CsvOptions>().labels[0].positive.at_least = 3;
  const auto check = [&](const std::string& text, bool allowed) {
    check_positives(rated, file_of(text), KeyWidth::detect, allowed, log);
  };
  EXPECT_SAYS(message_of([&] { check(table(140, "5", "Oslo"), false); }),
              "is 1: all of its first 140 rows have at least 3 in column 'y'. Add --unmatched allow");
  EXPECT_EQ(said, "");
  check(table(99, "5", "Oslo"), false);
  EXPECT_SAYS(said, "warning: each label of");
  said.clear();
  check(table(140, "5", "Oslo"), true);
  EXPECT_SAYS(said, "all of its first 140 rows");
  said.clear();
  check(table(140, "5", "Oslo") + "1,0,Oslo\n", false);
  EXPECT_EQ(said, "");
}

TEST_F(FirstMatches, AWordThatNeverOccursBesideOthersIsNoted) {
  DataSection several = section();
  several.options.edit<CsvOptions>().labels[0].positive.texts = {"yes", "Y", "1"};
  const std::string both = table(3, "no", "Oslo") + "yes,1,Oslo\n1,2,Rome\n";
  check_positives(several, file_of(both), KeyWidth::detect, false, log);
  EXPECT_SAYS(said, "note: the first 5 rows of");
  EXPECT_SAYS(said, "never contain 'Y' in column 'y', although \"positive\" lists this text.");
  said.clear();
  check_positives(several, file_of(both + "Y,3,Oslo\n"), KeyWidth::detect, false, log);
  EXPECT_EQ(said, "");
}

TEST_F(FirstMatches, AVocabularyThatMatchesNothingIsAnErrorUnlessItIsAllowed) {
  const auto check = [&](const std::string& text, bool allowed) {
    check_vocabularies(section(), file_of(text), KeyWidth::detect, allowed, log);
  };
  const std::string message = message_of([&] { check(table(130, "1", "oslo"), false); });
  EXPECT_SAYS(message, "the vocabulary of column 'city' has none of the 130 values in the first 130 rows");
  EXPECT_SAYS(message, "Add --unmatched allow");
  EXPECT_EQ(said, "");
  check(table(130, "1", "oslo") + "1,1,Paris\n", false);
  check(table(130, "1", ""), false);
  EXPECT_EQ(said, "") << "one value is enough, and an empty cell is none";
  check(table(4, "1", "oslo"), false);
  check(table(130, "1", "oslo"), true);
  EXPECT_SAYS(said, "warning: '");
  EXPECT_SAYS(said, "none of the 4 values");
  EXPECT_SAYS(said, "none of the 130 values");
}

TEST_F(FirstMatches, OfParquetTheSame) {
  HCTR_SKIP_WITHOUT_PARQUET();
  DataSection parquet = section();
  parquet.format = kParquetFormat;
  parquet.options.edit<ParquetOptions>().labels = {"y"};
  parquet.options.edit<ParquetOptions>().labels[0].positive.texts = {"yes"};
  parquet.options.edit<ParquetOptions>().slots = parquet.options.find<CsvOptions>()->slots;
  const Source source{.path = (folder / "a.parquet").string()};
  write_parquet(folder / "a.parquet", {texts("y", std::vector<std::optional<std::string>>(110, "Yes")),
                                       numbers<int64_t>("s", ParquetType::i64, std::vector<int64_t>(110, 5)),
                                       texts("city", std::vector<std::optional<std::string>>(110, "Rome"))});
  EXPECT_SAYS(message_of([&] { check_positives(parquet, source, KeyWidth::detect, false, log); }), "has 'yes'");
  EXPECT_SAYS(message_of([&] { check_vocabularies(parquet, source, KeyWidth::detect, false, log); }),
              "the vocabulary of column 'city' has none of the 110 values");
}

TEST_F(FirstMatches, TheKeyOfUnlistedValuesStandsBehindThoseOfTheVocabulary) {
  DataSection hashed = section();
  EXPECT_EQ(unlisted_keys(hashed), (std::vector<std::optional<int64_t>>{std::nullopt, 2}));
  auto& slots = hashed.options.edit<CsvOptions>().slots;
  slots[0].keys = KeyRule::hash;
  slots[0].buckets = 10;
  EXPECT_EQ(unlisted_keys(hashed)[1], 12);
  slots[1].keys = KeyRule::hash;
  EXPECT_FALSE(unlisted_keys(hashed)[1]);
}

}  // namespace
}  // namespace hctr::data_test
