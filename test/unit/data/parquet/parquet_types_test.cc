// The types of columns in the files of a set: equal values have equal keys whatever the types, or the set is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/column_rules.h"
#include "data/slot_key_rules.h"
#include "unit/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct ParquetTypes : ParquetRig {
  const fs::path second = folder / "second.parquet", list = folder / "list.txt";

  /// Two files with the slot "s0" as these columns, and the list of both.
  void write_both(const Column& slot, const Column& other) {
    write(slot);
    const auto rows = static_cast<size_t>(other.rows());
    write_parquet(second, {numbers("y", ParquetType::f32, std::vector<float>(rows, 1)),
                           numbers("d0", ParquetType::f32, std::vector<float>(rows, 0.5f)), other});
    write_file_list(list, {file, second}, true);
  }
  std::vector<int64_t> keys_of_both(const DataSection& section) {
    Rig rig(section, list, {.batch = 6, .repeat = false});
    return rig.next()->keys[0];
  }
  std::string error_of_both(const DataSection& section) {
    return message_of([&] { keys_of_both(section); });
  }
  DataSection with_keys(KeyRule keys) {
    DataSection section = one_slot();
    parquet_of(section).slots[0].keys = keys;
    return section;
  }
  /// A column without a value.
  static Column nothing() { return numbers<uint8_t>("s0", ParquetType::null, {0, 0, 0}, {0, 1, 2}); }

  const Column integers = numbers<int64_t>("s0", ParquetType::i64, {41, 42, 43});
  const Column words = texts("s0", {"41", "42", "43"});
};

TEST_F(ParquetTypes, IntegersInOneFileAndTextInAnotherAreRefusedWithoutARule) {
  write_both(integers, words);
  const std::string message = error_of_both(one_slot());
  EXPECT_SAYS(message, "column 's0' is of the type string in '");
  EXPECT_SAYS(message, "second.parquet', and of another in '");
  EXPECT_SAYS(message,
              "part.parquet' (int64): equal values would get different keys; store 's0' with one type, or state");
  write_both(words, integers);
  EXPECT_SAYS(error_of_both(one_slot()), "part.parquet' (string)");
  write_both(lists<int64_t>("s0", ParquetType::i64, {{1, 2}, {}, {3}}), words);
  EXPECT_SAYS(error_of_both(one_slot()), "is of the type string in");
}

TEST_F(ParquetTypes, ARuleGivesIntegersAndTextEqualKeys) {
  write_both(integers, words);
  EXPECT_EQ(keys_of_both(with_keys(KeyRule::number)), (std::vector<int64_t>{41, 42, 43, 41, 42, 43}));
  for (const KeyRule rule : {KeyRule::hash, KeyRule::hex}) {
    const std::vector<int64_t> keys = keys_of_both(with_keys(rule));
    EXPECT_EQ(std::vector<int64_t>(keys.begin(), keys.begin() + 3), std::vector<int64_t>(keys.begin() + 3, keys.end()));
    EXPECT_NE(keys[0], 41);
  }
}

TEST_F(ParquetTypes, WidthsOfIntegersAndWholeFloatsGoTogether) {
  const auto same = (std::vector<int64_t>{41, 42, 43, 41, 42, 43});
  for (const Column& other :
       {numbers<uint16_t>("s0", ParquetType::u16, {41, 42, 43}), numbers<double>("s0", ParquetType::f64, {41, 42, 43}),
        numbers<float>("s0", ParquetType::f32, {41, 42, 43})}) {
    write_both(integers, other);
    EXPECT_EQ(keys_of_both(one_slot()), same);
    write_both(other, integers);
    EXPECT_EQ(keys_of_both(one_slot()), same);
  }
}

TEST_F(ParquetTypes, TrueIsNotTheText1UnderAHash) {
  write_both(numbers<uint8_t>("s0", ParquetType::boolean, {1, 0, 1}), texts("s0", {"true", "false", "true"}));
  EXPECT_SAYS(error_of_both(with_keys(KeyRule::hash)), "store 's0' with one type");
  EXPECT_SAYS(error_of_both(with_keys(KeyRule::number)), "expected an integer of at least 0, found 'true'");
}

