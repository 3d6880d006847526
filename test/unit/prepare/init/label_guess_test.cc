// Determines which labels are positive. If that is ambiguous, --init asks.
#include "prepare/init/label_guess.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr {
namespace {

LabelFacts facts_of(const std::vector<std::string>& labels) {
  LabelFacts facts;
  for (const std::string& label : labels) facts.add(label);
  return facts;
}

Json choose(const std::vector<std::string>& labels, const std::optional<std::string>& positive = {}) {
  return choose_label("y", facts_of(labels), positive, "huge_ctr --init d.csv --label y").json();
}

std::string refusal(const std::vector<std::string>& labels, const std::optional<std::string>& positive = {},
                    Kind kind = Kind::usage) {
  return test::message_of(kind, [&] { choose(labels, positive); });
}

const std::vector<std::string> kRatings = {"1", "2", "3", "3", "4", "4", "4", "5", "5", "5"};

TEST(LabelGuess, ZeroAndOneNeedNoWord) {
  EXPECT_EQ(choose({"0", "1", "1"}).text(), R"("y")");
  EXPECT_EQ(choose({"0.0", "1.0", "1"}).text(), R"("y")");
}

TEST(LabelGuess, ATextIsTheOneThatWasNamed) {
  EXPECT_EQ(choose({"yes", "no"}, "yes").text(), R"({"column":"y","positive":"yes"})");
  EXPECT_EQ(choose({"a", "b", "c"}, "b").text(), R"({"column":"y","positive":"b"})") << "one against all others";
  EXPECT_EQ(choose({"1", "0"}, "0").text(), R"({"column":"y","positive":"0"})") << "the other way round";
}

TEST(LabelGuess, OfNumbersAllFromOneOn) {
  EXPECT_EQ(choose(kRatings, "4").text(), R"({"column":"y","positive":{"at_least":4.0}})");
  EXPECT_EQ(choose({"-1", "1"}, "1").text(), R"({"column":"y","positive":{"at_least":1.0}})");
}

TEST(LabelGuess, NumbersInOtherNotationsAreNumbers) {
  EXPECT_EQ(choose({"0,0", "1,0", "1,0"}).text(), R"({"column":"y","number_format":"1234,5"})");
  const std::vector<std::string> ratings = {"1", "2,5", "3,5", "4,5", "5"};
  EXPECT_EQ(choose(ratings, "3,5").text(), R"({"column":"y","positive":{"at_least":3.5},"number_format":"1234,5"})");
  EXPECT_NE(refusal(ratings).find("state the lowest positive number"), std::string::npos);
  EXPECT_EQ(choose({"10 %", "20 %", "30 %"}, "20 %").text(),
            R"({"column":"y","positive":{"at_least":0.2},"number_format":"1234.5","unit":"%"})");
  EXPECT_NE(refusal({"1,234", "2,500", "3,125"}, "2,500").find("set --number-format"), std::string::npos);
  EXPECT_EQ(choose_label("y", facts_of({"1,234", "2,500", "3,125"}), "2,500", "", NumberFormat::commas_point).at_least,
            2500);
  EXPECT_EQ(choose({"1,2", "x", "y"}, "1,2").text(), R"({"column":"y","positive":"1,2"})");
}

TEST(LabelGuess, AsksWithTheCommandToType) {
  EXPECT_EQ(refusal({">50K", "<=50K", "<=50K"}),
            "label 'y' has two values, '<=50K' (2 rows), '>50K' (1): state which value is positive\n  huge_ctr "
            "--init d.csv --label y --positive '<=50K'\n  huge_ctr --init d.csv --label y --positive '>50K'");
  EXPECT_NE(refusal(kRatings).find("such as\n  huge_ctr --init d.csv --label y --positive 4"), std::string::npos)
      << refusal(kRatings);
  EXPECT_NE(refusal({"a", "b", "b", "c"}).find("--positive b"), std::string::npos);
  EXPECT_NE(refusal({"1", "2"}).find("--positive 2"), std::string::npos) << "1 and 2 may mean anything";
  EXPECT_NE(refusal({"it's", "b"}).find(R"(--positive 'it'\''s')"), std::string::npos) << "as a shell needs it";
}

TEST(LabelGuess, RefusesWhatTeachesNothing) {
  EXPECT_NE(refusal({"1", "1"}, {}, Kind::data).find("all rows have the value '1' (2 rows)"), std::string::npos);
  EXPECT_NE(refusal({}, {}, Kind::data).find("no row has a value"), std::string::npos);
  EXPECT_NE(refusal(kRatings, "6").find("then no row is positive"), std::string::npos);
  EXPECT_NE(refusal(kRatings, "1").find("then every row is positive"), std::string::npos);
  EXPECT_NE(refusal(kRatings, "good").find("has numbers"), std::string::npos);
  EXPECT_NE(refusal({"yes", "no"}, "Yes").find("has no such value; the values are 'no' (1 rows), 'yes' (1)"),
            std::string::npos);
}

TEST(LabelGuess, MarksAreMissingUnlessTheyAreThePositiveOne) {
  EXPECT_TRUE(is_missing_label("", {}));
  EXPECT_TRUE(is_missing_label("NA", {}));
  EXPECT_FALSE(is_missing_label("NA", "NA"));
  EXPECT_FALSE(is_missing_label("0", {}));
}

}  // namespace
}  // namespace hctr
