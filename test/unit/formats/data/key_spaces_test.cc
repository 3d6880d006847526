// Slots of one key space give equal values equal keys, in text files, in Parquet files, and across both formats.
#include <gtest/gtest.h>

#include "formats/catalog/data_schema.h"
#include "formats/data/column_rules.h"
#include "formats/text/csv_set.h"
#include "support/problems_text.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

using Keys = std::vector<int64_t>;

/// Slots "city", "item", "list" and "shop". "item" and "list" share "key_space": "items".
std::vector<SlotColumns> four_slots(KeyRule keys, int64_t buckets, const std::string& vocabulary = "") {
  SlotColumns city{{"city"}, KeyRule::hash, 10, "", "", {}}, shop{{"shop"}, KeyRule::hash, 5, "", "", {}};
  SlotColumns item{{"item"}, keys, buckets, vocabulary, "", {}, "items"};
  SlotColumns list{{"list"}, keys, buckets, vocabulary, "|", {}, "items"};
  return {city, item, list, shop};
}

/// The keys of the rows "x,a,b|a,z" and "x,c,c,z". They are ordered by slot, then by row: x x, a c, b a c, z z.
Keys keys_of_csv(const std::vector<SlotColumns>& slots, const Folder& folder) {
  write_text(folder / "rows", "y,city,item,list,shop\n1,x,a,b|a,z\n0,x,c,c,z\n");
  DataSection section = section_of(1, 0, {input_of("s", 4, 2, 8)});
  section.format = kCsvFormat;
  auto& csv = section.options.edit<CsvOptions>();
  csv.labels = {"y"};
  csv.hash_seed = 3;
  csv.slots = slots;
  return Rig(section, folder / "rows", {.batch = 2, .workers = 1, .repeat = false}).next()->keys[0];
}

TEST(KeySpaces, HashesShareSeedAndBaseOfTheFirstSlot) {
  const Folder folder;
  const auto item = [](const char* text) { return 10 + csv_hashed_key(text, 3, 1, 1000); };
  const int64_t city = csv_hashed_key("x", 3, 0, 10), shop = 1010 + csv_hashed_key("z", 3, 3, 5);
  EXPECT_EQ(keys_of_csv(four_slots(KeyRule::hash, 1000), folder),
            (Keys{city, city, item("a"), item("c"), item("b"), item("a"), item("c"), shop, shop}));
  const Keys wide = keys_of_csv(four_slots(KeyRule::hash, 0), folder);
  EXPECT_EQ(wide[2], csv_hashed_key("a", 3, 1, kAllKeys)) << "the first slot has the keys that it has alone";
  EXPECT_EQ(wide[5], wide[2]);
  EXPECT_EQ(wide[7], 10 + csv_hashed_key("z", 3, 3, 5)) << "keys without buckets take no room of the others";
}

TEST(KeySpaces, AVocabularyNumbersBothSlots) {
  const Folder folder;
  write_text(folder / "ids", "b\na\n");
  const Keys keys = keys_of_csv(four_slots(KeyRule::vocabulary, 0, (folder / "ids").string()), folder);
  EXPECT_EQ(Keys(keys.begin() + 2, keys.begin() + 7), (Keys{11, 12, 10, 11, 12}));
  EXPECT_EQ(keys[7], 13 + csv_hashed_key("z", 3, 3, 5)) << "two values and one key for all others, once";
}

TEST(KeySpaces, ColumnsOfOneGroupMayShare) {
  const SlotColumns pair{{"a", "b"}, KeyRule::hash, 9, "", "", {}, "pair"}, other{{"c"}, KeyRule::hash, 9, "", "", {}};
  const std::vector<SlotRule> rules = slot_rules({pair, other}, 0, {});
  EXPECT_EQ(rules[0].seed, rules[1].seed);
  EXPECT_EQ(rules[1].base, 0);
  EXPECT_EQ(rules[2].base, 9);
  EXPECT_NE(rules[2].seed, rules[0].seed);
}

struct ParquetKeySpaces : ParquetRig {};