TEST_F(ParquetTypes, ADefaultInAFileWithoutValuesHasTheKeyOfTheOtherFiles) {
  DataSection section = one_slot();
  parquet_of(section).slots[0].fallback = "42";
  for (const bool first : {false, true}) {
    first ? write_both(nothing(), words) : write_both(words, nothing());
    const std::vector<int64_t> keys = keys_of_both(section);
    EXPECT_EQ(keys[0 + (first ? 0 : 3)], csv_hashed_key("42", 0, 0, kAllKeys));
    EXPECT_EQ(keys[1 + (first ? 3 : 0)], csv_hashed_key("42", 0, 0, kAllKeys));
  }
  write_both(integers, nothing());
  EXPECT_EQ(keys_of_both(section), (std::vector<int64_t>{41, 42, 43, 42, 42, 42}));
}

TEST_F(ParquetTypes, DataOfAModelWithOtherTypesAreRefused) {
  write(words);
  DataSection section = one_slot();
  parquet_of(section).known_rules = {{"s0", KeyRule::number}};
  const std::string message = error(section);
  EXPECT_SAYS(message, "column 's0': its keys are hashes of texts in '");
  EXPECT_SAYS(message, "part.parquet' (string), and the integers in the column in the training data of the model");
  write(integers);
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>{41, 42, 43}));
  parquet_of(section).known_rules = {{"s0", KeyRule::hash}};
  EXPECT_SAYS(error(section), "its keys are the integers in the column in");
  write(nothing());
  parquet_of(section).slots[0].fallback = "42";
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>(3, csv_hashed_key("42", 0, 0, kAllKeys))));
  parquet_of(section).slots[0].keys = KeyRule::number;
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>{42, 42, 42})) << "what the config states is compared there";
}

TEST_F(ParquetTypes, RulesOfSlotsComeBackFromAModelsDescription) {
  const std::vector<SlotKeyRule> rules = {{"user", KeyRule::number}, {"city", KeyRule::hash, "'a.parquet' (string)"}};
  EXPECT_EQ(slot_key_rules_of(Json(Json::Object{{"slot_keys", to_json(rules)}})), rules);
  EXPECT_TRUE(slot_key_rules_of(Json(Json::Object{{"files", 1}})).empty());
  EXPECT_SAYS(message_of([&] { slot_key_rules(Json(Json::Array{Json("user")})); }), "lack \"column\" or \"keys\"");
}

TEST_F(ParquetTypes, WholeFloatsAreTheIntegers) {
  const double nan = std::nan("");
  DataSection section = one_slot();
  parquet_of(section).slots[0].fallback = "9";
  write(numbers<double>("s0", ParquetType::f64, {17, nan, 4e15, 0}, {3}));
  EXPECT_EQ(read(section, 4).keys[0], (std::vector<int64_t>{17, 9, 4'000'000'000'000'000, 9}));
  write(lists<double>("s0", ParquetType::f64, {{1e5, 2}, {}, {nan}, {3}}));
  EXPECT_EQ(read(section, 4).keys[0], (std::vector<int64_t>{100'000, 2, 9, 3}));
  parquet_of(section).slots[0].keys = KeyRule::hash;
  const int64_t hashed = csv_hashed_key("100000", 0, 0, kAllKeys);
  EXPECT_EQ(read(section, 4).keys[0][0], hashed);
  write(numbers<float>("s0", ParquetType::f32, {1e5f, -3}));
  EXPECT_EQ(read(section, 2).keys[0], (std::vector<int64_t>{hashed, csv_hashed_key("-3", 0, 0, kAllKeys)}));
}

TEST_F(ParquetTypes, FloatsThatAreNoCertainIntegerAreBadRecords) {
  write(numbers<double>("s0", ParquetType::f64, {17, 17.5}));
  EXPECT_SAYS(error(one_slot()), "column 's0' (double): expected a whole number, as ids are, found 17.5");
  EXPECT_SAYS(error(with_keys(KeyRule::hash)), "expected a whole number, as ids are, found 17.5");
  write(lists<double>("s0", ParquetType::f64, {{17}, {2, 0.25}}));
  EXPECT_SAYS(error(one_slot()), "found 0.25");
  write(numbers<double>("s0", ParquetType::f64, {17, 9007199254740992.0}));
  EXPECT_SAYS(error(one_slot()), "the id 9007199254740992 is not certain");
  write(numbers<float>("s0", ParquetType::f32, {17, 16777216.0f}));
  EXPECT_SAYS(error(one_slot()), "rounded to it from 16777216 on; store ids as integers or text");
  write(numbers<double>("s0", ParquetType::f64, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_SAYS(error(one_slot()), "found inf");
}

}  // namespace
}  // namespace hctr::data_test
