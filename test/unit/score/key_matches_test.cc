// Messages about keys that have no row.
#include "score/key_matches.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

const std::vector<SlotMatches> kMatches = {
    {"city", 400, 0}, {"user", 400, 90}, {"item", 99, 99}, {"page", 400, 202}, {"none", 0, 0}};

TEST(UnmatchedKeys, SharesAreNamedFromTheLargestOn) {
  EXPECT_EQ(describe(kMatches), "item 100 %, page 50.5 %, user 22.5 %");
  EXPECT_EQ(describe(kMatches, 1), "item 100 %, and 2 more slots");
  EXPECT_EQ(describe({{"city", 400, 0}}), "none");
  Json json(Json::Object{});
  add_matches(kMatches, json);
  EXPECT_EQ(json.find("unmatched_keys")->find("user")->number(), 0.225);
  EXPECT_EQ(json.find("unmatched_keys")->find("none")->number(), 0) << "no key, no share";
  EXPECT_FALSE(json.find("unlisted_values"));
}

TEST(UnmatchedKeys, MoreThanHalfIsAWarning) {
  std::string said;
  const Log log([&](Level level, std::string_view line) {
    if (level == Level::warning) said += line;
  });
  warn_of_unmatched({{"user", 400, 200}}, "'a.csv'", log);
  EXPECT_EQ(said, "");
  warn_of_unmatched(kMatches, "'a.csv'", log);
  EXPECT_NE(said.find("most keys of some slots of 'a.csv' did not occur in training"), std::string::npos) << said;
  EXPECT_NE(said.find("item 100 %, page 50.5 %"), std::string::npos) << said;
  EXPECT_EQ(said.find("user"), said.npos);
}

TEST(UnmatchedKeys, ASlotWithManyKeysThatMatchesNothingIsAnError) {
  EXPECT_NO_THROW(expect_matches(kMatches, "a.csv")) << "99 keys prove little";
  EXPECT_NO_THROW(expect_matches({{"user", 5000, 4999}}, "a.csv"));
  const std::string message =
      message_of(Kind::data, [] { expect_matches({{"user", 100, 100}, {"page", 9, 0}, {"tags", 300, 300}}, "a.csv"); });
  EXPECT_NE(message.find("'a.csv': no key of a slot has a row in the model"), std::string::npos) << message;
  EXPECT_NE(message.find("user (100 keys), tags (300 keys)"), std::string::npos) << message;
  EXPECT_NE(message.find("--unmatched allow"), std::string::npos) << message;
}

/// A slot whose vocabulary lacks some values, a slot for groups of a metric, and a slot with neither vocabulary nor
/// groups.
std::vector<SlotMatches> other_kinds(int64_t unlisted, int64_t without_group) {
  return {{.slot = "city", .has_rows = false, .has_vocabulary = true, .values = 300, .unlisted = unlisted},
          {.slot = "user", .keys = 100, .of_groups = true, .samples = 200, .without_group = without_group},
          {.slot = "page", .keys = 100}};
}

TEST(UnmatchedKeys, ValuesWithoutALineAndSamplesWithoutAGroupAreNamedToo) {
  const auto slots = other_kinds(75, 50);
  EXPECT_EQ(lines_of(slots), (std::vector<std::string>{
                                 "keys without a row in the model: none", "values that the vocabulary lacks: city 25 %",
                                 "samples without a group, which GroupedAUC excludes: user 25 %"}));
  Json json(Json::Object{});
  add_matches(slots, json);
  EXPECT_EQ(json.text(), R"({"unmatched_keys":{"user":0.0,"page":0.0},"unlisted_values":{"city":0.25},"without_group":)"
                         R"({"user":0.25}})");
  EXPECT_EQ(lines_of(std::vector<SlotMatches>()).size(), 0u);
}

TEST(UnmatchedKeys, MostValuesWithoutALineAreAWarningAndAllAreAnError) {
  std::string said;
  const Log log([&](Level level, std::string_view line) {
    if (level == Level::warning) said += line;
  });
  warn_of_unmatched(other_kinds(150, 100), "'a.csv'", log);
  EXPECT_EQ(said, "");
  warn_of_unmatched(other_kinds(299, 101), "'a.csv'", log);
  EXPECT_NE(said.find("most values of a slot of 'a.csv' are missing in the vocabulary, and share one key: city "
                      "99.7 %"),
            said.npos)
      << said;
  EXPECT_NE(said.find("most samples of 'a.csv' have no group and are excluded from GroupedAUC: user 50.5 %"), said.npos)
      << said;
  EXPECT_NO_THROW(expect_matches(other_kinds(299, 200), "a.csv"));
  const std::string message = message_of(Kind::data, [] { expect_matches(other_kinds(300, 0), "a.csv"); });
  EXPECT_NE(message.find("'a.csv': the vocabulary of a slot contains none of the slot's values: city (300 values)"),
            message.npos)
      << message;
  EXPECT_NE(message.find("--unmatched allow"), message.npos) << message;
}

}  // namespace
}  // namespace hctr::test
