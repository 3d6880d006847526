// Lists that Python, NumPy, JSON and databases write as text give the same values.
#include "formats/data/bracketed_list.h"

#include <gtest/gtest.h>

namespace hctr {
namespace {

using Texts = std::vector<std::string>;

Texts values_of(std::string_view cell, char separator = 0) {
  BracketedList list;
  EXPECT_TRUE(list.read(cell, separator)) << cell << ": " << list.problem();
  return {list.values().begin(), list.values().end()};
}

std::string problem_of(std::string_view cell, char separator = 0) {
  BracketedList list;
  EXPECT_FALSE(list.read(cell, separator)) << cell;
  return list.problem();
}

TEST(BracketedList, EveryDialectGivesTheSameValues) {
  const Texts numbers = {"12", "-7", "305"};
  for (const char* cell :
       {"[12, -7, 305]", "[12,-7,305]", "(12, -7, 305)", "{12, -7, 305}", "[12 -7 305]", "[ 12  -7\n 305]",
        "array([12, -7, 305])", "array([ 12,  -7, 305], dtype=int32)", "frozenset({12, -7, 305})",
        "[np.int64(12), np.int64(-7), np.int64(305)]", "['12', '-7', '305']", "  [12 , -7 , 305 ] ",
        "[\"12\",\"-7\",\"305\"]", "12, -7, 305", "tensor([12, -7, 305], device='cuda:0')", "['12' '-7' '305']"})
    EXPECT_EQ(values_of(cell), numbers) << cell;
  for (const char* cell :
       {"[]", "()", "{}", "set()", "frozenset()", "[ ]", "array([], dtype=float64)", "['']", "", "[,]"})
    EXPECT_EQ(values_of(cell), Texts()) << cell;
  for (const char* cell : {"[9]", "(9,)", "9", "['9']", "{9}", "np.int64(9)"})
    EXPECT_EQ(values_of(cell), Texts{"9"}) << cell;
}

TEST(BracketedList, QuotedValuesKeepTheirSeparatorsBlanksAndBrackets) {
  EXPECT_EQ(values_of("['New York, NY', \"it's\", '[x]']"), (Texts{"New York, NY", "it's", "[x]"}));
  EXPECT_EQ(values_of("['a b' 'c d']"), (Texts{"a b", "c d"}));
  EXPECT_EQ(values_of("{\"a b\",c,'it''s'}"), (Texts{"a b", "c", "it's"})) << "arrays of PostgreSQL, SQL's quotes";
  EXPECT_EQ(values_of("[b'raw', u'text', np.str_('x, y')]"), (Texts{"raw", "text", "x, y"}));
}

TEST(BracketedList, ListsInAnglesAreReadUnlessTheyMayBeATag) {
  for (const char* cell : {"<12, -7, 305>", "<12,-7,305>", "<12 -7 305>", "< '12' '-7' '305' >"})
    EXPECT_EQ(values_of(cell), (Texts{"12", "-7", "305"})) << cell;
  EXPECT_EQ(values_of("<a; b>", ';'), (Texts{"a", "b"}));
  EXPECT_EQ(values_of("<9>"), Texts{"9"});
  EXPECT_EQ(values_of("<>"), Texts());
  EXPECT_EQ(values_of("<'a'>"), Texts{"a"});
  EXPECT_EQ(values_of("[<unk>, a]"), (Texts{"<unk>", "a"})) << "tags are values";
  EXPECT_EQ(values_of("<a>, <b>"), (Texts{"<a>", "<b>"}));
  EXPECT_NE(problem_of("<unk>").find("a list of one value or a text"), std::string::npos);
  EXPECT_TRUE(is_in_brackets("<3, 5>"));
  EXPECT_FALSE(is_in_brackets("<a>, <b>"));
}

TEST(BracketedList, PlainTextsWithBlanksAreOneValue) {
  EXPECT_EQ(values_of("[New York, San Jose]"), (Texts{"New York", "San Jose"}));
  EXPECT_EQ(values_of("[New York]"), Texts{"New York"});
  EXPECT_EQ(values_of("[2001 A Space Odyssey]"), Texts{"2001 A Space Odyssey"});
  EXPECT_EQ(values_of("[Alien (1979), Heat]"), (Texts{"Alien (1979)", "Heat"}));
  EXPECT_EQ(values_of("[New  York\tNY]", ' '), (Texts{"New", "York", "NY"})) << "where blanks are stated to separate";
  EXPECT_EQ(values_of("[a, b; c]", ';'), (Texts{"a, b", "c"}));
  EXPECT_EQ(values_of("(a|b c)", '|'), (Texts{"a", "b c"}));
}

TEST(BracketedList, EscapesOfJsonAndPythonAreTheCharactersThatTheyStandFor) {
  const std::string cafe = "caf\xC3\xA9";
  EXPECT_EQ(values_of("[\"caf\\u00e9\", 'caf\\xe9', 'caf\xC3\xA9']"), (Texts{cafe, cafe, cafe}));
  EXPECT_EQ(values_of("['it\\'s', \"a\\\"b\", 'c\\\\d', \"e\\/f\", 'g\\th']"),
            (Texts{"it's", "a\"b", "c\\d", "e/f", "g\th"}));
  EXPECT_EQ(values_of("[\"\\ud83d\\ude00\", '\\U0001F600']"), (Texts{"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}));
  EXPECT_EQ(values_of("['\\d+']"), Texts{"\\d+"}) << "no escape";
}

TEST(BracketedList, WhatIsNoListOfValuesIsRefusedWithTheReason) {
  EXPECT_EQ(problem_of("[1, 2"), "its bracket is never closed");
  EXPECT_EQ(problem_of("(1, 2]"), "its bracket is never closed");
  EXPECT_EQ(problem_of("['a, 'b]"), "a value continues after its closing quote");
  EXPECT_EQ(problem_of("['a"), "its bracket is never closed");
  EXPECT_EQ(problem_of("[a, 'b]"), "a quote is never closed");
  for (const char* cell : {"[[1, 2], [3]]", "[(1, 0.5)]", "[1], [2]", "({1}, 2)"})
    EXPECT_EQ(problem_of(cell), "the list contains lists") << cell;
  for (const char* cell : {"{'a': 1}", "{1: 0.5, 2: 3}", "{\"a\" : 1}"})
    EXPECT_EQ(problem_of(cell), "the value is a map; expected a list") << cell;
  EXPECT_EQ(problem_of("[0 1 2 ... 97 98 99]"), "NumPy abbreviated the list with '...'");
  // a text that ends too early must not crash the parser
  for (const char* cell : {"[np.int64(", "np.(", "b'", "['", "'", "[,'", "{:"}) {
    BracketedList list;
    list.read(cell, 0);
  }
}

TEST(BracketedList, KnowsWhatStandsInBrackets) {
  for (const char* cell : {"[3, 5]", "('a',)", "{}", "array([1 2])", "set()"})
    EXPECT_TRUE(is_in_brackets(cell)) << cell;
  for (const char* cell : {"[3", "3]", "", "[", "(3]", "name (x)", "f(x)"}) EXPECT_FALSE(is_in_brackets(cell)) << cell;
}

}  // namespace
}  // namespace hctr
