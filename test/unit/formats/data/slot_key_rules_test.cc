#include "formats/data/slot_key_rules.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

const SlotKeyRule kTexts{.column = "when", .rule = KeyRule::hash, .stated = true},
    kTimes{
        .column = "when", .rule = KeyRule::hash, .place = "'a.parquet' (timestamp[us])", .stated = true, .times = true};

TEST(SlotKeyRules, TimesAreNoTextsOfTimes) {
  const auto message = [](const std::vector<SlotKeyRule>& wanted, const std::vector<SlotKeyRule>& found) {
    return message_of(Kind::data, [&] { expect_same_times(wanted, "the model", found, "'b'"); });
  };
  EXPECT_EQ(message({kTexts}, {kTimes})
                .find("column 'when' holds times in 'b', 'a.parquet' (timestamp[us]), and other "
                      "values in the model: "),
            0u);
  EXPECT_EQ(message({}, {kTimes}).find("column 'when' holds times in 'b'"), 0u)
      << "a model of texts says nothing of it";
  EXPECT_EQ(message({kTimes}, {kTexts}).find("column 'when' holds other values than times in 'b', and times in"), 0u);
  EXPECT_NO_THROW(expect_same_times({kTimes}, "the model", {kTimes}, "'b'"));
  EXPECT_NO_THROW(expect_same_times({kTexts}, "the model", {kTexts}, "'b'"));
  EXPECT_NO_THROW(expect_same_times({kTimes}, "the model", {}, "'b'")) << "a column without values";
}

TEST(SlotKeyRules, ComeBackFromJson) {
  const std::vector<SlotKeyRule> all = {kTexts, kTimes, {.column = "id"}};
  EXPECT_EQ(slot_key_rules(to_json(all)), all);
}

/// expect_slot_key_rules() compares rules of which at least one follows from a column type. If both configs state their
/// rule, the comparison of the configs compares the rules.
TEST(SlotKeyRules, AreComparedWhereATypeHasDecidedOne) {
  const SlotKeyRule number{.column = "when", .rule = KeyRule::number},
      stated{.column = "when", .rule = KeyRule::number, .stated = true};
  EXPECT_THROW(expect_slot_key_rules({kTexts}, "the model", {number}, "'b'"), Error);
  EXPECT_THROW(expect_slot_key_rules({number}, "the model", {kTexts}, "'b'"), Error);
  EXPECT_NO_THROW(expect_slot_key_rules({kTexts}, "the model", {stated}, "'b'"));
}

}  // namespace
}  // namespace hctr::test
