// Columns that only training needs may be missing in data for scoring: weights, labels, and slots without a table.
#include <gtest/gtest.h>

#include "formats/data/source.h"
#include "formats/features/feature_section.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

/// Options with two labels, a weight, a dense value and two slots.
template <class Options>
DataSection two_labels_and_weight(DataFormat format) {
  DataSection section = section_of(3, 1, {input_of("keys", 1, 1, 1), input_of("group", 1, 1, 1)});
  section.format = format;
  section.sample_weight = {.top = "w", .column = "kg", .given = true};
  auto& options = section.options.edit<Options>();
  options.labels = {"click", "buy", "kg"};
  options.dense = {DenseColumns{.columns = {"price"}}};
  SlotColumns slots;
  slots.keys = KeyRule::number;
  slots.columns = {"item", "shop"};
  options.slots = {slots};
  return section;
}

/// A source with the columns that evaluation and prediction require.
Source evaluated(const fs::path& file) { return {.path = file.string(), .weight_optional = true}; }
Source predicted(const fs::path& file) {
  return {.path = file.string(), .labels_optional = true, .slots_optional = {false, true}};
}

ReadBatch first_batch(const DataSection& section, const Source& source, bool* has_labels = nullptr,
                      const Log& log = Log::silent()) {
  Rig rig(section, source, {.batch = 2, .repeat = false}, 2, log);
  if (has_labels) *has_labels = rig.reader->has_labels();
  return *rig.next();
}
std::string why(const DataSection& section, const Source& source) {
  return message_of([&] { first_batch(section, source); });
}

TEST(MissingColumns, CsvWeightsCountOnceInEvaluationAndTheLogSaysSo) {
  const Folder folder;
  const DataSection section = two_labels_and_weight<CsvOptions>(kCsvFormat);
  write_text(folder / "a.csv", "click,buy,price,item,shop\n1,0,2.5,7,8\n0,1,3.5,9,10\n");
  EXPECT_SAYS(why(section, {.path = (folder / "a.csv").string()}), "there is no column 'kg'") << "training needs it";
  std::string said;
  const Log log([&](Level, std::string_view line) { said += line; });
  EXPECT_EQ(first_batch(section, evaluated(folder / "a.csv"), nullptr, log).label,
            (std::vector<float>{1, 0, 1, 0, 1, 1}));
  EXPECT_SAYS(said, "has no column 'kg', the sample weight: all samples have weight 1");
  write_text(folder / "b.csv", "click,price,item,shop,kg\n1,2.5,7,8,2\n0,3.5,9,10,3\n");
  EXPECT_SAYS(why(section, evaluated(folder / "b.csv")), "there is no column 'buy'") << "metrics read every label";
  write_text(folder / "c.csv", "click,buy,price,item,shop,kg\n1,0,2.5,7,8,\n");
  EXPECT_SAYS(why(section, evaluated(folder / "c.csv")), "column 'kg': expected a number, found nothing");
}

TEST(MissingColumns, CsvFilesOfASetHaveWeightsAllOrNone) {
  const Folder folder;
  const DataSection section = two_labels_and_weight<CsvOptions>(kCsvFormat);
  write_text(folder / "a.csv", "click,buy,price,item,shop,kg\n1,0,2.5,7,8,4\n0,1,3.5,9,10,5\n");
  write_text(folder / "b.csv", "click,buy,price,item,shop\n1,0,2.5,7,8\n");
  write_text(folder / "list", cat("2\n", (folder / "a.csv").string(), "\n", (folder / "b.csv").string(), "\n"));
  const auto all = [&](const Source& source) {
    Rig rig(section, source, {.batch = 2, .repeat = false});
    while (rig.next()) {
    }
  };
  EXPECT_SAYS(message_of([&] { all(evaluated(folder / "list")); }),
              "expected weights in all files of a set or in "
              "none");
  EXPECT_NO_THROW(all(predicted(folder / "list")));
}

TEST(MissingColumns, CsvPredictionsNeedNeitherLabelsNorWeightsNorSlotsOfMetrics) {
  const Folder folder;
  const DataSection section = two_labels_and_weight<CsvOptions>(kCsvFormat);
  bool has_labels = false;
  write_text(folder / "one", "buy,price,item\n1,2.5,7\n,3.5,9\n");
  const ReadBatch one = first_batch(section, predicted(folder / "one"), &has_labels);
  EXPECT_EQ(one.label, (std::vector<float>{kNoLabel, 1, 1, kNoLabel, kNoLabel, 1}));
  EXPECT_EQ(one.keys, (std::vector<std::vector<int64_t>>{{7, 9}, {}}));
  EXPECT_TRUE(has_labels);
  write_text(folder / "weights", "kg,price,item,shop\n3,2.5,7,8\n4,3.5,9,10\n");
  const ReadBatch weights = first_batch(section, predicted(folder / "weights"), &has_labels);
  EXPECT_EQ(weights.label, (std::vector<float>{kNoLabel, kNoLabel, 3, kNoLabel, kNoLabel, 4}));
  EXPECT_EQ(weights.keys[1], (std::vector<int64_t>{8, 10})) << "what is there is read";
  EXPECT_FALSE(has_labels) << "a weight is not a label";
  write_text(folder / "no_slot", "price,shop\n2.5,8\n");
  EXPECT_SAYS(why(section, predicted(folder / "no_slot")), "there is no column 'item'");
}

