// If values of a slot share keys, the slot is read a second time with a distinct key for each value.
#include "formats/catalog/unshared_slot.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/files.h"
#include "formats/parquet/parquet_options.h"
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

/// A section with three slots: a and b of input "x", and c of input "y". `group`: the columns of slots b and c.
DataSection section_with(const SlotColumns& group) {
  DataSection section = section_of(1, 0, {input_of("x", 2, 3, 6), input_of("y", 1, 1, 1)});
  section.format = kCsvFormat;
  auto& csv = section.options.edit<CsvOptions>();
  csv.labels = {"l"};
  csv.slots = {{{"a"}, KeyRule::number, 0, "", "", {}}, group};
  return section;
}
SlotColumns buckets(int64_t count) { return {{"b", "c"}, KeyRule::hash, count, "", "|", {}}; }

TEST(UnsharedSlot, IsAddedForBucketsAndVocabularies) {
  for (const SlotColumns& group : {buckets(2), SlotColumns{{"b", "c"}, KeyRule::vocabulary, 0, "v.txt", "|", {}}}) {
    DataSection section = section_with(group);
    ASSERT_EQ(add_unshared_slot(section, 0, 1), 2u);
    EXPECT_EQ(section.slots(), 4);
    const SlotColumns& added = section.options.get<CsvOptions>().slots.back();
    EXPECT_EQ(added.columns, std::vector<std::string>{"b"});
    EXPECT_EQ(added.keys, KeyRule::hash);
    EXPECT_EQ(added.separator, "|");
    EXPECT_EQ(added.buckets, 0);
    EXPECT_EQ(section.sparse[2].limits().max_keys, 3);
    EXPECT_EQ(add_unshared_slot(section, 1, 0), 3u);
    EXPECT_EQ(section.options.get<CsvOptions>().slots.back().columns, std::vector<std::string>{"c"});
  }
}

TEST(UnsharedSlot, IsNotNeededWhereEachValueHasItsKey) {
  DataSection section = section_with(buckets(0));
  EXPECT_FALSE(add_unshared_slot(section, 0, 1));
  EXPECT_FALSE(add_unshared_slot(section, 0, 0));
  DataSection norm = section_of(1, 0, {input_of("x", 1, 1, 1)});
  EXPECT_FALSE(add_unshared_slot(norm, 0, 0));
  EXPECT_EQ(norm.slots() + section.slots(), 4);
}

TEST(UnsharedSlot, HasAKeyForEachValueInTheOrderOfTheRows) {
  const Folder folder;
  std::string text = "l,a,b,c\n";
  for (int i = 0; i < 300; ++i) text += cat("0,1,u", i % 100, "|w,", i, "\n");
  write_text(folder / "t.csv", text);
  for (const int rank : {0, 1}) {
    DataSection section = section_with(buckets(2));
    const size_t input = *add_unshared_slot(section, 0, 1);
    Rig rig(section, folder / "t.csv", {.batch = 300, .workers = 2, .repeat = false, .rank = rank, .ranks = 2});
    const ReadBatch seen = *rig.next();
    std::set<int64_t> first_keys, shared;
    for (size_t r = 0; r < 150; ++r) {
      first_keys.insert(seen.keys[input][static_cast<size_t>(seen.offsets[input][r])]);
      shared.insert(seen.keys[0][static_cast<size_t>(seen.offsets[0][150 + r])]);
    }
    EXPECT_EQ(first_keys.size(), 100u);
    EXPECT_EQ(shared.size(), 2u);
  }
}

TEST(UnsharedSlot, CriteoSaysWhyThereIsNone) {
  DataSection section = section_of(1, 13, {});
  section.format = kCriteoFormat;
  EXPECT_EQ(why_shared(section), "");
  section.options.edit<CriteoTextOptions>().buckets = 50;
  EXPECT_EQ(why_shared(section), "\"buckets\" of \"criteo\" limits each column to 50 keys");
  EXPECT_EQ(why_shared(section_with(buckets(2))), "");
}

}  // namespace
}  // namespace hctr::data_test
