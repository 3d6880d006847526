// What is said of keys without a row.
#include "train/unmatched_keys.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

const std::vector<SlotMatches> kSlots = {
    {"city", 400, 0}, {"user", 400, 90}, {"item", 99, 99}, {"page", 400, 202}, {"none", 0, 0}};

TEST(UnmatchedKeys, SharesAreNamedFromTheLargestOn) {
  EXPECT_EQ(describe(kSlots), "item 100 %, page 50.5 %, user 22.5 %");
  EXPECT_EQ(describe(kSlots, 1), "item 100 %, and 2 more slots");
  EXPECT_EQ(describe({{"city", 400, 0}}), "none");
  EXPECT_EQ(to_json(kSlots).find("user")->number(), 0.225);
  EXPECT_EQ(to_json(kSlots).find("none")->number(), 0) << "no key, no share";
}

TEST(UnmatchedKeys, MoreThanHalfIsAWarning) {
  std::string said;
  const Log log([&](Level level, std::string_view line) {
    if (level == Level::warning) said += line;
  });
  warn_of_unmatched({{"user", 400, 200}}, "'a.csv'", log);
  EXPECT_EQ(said, "");
  warn_of_unmatched(kSlots, "'a.csv'", log);
  EXPECT_NE(said.find("most keys of some slots of 'a.csv' have no row"), std::string::npos) << said;
  EXPECT_NE(said.find("item 100 %, page 50.5 %"), std::string::npos) << said;
  EXPECT_EQ(said.find("user"), said.npos);
}

TEST(UnmatchedKeys, ASlotWithManyKeysThatMatchesNothingIsAnError) {
  EXPECT_NO_THROW(expect_matches(kSlots, "a.csv")) << "99 keys prove little";
  EXPECT_NO_THROW(expect_matches({{"user", 5000, 4999}}, "a.csv"));
  const std::string message =
      message_of(Kind::data, [] { expect_matches({{"user", 100, 100}, {"page", 9, 0}, {"tags", 300, 300}}, "a.csv"); });
  EXPECT_NE(message.find("'a.csv': no key of a slot has a row in the model"), std::string::npos) << message;
  EXPECT_NE(message.find("user (100 keys), tags (300 keys)"), std::string::npos) << message;
  EXPECT_NE(message.find("--unmatched allow"), std::string::npos) << message;
}

}  // namespace
}  // namespace hctr::test