TEST_F(ParquetKeySpaces, TextListsShareTheKeysThatACsvGivesThem) {
  write_parquet(file, {numbers<float>("y", ParquetType::f32, {1, 0}), texts("city", {"x", "x"}),
                       texts("item", {"a", "c"}), texts("list", {"a", "c"}), texts("shop", {"z", "z"})});
  DataSection section = named(0, {input_of("s", 4, 2, 8)});
  parquet_of(section).hash_seed = 3;
  parquet_of(section).slots = four_slots(KeyRule::hash, 1000);
  for (SlotColumns& group : parquet_of(section).slots) group.separator = "";
  const Keys keys = read(section, 2).keys[0], csv = keys_of_csv(four_slots(KeyRule::hash, 1000), folder);
  EXPECT_EQ(keys, (Keys{csv[0], csv[1], csv[2], csv[3], csv[2], csv[3], csv[7], csv[8]}));
}

TEST_F(ParquetKeySpaces, IntegersOfOneSpaceHaveOneOffset) {
  const Column label = numbers<float>("y", ParquetType::f32, {1, 0});
  write_parquet(
      file, {label, numbers<int64_t>("s0", ParquetType::i64, {1, 2}), numbers<int64_t>("s1", ParquetType::i64, {7, 8}),
             lists<int32_t>("s2", ParquetType::i32, {{8, 7}, {7}})});
  DataSection section = named(0, {input_of("s", 3, 2, 6)});
  section.slot_size_array = {100, 20, 20};
  const SlotColumns first{{"s0"}, {}, 0, "", "", {}}, items{{"s1", "s2"}, KeyRule::number, 0, "", "", {}, "items"};
  parquet_of(section).slots = {first, items};
  EXPECT_EQ(read(section, 2).keys[0], (Keys{1, 2, 107, 108, 108, 107, 107}));
}

/// Returns the problems of a Data layer with these slots. `parquet`: the format is Parquet instead of Csv.
std::string problems_of(const std::string& slots, bool parquet = false) {
  Problems problems;
  data_section_of(Json::parse(cat(R"({"layers": [{"type": "Data", "format": ")", parquet ? "Parquet" : "Csv",
                                  R"(", "source": "a", ")", parquet ? "parquet" : "csv",
                                  R"(": {"labels": ["y"], "slots": [)", slots,
                                  R"(]}, "label": {"top": "l"}, "dense": {"top": "d", "dense_dim": 0},
                      "sparse": [{"top": "x", "max_feature_num_per_sample": 9}]}]})"),
                              "x"),
                  problems);
  return test::problems_text(problems);
}

TEST(KeySpaces, SlotsThatMakeKeysInOtherWaysAreRefused) {
  const auto with = [](const std::string& more, const std::string& other) {
    return problems_of(
        cat(R"({"columns": ["a"], "key_space": "s")", more, R"(}, {"columns": ["b"], "key_space": "s")", other, "}"));
  };
  EXPECT_EQ(with("", R"(, "separator": "|", "default": "none", "keys": "hash")"), "");
  EXPECT_EQ(with(R"(, "buckets": 5)", R"(, "buckets": 6)"),
            "error /layers/0/csv/slots/1/buckets: differs from /layers/0/csv/slots/0/buckets, which has the key space "
            "\"s\" too: all slots of a key space must use the same fields for keys\n");
  EXPECT_SAYS(with("", R"(, "keys": "number")"), "error /layers/0/csv/slots/1/keys: differs from");
  EXPECT_SAYS(with(R"(, "keys": "vocabulary", "vocabulary": "f")", R"(, "keys": "vocabulary", "vocabulary": "g")"),
              "error /layers/0/csv/slots/1/vocabulary: differs from");
  EXPECT_EQ(problems_of(R"({"columns": ["a"], "key_space": "item"}, {"columns": ["b", "c"], "key_space": "items"})"),
            "warning /layers/0/csv/slots/0/key_space: no other slot has the key space \"item\", so the field has no "
            "effect\n");
}

TEST(KeySpaces, OfParquetStateTheirKeys) {
  EXPECT_EQ(problems_of(R"({"columns": ["a", "b"], "key_space": "s", "keys": "hash"})", true), "");
  EXPECT_SAYS(problems_of(R"({"columns": ["a", "b"], "key_space": "s"})", true),
              "error /layers/0/parquet/slots/0/keys: slots with a \"key_space\" need \"keys\", such as \"hash\"");
}

}  // namespace
}  // namespace hctr::data_test
