// Column types that differ between the files of a set: equal values have equal keys, or the set is rejected.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/data/column_rules.h"
#include "formats/data/slot_key_rules.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct ParquetTypes : ParquetRig {
  const fs::path second = folder / "second.parquet", list = folder / "list.txt";

  /// Writes two files and a list of them. The data of slot "s0" are `slot` in the first file, and `other` in the
  /// second.
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
  /// A column of nulls.
  static Column nothing() { return numbers<uint8_t>("s0", ParquetType::null, {0, 0, 0}, {0, 1, 2}); }

  const Column integers = numbers<int64_t>("s0", ParquetType::i64, {41, 42, 43});
  const Column words = texts("s0", {"41", "42", "43"});
};

TEST_F(ParquetTypes, IntegersInOneFileAndTextInAnotherAreRefusedWithoutARule) {
  write_both(integers, words);
  const std::string message = error_of_both(one_slot());
  EXPECT_SAYS(message, "column 's0' has the type string in '");
  EXPECT_SAYS(message, "second.parquet', but another type in '");
  EXPECT_SAYS(message,
              "part.parquet' (int64): equal values would get different keys; store 's0' with one type, or set");
  write_both(words, integers);
  EXPECT_SAYS(error_of_both(one_slot()), "part.parquet' (string)");
  write_both(lists<int64_t>("s0", ParquetType::i64, {{1, 2}, {}, {3}}), words);
  EXPECT_SAYS(error_of_both(one_slot()), "has the type string in");
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
  EXPECT_SAYS(error_of_both(with_keys(KeyRule::number)), "expected an integer from -2^63 to 2^64 - 1, found 'true'");
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
  EXPECT_SAYS(message_of([&] { slot_key_rules(Json(Json::Array{Json("user")})); }),
              "slot needs \"column\" and \"keys\"");
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
  EXPECT_SAYS(error(one_slot()), "column 's0' (double): expected an integer id, found 17.5");
  EXPECT_SAYS(error(with_keys(KeyRule::hash)), "expected an integer id, found 17.5");
  write(lists<double>("s0", ParquetType::f64, {{17}, {2, 0.25}}));
  EXPECT_SAYS(error(one_slot()), "found 0.25");
  write(numbers<double>("s0", ParquetType::f64, {17, 9007199254740992.0}));
  EXPECT_SAYS(error(one_slot()), "the id 9007199254740992 is ambiguous");
  write(numbers<float>("s0", ParquetType::f32, {17, 16777216.0f}));
  EXPECT_SAYS(error(one_slot()), "from 16777216 on; store ids as integers or text");
  write(numbers<double>("s0", ParquetType::f64, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_SAYS(error(one_slot()), "found inf");
}

TEST_F(ParquetTypes, ALabelByItsTextHasOneFormInAllFiles) {
  DataSection section = one_slot();
  parquet_of(section).labels[0].positive.texts = {"true"};
  const auto write_labels = [&](const fs::path& to, const Column& labels) {
    write_parquet(to, {labels, numbers<float>("d0", ParquetType::f32, {1, 1, 1}), integers});
  };
  const Column words_of_truth = texts("y", {"true", "false", "true"});
  write_labels(file, words_of_truth);
  write_labels(folder / "second.parquet", numbers<uint8_t>("y", ParquetType::boolean, {1, 0, 1}));
  write_text(folder / "list", cat(file.string(), "\n", (folder / "second.parquet").string(), "\n"));
  const auto message = [&] {
    return message_of([&] { Rig(section, folder / "list", {.batch = 6, .repeat = false}).next(); });
  };
  EXPECT_SAYS(message(), "column 'y' has the type bool in '");
  EXPECT_SAYS(message(), "equal values would be different texts of \"positive\": store 'y' with one type");
  write_labels(folder / "second.parquet", words_of_truth);
  EXPECT_EQ(message(), "");
}

TEST_F(ParquetTypes, IdsAsTextWithZerosBehindThePointAreTheIntegers) {
  write(texts("s0", {"17.0", "-3.", "42.00"}));
  EXPECT_EQ(read(with_keys(KeyRule::number), 3).keys[0], (std::vector<int64_t>{17, -3, 42}));
  for (const char* wrong : {"17.5", ".0", "1.0.0", "17.0x"}) {
    write(texts("s0", {wrong}));
    EXPECT_SAYS(error(with_keys(KeyRule::number)), cat("found '", wrong, "'"));
  }
}

TEST_F(ParquetTypes, Every64BitNumberIsAKey) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const auto keys = (std::vector<int64_t>{most, least, -1});
  write(numbers<int64_t>("s0", ParquetType::i64, keys));
  EXPECT_EQ(read(one_slot(), 3).keys[0], keys);
  write(numbers<uint64_t>("s0", ParquetType::u64, {1ull << 63, (1ull << 63) - 1, ~0ull}));
  EXPECT_EQ(read(one_slot(), 3).keys[0], (std::vector<int64_t>{least, most, -1}));
  write(texts("s0", {"9223372036854775808", "-9223372036854775808", "18446744073709551615"}));
  EXPECT_EQ(read(with_keys(KeyRule::number), 3).keys[0], (std::vector<int64_t>{least, least, -1}));
  write(lists<int64_t>("s0", ParquetType::i64, {{-7, most}, {}, {least}}));
  EXPECT_EQ(read(one_slot(), 3).keys[0], (std::vector<int64_t>{-7, most, least}));
  write(texts("s0", {"1", "2", "18446744073709551616"}));
  EXPECT_SAYS(error(with_keys(KeyRule::number)), "expected an integer from -2^63 to 2^64 - 1, found '1844674407");
}

TEST_F(ParquetTypes, ANegativeNumberIsNoKeyOfASizedSlot) {
  DataSection section = one_slot();
  section.slot_size_array = {10};
  for (const Column& column : {numbers<int32_t>("s0", ParquetType::i32, {5, -1, 2}), texts("s0", {"1", "-1", "2"})}) {
    write(column);
    parquet_of(section).slots[0].keys = KeyRule::number;
    EXPECT_SAYS(error(section), "expected an integer of at least 0, because \"slot_size_array\" is set, found '-1'");
  }
}

TEST_F(ParquetTypes, KeysOfModelFilesAreWideWhereANarrowColumnHasNegativeOnes) {
  const auto bytes = [&](const Column& column) {
    write(column);
    return Rig(one_slot(), file, {.batch = 3, .repeat = false}).reader->key_bytes();
  };
  EXPECT_EQ(bytes(numbers<int32_t>("s0", ParquetType::i32, {5, 1, 2})), 4);
  EXPECT_EQ(bytes(numbers<int32_t>("s0", ParquetType::i32, {5, -1, 2})), 8);
  EXPECT_EQ(bytes(numbers<int16_t>("s0", ParquetType::i16, {-5, 1, 2})), 8);
  EXPECT_EQ(bytes(numbers<uint32_t>("s0", ParquetType::u32, {5, 1, 4000000000u})), 4);
}

TEST_F(ParquetTypes, AFolderOfPartitionsIsASetWhoseValuesAreColumns) {
  write(integers);
  for (const char* day : {"day=2", "day=10", "day=__HIVE_DEFAULT_PARTITION__"}) {
    fs::create_directories(folder / "set" / day);
    fs::copy_file(file, folder / "set" / day / "part-0.parquet");
  }
  write_text(folder / "set" / "_SUCCESS", "");
  for (const char* source : {"set", "set/day=*/*.parquet"}) {
    Rig rig(one_slot(), folder / source, {.batch = 6, .repeat = false});
    EXPECT_EQ(rig.next()->keys[0], (std::vector<int64_t>{41, 42, 43, 41, 42, 43}));
  }
  DataSection section = named(2, {input_of("s", 2, 1, 2)});
  parquet_of(section).default_dense = 7;
  parquet_of(section).dense[0].columns = {"d0", "day"};
  parquet_of(section).slots[0].columns = {"s0", "day"};
  parquet_of(section).slots[0].fallback = "";
  Source source{(folder / "set").string()};
  source.keep = {"day"};
  Rig rig(section, source, {.batch = 9, .repeat = false});
  const auto batch = rig.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->dense, (std::vector<float>{0.5f, 10, 0.5f, 10, 0.5f, 10, 0.5f, 2, 0.5f, 2, 0.5f, 2,  //
                                              0.5f, 7, 0.5f, 7, 0.5f, 7}));
  const int64_t two = csv_hashed_key("2", 0, 1, kAllKeys), ten = csv_hashed_key("10", 0, 1, kAllKeys);
  EXPECT_EQ(batch->keys[0], (std::vector<int64_t>{41, 42, 43, 41, 42, 43, 41, 42, 43, ten, ten, ten, two, two, two}));
  EXPECT_EQ(rig.reader->take_passed_on().kept.cell(0), "10");
  parquet_of(section).slots[0].columns = {"s0", "hour"};
  EXPECT_SAYS(message_of([&] { Rig(section, folder / "set", {.batch = 6, .repeat = false}).next(); }),
              "there is no column 'hour'; there are 'y', 'd0', 's0', 'day'");
}

}  // namespace
}  // namespace hctr::data_test