using MissingParquetColumns = ParquetRig;
TEST_F(MissingParquetColumns, AreReadAsThoseOfCsv) {
  const DataSection section = two_labels_and_weight<ParquetOptions>(kParquetFormat);
  const auto floats = [](const char* name, float a, float b) { return numbers<float>(name, ParquetType::f32, {a, b}); };
  const auto keys = [](const char* name, int64_t a, int64_t b) {
    return numbers<int64_t>(name, ParquetType::i64, {a, b});
  };
  const Column price = floats("price", 2, 3), item = keys("item", 7, 9), shop = keys("shop", 8, 10);
  write_parquet(file, {floats("click", 1, 0), floats("buy", 0, 1), price, item, shop});
  EXPECT_SAYS(why(section, {.path = file.string()}), "there is no column 'kg'");
  std::string said;
  const Log log([&](Level, std::string_view line) { said += line; });
  EXPECT_EQ(first_batch(section, evaluated(file), nullptr, log).label, (std::vector<float>{1, 0, 1, 0, 1, 1}));
  EXPECT_SAYS(said, "has no column 'kg', the sample weight: all samples have weight 1");
  bool has_labels = false;
  write_parquet(file, {price, item, floats("buy", 1, 0)});
  const ReadBatch one = first_batch(section, predicted(file), &has_labels);
  EXPECT_EQ(one.label, (std::vector<float>{kNoLabel, 1, 1, kNoLabel, 0, 1}));
  EXPECT_EQ(one.keys, (std::vector<std::vector<int64_t>>{{7, 9}, {}}));
  EXPECT_EQ(one.dense, (std::vector<float>{2, 3}));
  EXPECT_TRUE(has_labels);
  write_parquet(file, {price, item, floats("kg", 3, 4)});
  first_batch(section, predicted(file), &has_labels);
  EXPECT_FALSE(has_labels);
  write_parquet(file, {price, shop});
  EXPECT_SAYS(why(section, predicted(file)), "there is no column 'item'");
}

TEST(MissingColumns, OfAFeatureSpecificationAreLabelsOfAMapping) {
  const Folder folder;
  write_text(folder / "spec.yaml", R"(feature_spec:
  click: {dtype: float32}
  kg: {dtype: float32}
  price: {dtype: float32}
  item: {dtype: int32, cardinality: 20}
source_spec:
  train: [{type: csv, features: [click, kg, price, item], files: [train.csv]}]
  test: [{type: csv, features: [click, price, item], files: [test.csv]}]
  new: [{type: csv, features: [price, item], files: [new.csv]}]
channel_spec: {label: [click, kg], numerical: [price], categorical: [item]}
metadata: {}
)");
  write_text(folder / "test.csv", "1,2.5,7\n0,3.5,9\n");
  write_text(folder / "new.csv", "2.5,7\n3.5,9\n");
  DataSection section = section_of(2, 1, {input_of("keys", 1, 1, 1)});
  section.feature_spec = (folder / "spec.yaml").string();
  section.sample_weight = {.top = "w", .given = true};
  Problems problems;
  complete_feature_section(section, "/layers/0", problems);
  problems.throw_if_any("config");
  EXPECT_SAYS(why(section, {.path = "test"}), "no chunk of mapping \"test\"");
  EXPECT_SAYS(why(section, {.path = "test"}), "holds the label \"kg\"");
  EXPECT_EQ(first_batch(section, evaluated("test")).label, (std::vector<float>{1, 1, 0, 1}));
  EXPECT_SAYS(why(section, evaluated("new")), "holds the label \"click\"");
  bool has_labels = true;
  const ReadBatch seen = first_batch(section, predicted("new"), &has_labels);
  EXPECT_EQ(seen.label, (std::vector<float>{kNoLabel, 1, kNoLabel, 1}));
  EXPECT_EQ(seen.keys[0], (std::vector<int64_t>{7, 9}));
  EXPECT_FALSE(has_labels);
}

}  // namespace
}  // namespace hctr::data_test
