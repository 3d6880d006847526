// Saves the contents of files that define keys, and compares them later.
#include "formats/catalog/encoding_contents.h"

#include <gtest/gtest.h>

#include "formats/parquet/parquet_set.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

struct EncodingContents : ::testing::Test {
  /// A section with a hashed slot and a vocabulary slot.
  DataSection of_csv() {
    DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
    section.format = kCsvFormat;
    section.options.edit<CsvOptions>().slots = {
        {{"s"}, KeyRule::hash, 0, "", "", {}},
        {{"city"}, KeyRule::vocabulary, 0, (folder / "cities").string(), "", {}}};
    return section;
  }
  DataSection of_parquet() {
    DataSection section = of_csv();
    section.format = kParquetFormat;
    section.options.edit<ParquetOptions>().slots = section.options.find<CsvOptions>()->slots;
    return section;
  }
  /// Saves a vocabulary of "Oslo" and "Paris", replaces it with `text`, and returns the message about the change.
  std::string changed(const std::string& text, const DataSection& now) {
    write_text(folder / "cities", "Oslo\nParis\n");
    const Json data(Json::Object{{"files", 1}, {"encoding", encoding_contents(of_csv())}});
    write_text(folder / "cities", text);
    return changed_contents(&data, now);
  }
  Folder folder;
};

TEST_F(EncodingContents, AreTheValuesOfVocabulariesInTheirOrder) {
  EXPECT_EQ(changed("Oslo\nParis\n", of_csv()), "");
  EXPECT_EQ(changed("\xEF\xBB\xBFOslo\r\n\"Paris\"", of_csv()), "") << "the same values, written otherwise";
  EXPECT_EQ(changed("Oslo\nParis\n", of_parquet()), "") << "the same slot of another format";
  for (const DataSection& section : {of_csv(), of_parquet()}) {
    const std::string swapped = changed("Paris\nOslo\n", section);
    EXPECT_NE(swapped.find("/slots/1/vocabulary was 2 values, hash "), swapped.npos) << swapped;
    EXPECT_NE(swapped.find(" and is 2 values, hash "), swapped.npos) << swapped;
    EXPECT_NE(changed("Oslo\nParis\nRome\n", section).find("and is 3 values"), std::string::npos);
    EXPECT_NE(changed("Oslo\nparis\n", section), "");
  }
}

TEST_F(EncodingContents, OfASlotThatHasNoVocabularyAnyMoreAreLeftToTheConfig) {
  DataSection hashed = of_csv();
  hashed.options.edit<CsvOptions>().slots[1].keys = KeyRule::hash;
  EXPECT_EQ(changed("Oslo\n", hashed), "");
  EXPECT_EQ(changed_contents(nullptr, of_csv()), "");
  const Json of_old_version(Json::Object{{"files", 1}});
  EXPECT_EQ(changed_contents(&of_old_version, of_csv()), "");
}

TEST_F(EncodingContents, AreTheFeaturesOfASpecification) {
  const auto spec_of = [&](const std::string& slots, const std::string& cardinality) {
    write_text(
        folder / "spec.yaml",
        "feature_spec:\n  y: {dtype: bool}\n  a: {dtype: int32, cardinality: 9}\n  b: {dtype: int32, cardinality: " +
            cardinality + "}\nsource_spec:\n  train:\n    - {type: csv, features: [y, a, b], files: [t.csv]}\n" +
            "channel_spec:\n  label: [y]\n  numerical: []\n  categorical: [" + slots + "]\n");
    DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
    section.feature_spec = (folder / "spec.yaml").string();
    return section;
  };
  const Json data(Json::Object{{"encoding", encoding_contents(spec_of("a, b", "5"))}});
  EXPECT_EQ(changed_contents(&data, spec_of("a, b", "5")), "");
  EXPECT_EQ(changed_contents(&data, spec_of("b, a", "5")),
            "/layers/0/feature_spec/slots/0 was 'a' of 9 ids and is 'b' of 5 ids; "
            "/layers/0/feature_spec/slots/1 was 'b' of 5 ids and is 'a' of 9 ids");
  EXPECT_EQ(changed_contents(&data, spec_of("a, b", "6")),
            "/layers/0/feature_spec/slots/1 was 'b' of 5 ids and is 'b' of 6 ids");
}

}  // namespace
}  // namespace hctr::data_test
