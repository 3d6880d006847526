// Column kinds stated by the user override the guesses of --init, if the values permit.
#include "prepare/init/stated_column.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr {
namespace {

std::string message_of(const std::function<void()>& action) { return test::message_of(Kind::usage, action); }

ColumnFacts facts_of(const std::function<std::string(int)>& cell, int rows = 400) {
  ColumnFacts facts;
  for (int r = 0; r < rows; ++r) facts.add(cell(r));
  return facts;
}

ColumnGuess stated(const ColumnFacts& facts, const StatedKind& kind) { return stated_column("x", facts, kind); }

TEST(StatedColumn, NumbersBecomeCategoriesAndIdsNumbers) {
  const ColumnFacts numbers = facts_of([](int r) { return std::to_string(r * 37 % 199); });
  EXPECT_EQ(guess_column("x", numbers).kind, GuessedKind::number);
  const ColumnGuess category = stated(numbers, {.category = true});
  EXPECT_EQ(category.kind, GuessedKind::category);
  EXPECT_TRUE(category.integers) << "so that din may use it";
  EXPECT_EQ(category.why, "category, by --category: 199 different values");
  EXPECT_EQ(stated(numbers, {.category = true, .number = true}).kind, GuessedKind::number_and_category);
  const ColumnFacts zips = facts_of([](int r) { return r % 10 ? cat("0", 1000 + r % 9) : ""; });
  EXPECT_EQ(guess_column("zip", zips).kind, GuessedKind::category);
  const ColumnGuess number = stated(zips, {.number = true});
  EXPECT_EQ(number.kind, GuessedKind::number);
  EXPECT_EQ(number.why, "number, by --number: 1000 to 1008; 10 % missing");
  const ColumnFacts texts = facts_of([](int r) { return cat("name ", r); });
  EXPECT_EQ(guess_column("x", texts).kind, GuessedKind::left_out);
  EXPECT_EQ(stated(texts, {.category = true}).kind, GuessedKind::category);
}

TEST(StatedColumn, ListsAreTakenApartWhereTheGuessDoesNotDare) {
  const ColumnFacts words = facts_of([](int r) { return cat("w", r % 7, " w", r % 5); });
  EXPECT_NE(guess_column("x", words).kind, GuessedKind::list);
  const ColumnGuess list = stated(words, {.list = true});
  EXPECT_EQ(list.kind, GuessedKind::list);
  EXPECT_EQ(list.separator, ' ');
  EXPECT_EQ(list.most_items, 2);
  EXPECT_TRUE(stated(facts_of([](int r) { return cat("['a', 'b", r % 3, "']"); }), {.list = true}).brackets);
}

TEST(StatedColumn, WhatTheValuesCannotBeIsRefusedWithTheFirstOfThem) {
  const ColumnFacts prices = facts_of([](int r) { return r == 9 ? "$ 12" : std::to_string(r); });
  EXPECT_EQ(message_of([&] { stated(prices, {.number = true}); }),
            "--number x: 1 value is not a number, the first is '$ 12'");
  EXPECT_EQ(message_of([&] { stated(facts_of([](int) { return "one"; }), {.list = true}); }),
            "--list x: no cell contains several values separated by | ; , / ^ ~ # or blanks");
  EXPECT_EQ(message_of([&] { stated(facts_of([](int) { return "?"; }), {.category = true}); }),
            "--category x: no row has a value");
  ColumnFacts lists;
  lists.add_item("3");
  lists.end_list();
  EXPECT_EQ(message_of([&] { stated(lists, {.category = true}); }),
            "--category x: the column contains lists; name it in --list");
  EXPECT_EQ(stated(lists, {.list = true}).kind, GuessedKind::list);
}

TEST(StatedColumn, OptionsNameColumnsThatExistAndDoNotContradictEachOther) {
  InitOptions options;
  options.label = "y";
  const std::vector<std::string> columns = {"y", "city", "2", "age", "age"};
  const auto message = [&](auto member, std::vector<std::string> names) {
    InitOptions given = options;
    given.*member = std::move(names);
    return message_of([&] { expect_stated_columns(given, columns); });
  };
  InitOptions right = options;
  right.categories = {"city", "2"};
  EXPECT_NO_THROW(expect_stated_columns(right, columns));
  EXPECT_EQ(message(&InitOptions::categories, {"citi"}),
            "--category citi: the table has no such column; did you mean \"city\"?");
  EXPECT_EQ(message(&InitOptions::numbers, {"age"}), "--number age: several columns have this name");
  EXPECT_EQ(message(&InitOptions::lists, {"y"}), "--list y: the column is the label");
  options.leave_out = {"city"};
  EXPECT_EQ(message(&InitOptions::numbers, {"city"}), "--number city: the column is also in --leave-out");
  options.leave_out = {};
  options.lists = {"2"};
  EXPECT_EQ(message(&InitOptions::categories, {"2"}), "--category 2: the column is also in --list");
}

}  // namespace
}  // namespace hctr
