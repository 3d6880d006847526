#include "engine/disk/disk_places.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hctr::test {
namespace {

std::vector<uint32_t> from_to(uint32_t first, uint32_t last) {
  std::vector<uint32_t> places(last - first + 1);
  std::iota(places.begin(), places.end(), first);
  return places;
}

TEST(DiskPlaces, AreHandedOutInOrderAndSegmentsAgainOnceTheyAreEmpty) {
  DiskPlaces places(4);
  EXPECT_EQ(places.take_in_order(10, 100), from_to(0, 9));
  EXPECT_EQ(places.take_in_order(3, 2), from_to(10, 11)) << "no more behind the end";
  for (const uint32_t place : {4, 6, 7, 1, 2}) places.give_back(place);
  EXPECT_EQ(places.free(), 5);
  EXPECT_EQ(places.take_in_order(2, 0), from_to(1, 0)) << "no segment is empty";
  places.give_back(5);
  EXPECT_EQ(places.in_order(), 4);
  EXPECT_EQ(places.take_in_order(3, 100), from_to(4, 6));
  EXPECT_EQ(places.take_in_order(3, 100), (std::vector<uint32_t>{7, 12, 13}));
  std::vector<uint32_t> any;
  places.take_any(2, any);
  EXPECT_EQ(any, from_to(1, 2));
  EXPECT_EQ(places.free(), 0);
}

/// Two kinds of segments must not count as empty: a segment that is being filled, and a segment with a reused hole.
TEST(DiskPlaces, NoPlaceIsTakenTwice) {
  DiskPlaces places(4);
  places.take_in_order(8, 8);
  for (uint32_t place = 0; place < 8; ++place) places.give_back(place);
  EXPECT_EQ(places.take_in_order(1, 0), from_to(0, 0));
  places.give_back(0);
  std::vector<uint32_t> any;
  places.take_any(6, any);
  EXPECT_EQ(any, from_to(0, 5));
  EXPECT_TRUE(places.take_in_order(4, 0).empty()) << "the first is taken whole, the second has holes";
  places.take_any(2, any);
  EXPECT_EQ(any, from_to(0, 7));
}

TEST(DiskPlaces, TheEmptiestSegmentsAreThoseWithTheFewestTakenPlaces) {
  DiskPlaces places(4);
  places.take_in_order(21, 21);
  for (const uint32_t place : {0, 4, 5, 6, 8, 9, 16, 17, 18, 19, 20}) places.give_back(place);
  EXPECT_EQ(places.emptiest(1), (std::vector<uint32_t>{1}));
  EXPECT_EQ(places.emptiest(4), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(places.emptiest(100), (std::vector<uint32_t>{1, 2, 0})) << "4 is empty, 3 is full, 5 is not whole";
}

TEST(DiskPlaces, WhatIsHeldIsFreeOnceItIsGivenBackAndReleased) {
  DiskPlaces places(4);
  places.take_in_order(8, 8);
  places.give_back(7);
  places.hold();
  EXPECT_EQ(places.take_in_order(1, 0), (std::vector<uint32_t>{}));
  std::vector<uint32_t> any;
  places.take_any(1, any);
  EXPECT_EQ(any, from_to(7, 7));
  places.give_back(7);
  for (const uint32_t place : from_to(0, 3)) places.give_back(place);
  EXPECT_EQ(places.free(), 1) << "only what was free when they were held";
  EXPECT_EQ(places.in_order(), 0);
  EXPECT_EQ(places.drop_end(), 1);
  places.release();
  EXPECT_EQ(places.free(), 4);
  EXPECT_EQ(places.take_in_order(4, 0), from_to(0, 3));
  places.give_back(2);
  EXPECT_EQ(places.free(), 1) << "nothing is held any more";
}

TEST(DiskPlaces, FreeOnesAtTheEndAreForgotten) {
  DiskPlaces places(4);
  places.take_in_order(15, 15);
  for (uint32_t place = 6; place < 15; ++place) places.give_back(place);
  EXPECT_EQ(places.drop_end(), 9);
  EXPECT_EQ(places.total(), 6);
  EXPECT_EQ(places.free(), 0);
  EXPECT_EQ(places.take_in_order(100, 5), from_to(6, 10));
  EXPECT_EQ(places.drop_end(), 0);
}

}  // namespace
}  // namespace hctr::test
