// Accepted and rejected notations of numbers.
#include "formats/data/number_notation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/base/expect.h"
#include "core/base/random.h"

namespace hctr {
namespace {

using enum NumberFormat;

double read(const NumberNotation& notation, std::string_view text) {
  double value = 0;
  return read_number(notation, text, value) ? value : std::nan("");
}

TEST(NumberNotation, EachFormatReadsItsExampleAndPlainIntegers) {
  for (const auto& [word, format] : EnumWords<NumberFormat>::table()) {
    EXPECT_EQ(read({format}, word), format == indian ? 1234567.5 : 1234.5) << word;
    EXPECT_EQ(read({format}, "1234567"), 1234567) << word;
    EXPECT_EQ(read({format}, "-12"), -12) << word;
    EXPECT_EQ(read({format}, " 007 "), 7) << word;
    EXPECT_EQ(word_of(format), word);
  }
}

TEST(NumberNotation, OneTextIsAnotherNumberInAnotherFormat) {
  EXPECT_EQ(read({}, "1.234"), 1.234);
  EXPECT_EQ(read({points_comma}, "1.234"), 1234);
  EXPECT_EQ(read({comma}, "1,234"), 1.234);
  EXPECT_EQ(read({commas_point}, "1,234"), 1234);
  EXPECT_EQ(read({blanks_comma}, "12\u00a0345\u202f678,25"), 12345678.25);
  EXPECT_EQ(read({apostrophes_point}, "1\u2019234.5"), 1234.5);
  EXPECT_EQ(read({points_comma}, "-1.234.567,5e-1"), -123456.75);
}

TEST(NumberNotation, WhatAFormatDoesNotWriteIsRefused) {
  const std::pair<NumberFormat, const char*> texts[] = {{commas_point, "1,23"},
                                                        {commas_point, "1234,567"},
                                                        {commas_point, "1.234,5"},
                                                        {commas_point, "0,123"},
                                                        {commas_point, ",123"},
                                                        {commas_point, "1,234,"},
                                                        {commas_point, "1,,234"},
                                                        {commas_point, "1 234"},
                                                        {points_comma, "1.5"},
                                                        {points_comma, "1234.5"},
                                                        {comma, "1.5"},
                                                        {comma, "1,2,3"},
                                                        {indian, "123,456"},
                                                        {indian, "1,234,567"},
                                                        {comma, ","},
                                                        {comma, ""},
                                                        {comma, "-"},
                                                        {comma, "--1"},
                                                        {comma, "-(1)"},
                                                        {comma, "nan"},
                                                        {comma, "inf"},
                                                        {comma, "1e"},
                                                        {comma, "0x10"},
                                                        {comma, "1,5,"},
                                                        {commas_point, "1,234a"},
                                                        {commas_point, "1e999"},
                                                        {blanks_point, "1  234"},
                                                        {comma, "12 kg"}};
  for (const auto& [format, text] : texts) EXPECT_TRUE(std::isnan(read({format}, text))) << word_of(format) << text;
}

TEST(NumberNotation, AmountsOfLedgersAreNegative) {
  for (const char* text : {"(1,234.5)", "1,234.5-", "-1,234.5", "\u22121,234.5", "( 1,234.5 )"})
    EXPECT_EQ(read({commas_point}, text), -1234.5) << text;
  EXPECT_EQ(read({plain}, "(12)"), -12) << "a stated format";
  EXPECT_TRUE(std::isnan(read({}, "(12)")));
}

TEST(NumberNotation, EachValueHasItsUnitOnOneSide) {
  for (const char* text : {"$1,234.5", "$ 1,234.5", "1,234.5 $", "1,234.5$", "+$1,234.5"})
    EXPECT_EQ(read({commas_point, "$"}, text), 1234.5) << text;
  for (const char* text : {"-$1,234.5", "$-1,234.5", "$(1,234.5)", "($1,234.5)", "- $ 1,234.5"})
    EXPECT_EQ(read({commas_point, "$"}, text), -1234.5) << text;
  for (const char* text : {"1,234.5", "$1,234.5$", "\u20ac1", "$", "1$2"})
    EXPECT_TRUE(std::isnan(read({commas_point, "$"}, text))) << text;
  EXPECT_EQ(read({{}, "kr."}, "kr.500"), 500) << "its point is not that of the number";
  EXPECT_EQ(read({{}, "m2"}, "75 m2"), 75);
}

TEST(NumberNotation, PerCentIsTheNearestDoubleToAHundredth) {
  EXPECT_EQ(read({{}, "%"}, "12.5%"), 0.125);
  EXPECT_EQ(read({{}, "%"}, "-7 %"), -0.07);
  EXPECT_EQ(read({comma, "%"}, "12,5 %"), 0.125);
  EXPECT_EQ(read({{}, "\u2030"}, "12.5\u2030"), 0.0125);
  EXPECT_EQ(read({{}, "%"}, "1e2%"), 1);
  for (int i = 0; i < 2000; ++i) {
    const auto digits = static_cast<int64_t>(mix64(static_cast<uint64_t>(i)) % 10'000'000);
    EXPECT_EQ(read({{}, "%"}, cat(digits, "%")), std::strtod(cat(digits, "e-2").c_str(), nullptr)) << digits;
  }
}

TEST(NumberNotation, AUnitThatMayBePartOfANumberIsAnError) {
  const auto errors = [](const char* unit) {
    Problems problems;
    check_notation({{}, unit}, "/x", problems);
    return problems.errors().size();
  };
  for (const char* unit : {"1", "-", " kg", "kg ", ".", ",x", "("}) EXPECT_EQ(errors(unit), 1U) << unit;
  for (const char* unit : {"", "$", "kg", "km/h", "m2", "z\u0142", "%"}) EXPECT_EQ(errors(unit), 0U) << unit;
}

}  // namespace
}  // namespace hctr
