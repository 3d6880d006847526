// The config that --init writes: its text, and the number of training steps.
#include "prepare/init/init_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "prepare/init/wide_json.h"

namespace hctr {
namespace {

/// A plan for a table with one categorical column of `keys` values.
InitPlan plan_of(int64_t rows, int64_t keys) {
  InitPlan plan;
  plan.train = "t.csv";
  plan.eval = "e.csv";
  plan.layout = TextLayout{.delimiter = ",", .grammar = {}, .header = true, .columns = {}};
  plan.label.column = "y";
  ColumnGuess& column = plan.columns.emplace_back();
  column.name = "c";
  column.kind = GuessedKind::category;
  plan.distinct = {keys};
  plan.train_rows = rows;
  return plan;
}

TEST(InitConfig, TextIsTheSameJsonInShortLines) {
  InitPlan plan = plan_of(1000, 10);
  for (int i = 0; i < 40; ++i) {
    plan.columns.push_back(plan.columns[0]);
    plan.columns.back().name = "a column \"" + std::to_string(i) + "\"";
    plan.distinct.push_back(3);
  }
  const std::string text = init_config(plan);
  const Json config = Json::parse(text, "config");
  EXPECT_EQ(wide_json(config), text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 121U) << line;
  EXPECT_NE(text.find("\"a column \\\"39\\\"\""), std::string::npos);
}

TEST(InitConfig, NamesOfVariablesInATableAreTexts) {
  InitPlan plan = plan_of(1000, 10);
  plan.columns[0].name = "${HOME}";
  plan.train = "${HOME}.csv";
  const std::string text = init_config(plan);
  EXPECT_NE(text.find("\"$${HOME}\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"$${HOME}.csv\""), std::string::npos) << text;
}

TEST(InitConfig, AnItemAndAHistoryHaveEqualKeys) {
  InitPlan plan = plan_of(1000, 10);
  plan.model = InitModel::din;
  plan.columns.push_back(plan.columns[0]);
  plan.columns[1].name = "before";
  plan.columns[1].kind = GuessedKind::list;
  plan.columns[1].separator = ';';
  plan.columns[1].most_items = 7;
  plan.distinct.push_back(10);
  plan.item = 0;
  plan.history = 1;
  const auto slots = [&] {
    const Json config = Json::parse(init_config(plan), "config");
    const Json& data = config.find("layers")->array()->front();
    return data.find(plan.layout ? "csv" : "parquet")->find("slots")->text();
  };
  EXPECT_EQ(slots(), R"([{"columns":["before"],"key_space":"items","separator":";"},)"
                     R"({"columns":["c"],"key_space":"items"}])");
  plan.item_numbers = true;
  EXPECT_EQ(slots(), R"([{"columns":["before"],"keys":"number","separator":";"},{"columns":["c"],"keys":"number"}])");
  plan.item_numbers = false;
  plan.layout.reset();
  plan.columns[1].separator = 0;
  EXPECT_EQ(slots(), R"([{"columns":["before"],"keys":"hash","key_space":"items","default":""},)"
                     R"({"columns":["c"],"keys":"hash","key_space":"items","default":""}])");
}

TEST(InitConfig, NotationsAreThoseOfTheTableUnlessAColumnHasItsOwn) {
  InitPlan plan = plan_of(1000, 10);
  const auto add = [&](const char* name, std::optional<NumberFormat> format, const char* unit, bool points) {
    ColumnGuess& column = plan.columns.emplace_back();
    column.name = name;
    column.kind = GuessedKind::number;
    column.notation = {format, unit};
    column.has_points = points;
    plan.distinct.push_back(10);
  };
  add("whole", {}, "", false);
  add("point", {}, "", true);
  add("german", NumberFormat::points_comma, "", false);
  add("price", NumberFormat::points_comma, "€", false);
  add("share", NumberFormat::plain, "%", false);
  const auto section = [&] {
    const Json config = Json::parse(init_config(plan), "config");
    return *config.find("layers")->array()->front().find("csv");
  };
  plan.number_format = NumberFormat::points_comma;
  const std::string all = section().text();
  EXPECT_NE(all.find(R"("number_format":"1.234,5","labels":[{"column":"y","number_format":"1234.5"}])"), all.npos)
      << all;
  EXPECT_EQ(section().find("dense")->text(),
            R"([{"columns":["whole","german"],"transform":"standardize"},)"
            R"({"columns":["price"],"transform":"standardize","unit":"€"},)"
            R"({"columns":["point"],"transform":"standardize","number_format":"1234.5"},)"
            R"({"columns":["share"],"transform":"standardize","number_format":"1234.5","unit":"%"}])");
  plan.number_format.reset();
  EXPECT_EQ(section().find("dense")->text(),
            R"([{"columns":["whole","point"],"transform":"standardize"},)"
            R"({"columns":["share"],"transform":"standardize","unit":"%"},)"
            R"({"columns":["german"],"transform":"standardize","number_format":"1.234,5"},)"
            R"({"columns":["price"],"transform":"standardize","number_format":"1.234,5","unit":"€"}])");
}

TEST(InitConfig, LargerTablesTakeLargerBatchesAndFewerPasses) {
  InitSchedule before = schedule_of(plan_of(10, 2));
  for (int64_t rows = 20; rows < int64_t{1} << 36; rows *= 2) {
    const InitSchedule schedule = schedule_of(plan_of(rows, 2));
    EXPECT_GE(schedule.batch, before.batch);
    EXPECT_LE(schedule.epochs, before.epochs);
    EXPECT_GE(schedule.epochs, 1);
    EXPECT_GE(schedule.steps_per_epoch * schedule.batch, rows);
    EXPECT_LT((schedule.steps_per_epoch - 1) * schedule.batch, rows);
    before = schedule;
  }
}

TEST(InitConfig, ManyKeysAreSeenFewTimes) {
  const InitSchedule few = schedule_of(plan_of(50'000, 24'000)), many = schedule_of(plan_of(50'000, 26'000));
  EXPECT_FALSE(few.rare_keys);
  EXPECT_TRUE(many.rare_keys);
  EXPECT_LT(many.epochs, few.epochs);
  EXPECT_EQ(init_config(plan_of(50'000, 24'000)).find("min_count"), std::string::npos);
  EXPECT_NE(init_config(plan_of(50'000, 26'000)).find("min_count"), std::string::npos);
}

}  // namespace
}  // namespace hctr
