// The column kinds that --init guesses: each kind, and the thresholds between kinds.
#include "prepare/init/column_guess.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/base/expect.h"
#include "core/base/random.h"

namespace hctr {
namespace {

/// The guess for a column with `rows` cells.
ColumnGuess guess_cells(const std::string& name, int rows, const std::function<std::string(int row)>& cell) {
  ColumnFacts facts;
  for (int r = 0; r < rows; ++r) facts.add(cell(r));
  return guess_column(name, facts);
}

/// A pseudo-random number below `count`.
int drawn(int row, int count) {
  return static_cast<int>(mix64(static_cast<uint64_t>(row)) % static_cast<uint64_t>(count));
}

TEST(ColumnGuess, NumbersOfManyValuesAreNumbersAlone) {
  const ColumnGuess guess = guess_cells("price", 1000, [](int r) { return cat(drawn(r, 100000), ".", r % 10); });
  EXPECT_EQ(guess.kind, GuessedKind::number) << guess.why;
  EXPECT_FALSE(guess.log);
}

TEST(ColumnGuess, OneWordInARowToEvaluateOnMakesNumbersACategory) {
  ColumnFacts facts;
  for (int r = 0; r < 1000; ++r) facts.add(std::to_string(r % 90));
  for (const char* cell : {"5", " 7", "", "NA", "-1", "2.5"}) facts.check(cell);
  EXPECT_EQ(guess_column("age", facts).kind, GuessedKind::number_and_category) << "these are numbers or missing";
  EXPECT_EQ(facts.padded, 1);
  EXPECT_EQ(facts.marks.size(), 1U);
  EXPECT_EQ(facts.held_out_not_keys, 2);
  EXPECT_EQ(facts.rows, 1000) << "rows to train on alone";
  facts.check("abc");
  facts.check("def");
  const ColumnGuess guess = guess_column("age", facts);
  EXPECT_EQ(guess.kind, GuessedKind::category);
  EXPECT_FALSE(guess.integers);
  EXPECT_NE(guess.why.find("1000 of 1000 values are numbers, but not 'abc' of an evaluation row"), std::string::npos)
      << guess.why;
}

TEST(ColumnGuess, NumbersThatComeAgainAreCategoriesToo) {
  // The threshold is five rows per value on average.
  const auto kind = [](int values) {
    return guess_cells("age", 1000, [&](int r) { return std::to_string(7 * (r % values)); }).kind;
  };
  EXPECT_EQ(kind(200), GuessedKind::number_and_category);
  EXPECT_EQ(kind(201), GuessedKind::number);
  EXPECT_EQ(kind(2), GuessedKind::number) << "two values: a number says all";
}

TEST(ColumnGuess, FlagsWithMissingCellsAreCategoriesToo) {
  const ColumnGuess guess = guess_cells(
      "flag", 300, [](int r) { return std::vector<std::string>{"0", "1", "NA"}[static_cast<size_t>(r % 3)]; });
  EXPECT_EQ(guess.kind, GuessedKind::number_and_category) << guess.why;
  EXPECT_TRUE(guess.missing);
  EXPECT_NE(guess.why.find("33.3 % missing"), std::string::npos) << guess.why;
}

TEST(ColumnGuess, SkewedNumbersAreTakenByTheirLogarithm) {
  const auto skewed = [](int r) { return std::to_string(static_cast<int64_t>(std::exp(drawn(r, 1000) / 80.0))); };
  EXPECT_TRUE(guess_cells("clicks", 1000, skewed).log);
  EXPECT_FALSE(guess_cells("balance", 1000, [&](int r) { return (r % 3 ? "" : "-") + skewed(r); }).log)
      << "a logarithm takes all below 0 for one value";
}

TEST(ColumnGuess, IntegersThatAreNamesAreCategories) {
  const auto kind = [](const std::string& name) {
    return guess_cells(name, 1000, [](int r) { return std::to_string(drawn(r, 50)); }).kind;
  };
  for (const char* name : {"user", "user_id", "userId", "Item ID", "zip", "product-code"})
    EXPECT_EQ(kind(name), GuessedKind::category) << name;
  for (const char* name : {"age", "idle", "width", "void"})
    EXPECT_EQ(kind(name), GuessedKind::number_and_category) << name;
}

TEST(ColumnGuess, LeadingZerosMakeNames) {
  const ColumnGuess guess = guess_cells("area", 1000, [](int r) { return cat("0", 1000 + drawn(r, 50)); });
  EXPECT_EQ(guess.kind, GuessedKind::category) << guess.why;
  EXPECT_FALSE(guess.integers) << "01000 and 1000 are two texts";
}

TEST(ColumnGuess, TextsThatComeAgainAreCategories) {
  const auto kind = [](int values) {
    return guess_cells("city", 1000, [&](int r) { return cat("city ", r % values); }).kind;
  };
  EXPECT_EQ(kind(2), GuessedKind::category);
  EXPECT_EQ(kind(850), GuessedKind::category);
  EXPECT_EQ(kind(950), GuessedKind::left_out) << "nearly each row has its own";
}

TEST(ColumnGuess, FewRowsAreNoIds) {
  EXPECT_EQ(guess_cells("city", 10, [](int r) { return cat("city", r); }).kind, GuessedKind::category);
}

TEST(ColumnGuess, NumbersOfRowsAreLeftOut) {
  EXPECT_EQ(guess_cells("n", 500, [](int r) { return std::to_string(r + 1); }).kind, GuessedKind::left_out);
  // A sample of row numbers of another table: shuffled, with gaps.
  EXPECT_EQ(guess_cells("n", 500, [](int r) { return std::to_string((r * 7919) % 503); }).kind, GuessedKind::left_out);
  EXPECT_EQ(guess_cells("row_id", 500, [](int r) { return std::to_string(drawn(r, 1 << 30)); }).kind,
            GuessedKind::left_out);
  EXPECT_EQ(guess_cells("weight", 500, [](int r) { return std::to_string(drawn(r, 1 << 30)); }).kind,
            GuessedKind::number);
}

TEST(ColumnGuess, ConstantsAndEmptyColumnsAreLeftOut) {
  EXPECT_EQ(guess_cells("a", 50, [](int) { return "x"; }).kind, GuessedKind::left_out);
  EXPECT_EQ(guess_cells("a", 50, [](int) { return " 3 "; }).kind, GuessedKind::left_out);
  EXPECT_EQ(guess_cells("a", 50, [](int r) { return r % 2 ? "" : "?"; }).kind, GuessedKind::left_out);
  EXPECT_EQ(guess_cells("a", 50, [](int r) { return r % 2 ? "x" : ""; }).kind, GuessedKind::category)
      << "whether there is a value says something";
}

TEST(ColumnGuess, MarksOfMissingValuesAreNone) {
  for (const char* mark : {"?", "NA", "NaN", "null", "\\N", "N/A", "-"}) {
    const ColumnGuess guess =
        guess_cells("x", 1000, [&](int r) { return r % 4 == 0 ? mark : cat(drawn(r, 100000), ".5"); });
    EXPECT_EQ(guess.kind, GuessedKind::number) << mark << ": " << guess.why;
  }
  const ColumnGuess guess = guess_cells("x", 1000, [&](int r) { return r == 700 ? "abc" : cat(r % 10); });
  EXPECT_EQ(guess.kind, GuessedKind::category);
  EXPECT_NE(guess.why.find("999 of 1000 values are numbers, but not 'abc'"), std::string::npos) << guess.why;
}

TEST(ColumnGuess, FreeTextIsLeftOut) {
  const ColumnGuess guess =
      guess_cells("review", 300, [](int r) { return cat("words of a review, number ", drawn(r, 100000)); });
  EXPECT_EQ(guess.kind, GuessedKind::left_out);
  EXPECT_NE(guess.why.find("text"), std::string::npos) << guess.why;
}

TEST(ColumnGuess, ListsHaveValuesThatComeAgain) {
  const char* const genres[] = {"drama", "comedy", "horror", "war", "western"};
  const auto list = [&](int r, const std::string& separator) {
    std::string text = genres[drawn(r, 5)];
    for (int i = 1; i <= r % 3; ++i) text += separator + genres[drawn(1000 * i + r, 5)];
    return text;
  };
  for (const char* separator : {"|", ";", ","}) {
    const ColumnGuess guess = guess_cells("genres", 500, [&](int r) { return list(r, separator); });
    EXPECT_EQ(guess.kind, GuessedKind::list) << guess.why;
    EXPECT_EQ(std::string(1, guess.separator), separator);
    EXPECT_EQ(guess.most_items, 3);
    EXPECT_FALSE(guess.integers);
  }
  EXPECT_NE(guess_cells("genres", 500, [&](int r) { return list(r, " "); }).kind, GuessedKind::list)
      << "words between blanks are no list";
  EXPECT_NE(guess_cells("place", 500, [&](int r) { return cat("town", r % 90, ", state", r % 90); }).kind,
            GuessedKind::list)
      << "parts that do not come again in other cells";
}

TEST(ColumnGuess, IntegersBetweenBlanksAreAList) {
  const ColumnGuess guess = guess_cells("history", 500, [](int r) {
    std::string text = std::to_string(drawn(r, 40));
    for (int i = 1; i <= r % 5; ++i) text += cat(" ", drawn(1000 * i + r, 40));
    return text;
  });
  EXPECT_EQ(guess.kind, GuessedKind::list) << guess.why;
  EXPECT_EQ(guess.separator, ' ');
  EXPECT_TRUE(guess.integers);
  EXPECT_EQ(guess.most_items, 5);
}

TEST(ColumnGuess, ListColumnsOfParquetAreLists) {
  ColumnFacts facts;
  for (int r = 0; r < 30; ++r) {
    for (int i = 0; i < r % 4; ++i) facts.add_item(cat("tag", r % 7));
    facts.end_list();
  }
  const ColumnGuess guess = guess_column("tags", facts);
  EXPECT_EQ(guess.kind, GuessedKind::list);
  EXPECT_EQ(guess.separator, 0);
  EXPECT_EQ(guess.most_items, 3);
  EXPECT_TRUE(guess.missing);
}

TEST(ColumnGuess, DecimalCommasAreNamed) {
  const ColumnGuess guess = guess_cells("price", 300, [](int r) { return cat(drawn(r, 9), ",", r % 10); });
  EXPECT_EQ(guess.kind, GuessedKind::left_out);
  EXPECT_NE(guess.why.find("may be a number with a decimal comma or a list of two"), std::string::npos) << guess.why;
}

TEST(ColumnGuess, TimesAreNumbersOrLeftOut) {
  const auto seconds = [](int r) { return std::to_string(880'000'000 + drawn(r, 10'000'000)); };
  EXPECT_EQ(guess_cells("timestamp", 500, seconds).kind, GuessedKind::time);
  EXPECT_EQ(guess_cells("amount", 500, seconds).kind, GuessedKind::number) << "the name does not say time";
  EXPECT_EQ(guess_cells("time", 500, [&](int r) { return seconds(r) + "000"; }).kind, GuessedKind::time)
      << "milliseconds";
  for (const char* text :
       {"2026-11-2", "11/2/202", "2026-11-23 10:40:0", "2026-11-23T10:40:0", "12:30:1", "2.11.202"}) {
    const ColumnGuess guess = guess_cells("x", 60, [&](int r) { return cat(text, r % 7); });
    EXPECT_EQ(guess.kind, GuessedKind::left_out) << text;
    EXPECT_NE(guess.why.find("date or time"), std::string::npos) << text << ": " << guess.why;
  }
  EXPECT_EQ(guess_cells("version", 100, [&](int r) { return cat("1.2.", r % 3, "-beta"); }).kind,
            GuessedKind::category);
}

TEST(ColumnGuess, AddressesAndVersionsAreNoDates) {
  for (const char* start : {"192.168.7.", "10.0.3.*.", "3.14.1.", "12:4000:"}) {
    const ColumnGuess guess = guess_cells("x", 400, [&](int r) { return cat(start, drawn(r, 40)); });
    EXPECT_EQ(guess.kind, GuessedKind::category) << start << ": " << guess.why;
  }
  const ColumnGuess phone = guess_cells("x", 400, [](int r) { return cat("030-55-", 100000 + drawn(r, 40)); });
  EXPECT_EQ(phone.kind, GuessedKind::category) << phone.why;
}

TEST(ColumnGuess, DatesOfManyFormatsAreNamed) {
  for (const char* text : {"7 Mar 2019", "Mar 7, 2019", "07/Mar/2019:10:04:59 +0100", "2019/03/07 10:04 PM",
                           "2019-03-07 10:04:59.123456+00:00", "07.03.19"}) {
    const std::string other = std::string(text).replace(std::string(text).find('7'), 1, "8");
    const ColumnGuess guess = guess_cells("x", 60, [&](int r) { return r % 3 ? other : text; });
    EXPECT_EQ(guess.kind, GuessedKind::left_out) << text;
    EXPECT_NE(guess.why.find("date or time"), std::string::npos) << text << ": " << guess.why;
  }
}

TEST(ColumnGuess, ListsInBracketsHaveTheValuesInThem) {
  const std::pair<const char*, const char*> brackets[] = {{"[", "]"}, {"(", ")"}, {"{", "}"}, {"['", "']"}};
  for (const char* separator : {", ", " ", "; ", "|"})
    for (const auto& [open, close] : brackets) {
      const std::string between = close[0] == '\'' ? cat("'", separator, "'") : separator;
      const auto cell = [&, open = open, close = close](int r) {
        return r % 9 == 0 ? std::string("[]") : cat(open, drawn(r, 30), between, drawn(r + 1000, 30), close);
      };
      const ColumnGuess guess = guess_cells("x", 400, cell);
      EXPECT_EQ(guess.kind, GuessedKind::list) << cell(1) << ": " << guess.why;
      EXPECT_TRUE(guess.brackets) << cell(1);
      EXPECT_EQ(guess.separator, separator[0] == ';' || separator[0] == '|' ? separator[0] : '\0') << cell(1);
      EXPECT_EQ(guess.most_items, 2) << cell(1);
      EXPECT_TRUE(guess.integers) << cell(1);
      EXPECT_FALSE(guess.missing) << "an empty list is a value: " << cell(1);
      EXPECT_NE(guess.why.find("in brackets, up to 2 values, 30 different ones"), std::string::npos) << guess.why;
    }
  EXPECT_EQ(guess_cells("x", 400, [](int r) { return cat("[", r % 5, "]"); }).kind, GuessedKind::category);
  EXPECT_EQ(guess_cells("x", 400, [](int r) { return cat("(", 1 + r % 5, ",234)"); }).kind, GuessedKind::left_out)
      << "negative amounts";
}

TEST(ColumnGuess, WhatIsNoListOfValuesInBracketsIsLeftOutWithTheReason) {
  const auto guess_with = [](const std::string& odd, bool held_out) {
    ColumnFacts facts;
    for (int r = 0; r < 300; ++r) facts.add(r == 200 && !held_out ? odd : cat("[", r % 7, ", ", r % 5, "]"));
    if (held_out) facts.check(odd);
    return guess_column("x", facts);
  };
  for (const bool held_out : {false, true}) {
    const ColumnGuess guess = guess_with("[[1, 2], [3, 4]]", held_out);
    EXPECT_EQ(guess.kind, GuessedKind::left_out);
    EXPECT_NE(guess.why.find("1 value is not a list, first '[[1, 2], [3, 4]]': the list contains lists"),
              std::string::npos)
        << guess.why;
    EXPECT_EQ(guess_with("[]", held_out).kind, GuessedKind::list);
    EXPECT_EQ(guess_with("[7, None]", held_out).kind, GuessedKind::list);
  }
}

TEST(ColumnGuess, NumbersInOtherNotationsAreReadUnlessTheyMayBeTwo) {
  const auto tail = [](int r) { return std::to_string(1000 + drawn(r, 900)).substr(1); };
  struct Sign {
    const char *before, *behind;
    NumberFormat format;
    const char* unit;
  };
  using enum NumberFormat;
  const Sign signs[] = {
      {"7,", ".25", commas_point, ""},   {"7.", ",25", points_comma, ""},     {"7 ", "", blanks_point, ""},
      {"7'", "", apostrophes_point, ""}, {"7_", ",5", underscores_comma, ""}, {"$7,", ".50", commas_point, "$"},
      {"7.", ",5 €", points_comma, "€"}, {"USD ", "", plain, "USD"},          {"-£ ", "", plain, "£"},
      {"1", ".5 kg", plain, "kg"},       {"12", ",5 %", comma, "%"},          {"R$ ", "", plain, "R$"},
      {"\u20bd", "", plain, "\u20bd"},   {"(7,", ".5)", commas_point, ""},    {"7\u2009", "", blanks_point, ""},
      {"\u2212", "", plain, ""},         {"12,34,", ".5", indian, ""},        {"7", "-", plain, ""}};
  for (const Sign& sign : signs) {
    const auto cell = [&](int r) { return sign.before + tail(r) + sign.behind; };
    const ColumnGuess guess = guess_cells("x", 400, cell);
    EXPECT_TRUE(guess.is_number()) << cell(1) << ": " << guess.why;
    EXPECT_EQ(word_of(guess.notation.format.value_or(plain)), word_of(sign.format)) << cell(1);
    EXPECT_EQ(guess.notation.unit, sign.unit) << cell(1);
  }
  for (const auto& [before, behind] : {std::pair{"7,", ""}, {"7.", " €"}, {"1,", " kg"}, {"12,", " %"}, {"(7,", ")"}}) {
    const auto cell = [&, before = before, behind = behind](int r) { return before + tail(r) + behind; };
    const ColumnGuess guess = guess_cells("x", 400, cell);
    EXPECT_EQ(guess.kind, GuessedKind::left_out) << cell(1) << ": " << guess.why;
    EXPECT_NE(guess.why.find("set --number-format"), std::string::npos) << guess.why;
  }
  const auto ids = [](int r) { return cat(111 + drawn(r, 80), ",", 111 + drawn(r + 999, 80), r % 2 ? ",155" : ""); };
  EXPECT_EQ(guess_cells("x", 400, ids).kind, GuessedKind::list) << "ids of three digits";
}

TEST(ColumnGuess, PointsThatMayStandBetweenThousandsAreNotTakenForFractions) {
  const auto german = [](int r) {
    return r % 3 ? cat(1 + drawn(r, 9), ".", 100 + drawn(r + 7, 900)) : cat(drawn(r, 999));
  };
  const ColumnGuess guess = guess_cells("x", 400, german);
  EXPECT_EQ(guess.kind, GuessedKind::left_out) << guess.why;
  EXPECT_NE(guess.why.find("in which the point may separate thousands"), std::string::npos) << guess.why;
  EXPECT_EQ(guess_cells("x", 400, [&](int r) { return r ? german(r) : "0.125"; }).kind, GuessedKind::number);
  EXPECT_EQ(guess_cells("x", 400, [&](int r) { return r ? german(r) : "1250"; }).kind, GuessedKind::number);
  EXPECT_EQ(guess_cells("x", 400, [&](int r) { return german(3 * r + 1); }).kind, GuessedKind::number)
      << "all have one";
}

TEST(ColumnGuess, AStatedFormatDecidesWhatAPointOrACommaIs) {
  const auto guess_as = [](NumberFormat format, const std::function<std::string(int)>& cell) {
    ColumnFacts facts;
    for (int r = 0; r < 400; ++r) facts.add(cell(r));
    return guess_column("x", facts, format);
  };
  const auto german = [](int r) {
    return r % 3 ? cat(1 + drawn(r, 9), ".", 100 + drawn(r + 7, 900)) : cat(drawn(r, 999));
  };
  EXPECT_EQ(guess_as(NumberFormat::points_comma, german).notation.format, NumberFormat::points_comma);
  EXPECT_NE(guess_as(NumberFormat::points_comma, german).why.find(" to 99"), std::string::npos) << "thousands";
  EXPECT_FALSE(guess_as(NumberFormat::commas_point, german).notation.given()) << "fractions";
  EXPECT_TRUE(guess_as(NumberFormat::commas_point, german).is_number());
  const auto comma = [](int r) { return cat(drawn(r, 9), ",", 1 + drawn(r + 7, 9)); };
  const ColumnGuess doubt = guess_cells("x", 400, comma);
  EXPECT_EQ(doubt.kind, GuessedKind::left_out);
  EXPECT_NE(doubt.why.find("a number with a decimal comma or a list of two numbers: --number x or --list x"),
            std::string::npos)
      << doubt.why;
  EXPECT_EQ(guess_as(NumberFormat::comma, comma).notation.format, NumberFormat::comma);
  EXPECT_FALSE(guess_as(NumberFormat::points_comma, [](int r) { return cat(r * 7 % 401, ".5"); }).notation.given());
}

TEST(ColumnGuess, ANumberToEvaluateOnHasToBeReadInTheSameNotation) {
  const auto guess_with = [](const std::string& held_out) {
    ColumnFacts facts;
    for (int r = 0; r < 400; ++r) facts.add(cat(1 + drawn(r, 9), ",", 100 + drawn(r + 7, 900), ".5"));
    facts.check(held_out);
    return guess_column("x", facts);
  };
  EXPECT_TRUE(guess_with("17").is_number());
  EXPECT_TRUE(guess_with("2,000").is_number());
  for (const char* other : {"1.234,5", "$1,234.5", "123,45"}) EXPECT_FALSE(guess_with(other).is_number()) << other;
}

TEST(ColumnGuess, NumbersWithAUnitAreNamed) {
  const ColumnGuess few = guess_cells("x", 400, [](int r) { return cat(12 * (1 + r % 5), " months"); });
  EXPECT_EQ(few.kind, GuessedKind::category);
  EXPECT_EQ(few.why, "category: 5 different values; --number x has numbers such as '12 months' read as numbers");
  for (const char* unit : {" sqft", "\u00b0C", " m\u00b2", "K"}) {
    const ColumnGuess many = guess_cells("x", 400, [&](int r) { return cat(r * 7 % 401, ".", r % 7, unit); });
    EXPECT_EQ(many.kind, GuessedKind::left_out) << unit;
    EXPECT_NE(many.why.find("numbers written as '"), std::string::npos) << many.why;
  }
  EXPECT_EQ(guess_cells("x", 400, [](int r) { return cat(r % 9, "\" screen"); }).why, "category: 9 different values");
  const ColumnGuess ids = guess_cells("x", 400, [](int r) { return cat(r, "-", r % 7, "a", r); });
  EXPECT_NE(ids.why.find("id: "), std::string::npos) << ids.why;
}

TEST(ColumnGuess, NumbersAmongOtherTextsAreNamed) {
  const ColumnGuess guess =
      guess_cells("x", 400, [](int r) { return r % 8 ? cat("1,", 100 + drawn(r, 20), ".5") : "on request"; });
  EXPECT_EQ(guess.kind, GuessedKind::category) << guess.why;
  EXPECT_NE(guess.why.find("350 of 400 values are numbers, some written as '1,"), std::string::npos) << guess.why;
  EXPECT_NE(guess.why.find("but not 'on request'"), std::string::npos) << guess.why;
}

TEST(ColumnGuess, FloatsOfParquetAreCategoriesOnlyUnderTheNameOfAnIdAndWhole) {
  ColumnFacts facts;
  facts.fractions = true;
  facts.whole_below = 100;
  for (int r = 0; r < 100; ++r) facts.add(cat(r % 5));
  EXPECT_EQ(guess_column("visits", facts).kind, GuessedKind::number);
  EXPECT_EQ(guess_column("user", facts).kind, GuessedKind::category);
  facts.check("0.5");
  EXPECT_EQ(guess_column("user", facts).kind, GuessedKind::number) << "a fraction has no key";
  ColumnFacts rounded;
  rounded.fractions = true;
  rounded.whole_below = 100;
  for (int r = 0; r < 100; ++r) rounded.add(cat(96 + r % 5));
  EXPECT_EQ(guess_column("user", rounded).kind, GuessedKind::left_out) << "100 may be another number, rounded";
}

}  // namespace
}  // namespace hctr
