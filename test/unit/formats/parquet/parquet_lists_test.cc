// Parquet texts with several values give the same keys as Csv cells.
#include <gtest/gtest.h>

#include "formats/data/column_rules.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct ParquetLists : ParquetRig {
  DataSection section(bool brackets, const std::string& separator) {
    DataSection section = named(1, {input_of("s", 1, 4, 4)});
    SlotColumns& slot = parquet_of(section).slots[0];
    slot.brackets = brackets;
    slot.separator = separator;
    return section;
  }
  static int64_t key(const char* text) { return csv_hashed_key(text, 0, 0, kAllKeys); }
};

TEST_F(ParquetLists, TextsInBracketsGiveTheKeysOfTheirValues) {
  write(texts("s0", {"['red', 'dark blue', None]", "[]", "array(['red'])"}));
  DataSection lists = section(true, "");
  parquet_of(lists).missing = {"None"};
  const auto batch = read(lists, 3);
  EXPECT_EQ(batch.offsets[0], (std::vector<int32_t>{0, 2, 2, 3}));
  EXPECT_EQ(batch.keys[0], (std::vector<int64_t>{key("red"), key("dark blue"), key("red")}));
  write(texts("s0", {"(7; 9)", "{9}", "[07]"}));
  lists = section(true, ";");
  parquet_of(lists).slots[0].keys = KeyRule::number;
  EXPECT_EQ(read(lists, 3).keys[0], (std::vector<int64_t>{7, 9, 9, 7}));
}

TEST_F(ParquetLists, TextsWithASeparatorGiveTheKeysOfTheirValues) {
  write(texts("s0", {"a|b| c", "|", "b"}));
  DataSection lists = section(false, "|");
  parquet_of(lists).trim = true;
  const auto batch = read(lists, 3);
  EXPECT_EQ(batch.offsets[0], (std::vector<int32_t>{0, 3, 3, 4}));
  EXPECT_EQ(batch.keys[0], (std::vector<int64_t>{key("a"), key("b"), key("c"), key("b")}));
}

TEST_F(ParquetLists, WhatIsNoSuchListNamesColumnValueAndReason) {
  write(texts("s0", {"[a]", "[[a], [b]]", "[c]"}));
  EXPECT_SAYS(error(section(true, "")),
              "column 's0' (string): expected a list in brackets, found '[[a], [b]]': the list contains lists");
  write(texts("s0", {"[1, x]", "[2]", "[3]"}));
  DataSection numbers_only = section(true, "");
  parquet_of(numbers_only).slots[0].keys = KeyRule::number;
  EXPECT_SAYS(error(numbers_only), "expected an integer from -2^63 to 2^64 - 1, found 'x'");
  write(texts("s0", {"[a, b, c, d, e]", "[a]", "[b]"}));
  EXPECT_SAYS(error(section(true, "")), "5 keys");
  write(lists<int64_t>("s0", ParquetType::i64, {{1}, {2}, {3}}));
  EXPECT_SAYS(error(section(true, "")), "\"brackets\" and \"separator\" split texts, not lists");
}

}  // namespace
}  // namespace hctr::data_test
