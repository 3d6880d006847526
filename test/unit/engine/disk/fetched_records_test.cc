#include "engine/disk/fetched_records.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(FetchedRecords, AreTakenOnceAndDroppedEvenWhileTheyAreRead) {
  FetchedRecords records(16);
  EXPECT_EQ(records.reserve(5), FetchedRecords::kNone) << "there is no room";
  records.grow(2);
  const uint32_t five = records.reserve(5), six = records.reserve(6);
  EXPECT_NE(records.memory(five), records.memory(six));
  EXPECT_EQ(records.reserve(7), FetchedRecords::kNone);
  EXPECT_EQ(records.take(5), FetchedRecords::kNone) << "it is still being read";
  records.publish(five, true);
  EXPECT_EQ(records.take(5), five);
  EXPECT_EQ(records.take(5), FetchedRecords::kNone);
  EXPECT_EQ(records.reserve(7), FetchedRecords::kNone) << "its memory is read";
  records.release(five);

  records.drop(6);
  EXPECT_FALSE(records.has(6));
  EXPECT_EQ(records.reserve(6), five);
  EXPECT_EQ(records.reserve(7), FetchedRecords::kNone) << "the memory of what was dropped is written";
  records.publish(six, true);
  EXPECT_EQ(records.take(6), FetchedRecords::kNone) << "what is there now is not read yet";
  EXPECT_EQ(records.reserve(7), six);
  records.publish(six, false);
  EXPECT_EQ(records.take(7), FetchedRecords::kNone) << "it was not good";
  records.publish(five, true);
  records.drop(6);
  records.grow(3);
  for (uint32_t place = 10; place < 13; ++place) EXPECT_NE(records.reserve(place), FetchedRecords::kNone);
}

TEST(FetchedRecords, ThoseThatNobodyTookMakeRoomWhenTheyAreOld) {
  FetchedRecords records(16);
  records.grow(1);
  records.publish(records.reserve(1), true);
  for (int batch = 0; batch < 7; ++batch) {
    records.begin_batch();
    EXPECT_EQ(records.reserve(2), FetchedRecords::kNone) << batch;
  }
  records.begin_batch();
  EXPECT_NE(records.reserve(2), FetchedRecords::kNone);
  EXPECT_FALSE(records.has(1));
}

}  // namespace
}  // namespace hctr::test
