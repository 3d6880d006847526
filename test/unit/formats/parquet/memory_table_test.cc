// Tables in memory: every Arrow layout gives the same values as the text of a file.
#include "formats/parquet/memory_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/expect.h"
#include "formats/catalog/open_set.h"
#include "formats/parquet/parquet_values.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

/// One column. Owns its buffers until the end of the test.
struct MemoryVector {
  std::string format, name;
  int64_t length = 0, offset = 0, nulls = 0;
  std::vector<const void*> buffers{};
  std::vector<MemoryVector> children{}, dictionary{};
};

/// The Arrow structs for a list of columns.
struct MemoryStructs {
  std::vector<std::unique_ptr<ArrowSchema>> schemas{};
  std::vector<std::unique_ptr<ArrowArray>> arrays{};
  std::vector<std::vector<ArrowSchema*>> schema_lists{};
  std::vector<std::vector<ArrowArray*>> array_lists{};

  std::pair<ArrowSchema*, ArrowArray*> add(MemoryVector& from) {
    ArrowSchema* schema = schemas.emplace_back(std::make_unique<ArrowSchema>()).get();
    ArrowArray* array = arrays.emplace_back(std::make_unique<ArrowArray>()).get();
    *schema = {from.format.c_str(), from.name.c_str(), nullptr, 2, 0, nullptr, nullptr, nullptr, nullptr};
    *array = {from.length, from.nulls,
              from.offset, static_cast<int64_t>(from.buffers.size()),
              0,           from.buffers.data(),
              nullptr,     nullptr,
              nullptr,     nullptr};
    std::vector<ArrowSchema*> of_schema;
    std::vector<ArrowArray*> of_array;
    for (MemoryVector& child : from.children) {
      const auto [one, values] = add(child);
      of_schema.push_back(one);
      of_array.push_back(values);
    }
    schema->n_children = array->n_children = static_cast<int64_t>(of_schema.size());
    schema->children = schema_lists.emplace_back(of_schema).data();
    array->children = array_lists.emplace_back(of_array).data();
    if (!from.dictionary.empty()) std::tie(schema->dictionary, array->dictionary) = add(from.dictionary[0]);
    return {schema, array};
  }
};

class MemoryTables : public testing::Test {
 protected:
  std::shared_ptr<MemoryTable> table_of(std::vector<MemoryVector> columns, int64_t rows) {
    structs_.schema_lists.reserve(64);
    structs_.array_lists.reserve(64);
    tables_.push_back(std::make_unique<MemoryVector>(MemoryVector{
        .format = "+s", .name = "", .length = rows, .buffers = {nullptr}, .children = std::move(columns)}));
    const auto [schema, array] = structs_.add(*tables_.back());
    std::vector<ArrowArray> batches = {*array};
    return memory_table(*schema, batches);
  }
  MemoryStructs structs_;
  std::vector<std::unique_ptr<MemoryVector>> tables_;
};

std::vector<std::string> texts_of(MemoryTable& table, int64_t field, int64_t rows) {
  ParquetColumn* opened = nullptr;
  EXPECT_EQ(table.open_column(0, field, ParquetForm::value, opened), nullptr);
  const std::unique_ptr<ParquetColumn> column(opened);
  ParquetValues values;
  void* owner = nullptr;
  EXPECT_EQ(column->read(values, owner), nullptr);
  EXPECT_EQ(values.rows, rows);
  std::vector<std::string> texts(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    append_text(table.info().fields[field].type, values, r, texts[static_cast<size_t>(r)]);
  if (owner) MemoryTable::drop(owner);
  return texts;
}

TEST_F(MemoryTables, TextsOfEveryLayoutAreTheSame) {
  const std::vector<int32_t> small = {0, 1, 1, 4};
  const std::vector<int64_t> large = {0, 1, 1, 4};
  const char bytes[] = "abcd";
  const uint8_t valid = 0b101;
  std::string views(48, '\0');
  const std::string longer = "a text of more than twelve";
  const auto set_view = [&](size_t at, std::string_view text) {
    const auto size = static_cast<int32_t>(text.size());
    std::memcpy(&views[16 * at], &size, 4);
    std::memcpy(&views[16 * at + 4], text.data(), std::min<size_t>(text.size(), size > 12 ? 4 : 12));
  };
  set_view(0, "a");
  set_view(2, longer);
  const std::vector<int8_t> codes = {0, 1, 2};
  auto table = table_of(
      {{"u", "small", 3, 0, 1, {&valid, small.data(), bytes}},
       {"U", "large", 3, 0, 1, {&valid, large.data(), bytes}},
       {"vu", "view", 3, 0, 1, {&valid, views.data(), longer.data()}},
       {"c", "coded", 3, 0, 1, {&valid, codes.data()}, {}, {{"u", "", 3, 0, 0, {nullptr, small.data(), bytes}}}},
       {"n", "nothing", 3, 0, 3, {}}},
      3);
  const std::vector<std::string> expected = {"a", "", "bcd"};
  EXPECT_EQ(texts_of(*table, 0, 3), expected);
  EXPECT_EQ(texts_of(*table, 1, 3), expected);
  EXPECT_EQ(texts_of(*table, 2, 3), (std::vector<std::string>{"a", "", longer}));
  EXPECT_EQ(texts_of(*table, 3, 3), expected);
  EXPECT_EQ(texts_of(*table, 4, 3), (std::vector<std::string>{"", "", ""}));
}

TEST_F(MemoryTables, SlicesAndListsBeginWhereTheySay) {
  const std::vector<int32_t> numbers = {9, 9, 1, 2, 3, 4};
  const std::vector<int32_t> ends = {0, 2, 2, 3};
  const std::vector<int64_t> far_ends = {1, 3, 3, 4};
  const uint8_t bits = 0b1100;
  auto table = table_of(
      {{"i", "numbers", 3, 2, 0, {nullptr, numbers.data()}},
       {"b", "flags", 3, 2, 0, {nullptr, &bits}},
       {"+l", "lists", 3, 0, 0, {nullptr, ends.data()}, {{"i", "item", 4, 2, 0, {nullptr, numbers.data()}}}},
       {"+L", "far", 3, 0, 0, {nullptr, far_ends.data()}, {{"i", "item", 5, 1, 0, {nullptr, numbers.data()}}}}},
      3);
  EXPECT_EQ(texts_of(*table, 0, 3), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(texts_of(*table, 1, 3), (std::vector<std::string>{"true", "true", "false"}));
  EXPECT_EQ(texts_of(*table, 2, 3), (std::vector<std::string>{"1|2", "", "3"}));
  EXPECT_EQ(texts_of(*table, 3, 3), (std::vector<std::string>{"1|2", "", "3"}));
}

TEST_F(MemoryTables, WhatIsNoneIsSaid) {
  const std::vector<int64_t> numbers = {1, 2, 3};
  const auto too_short = [&] { table_of({{"l", "short", 2, 0, 0, {nullptr, numbers.data()}}}, 3); };
  EXPECT_EQ(message_of(Kind::usage, too_short), "column 'short' has 2 rows, but the table has 3");
  EXPECT_NE(message_of(Kind::io, [] { memory_source("memory:/no"); }).find("'memory:/no' is a table"),
            std::string::npos);
  DataSection section;
  section.format = {"Norm"};
  const std::string name = add_memory_source(table_of({{"l", "x", 3, 0, 0, {nullptr, numbers.data()}}}, 3));
  const auto as_norm = [&] { open_set(section, {.path = name}, KeyWidth::detect, Log::silent()); };
  EXPECT_NE(message_of(Kind::config, as_norm).find("the format is \"Norm\""), std::string::npos);
  remove_memory_source(name);
}

TEST_F(MemoryTables, AreReleasedWhenNobodyReadsThem) {
  static int released = 0;
  const std::vector<int64_t> numbers = {1, 2, 3};
  MemoryVector column{"l", "x", 3, 0, 0, {nullptr, numbers.data()}};
  MemoryVector whole{.format = "+s", .name = "", .length = 3, .buffers = {nullptr}, .children = {column}};
  structs_.schema_lists.reserve(8);
  structs_.array_lists.reserve(8);
  const auto [schema, array] = structs_.add(whole);
  array->release = [](ArrowArray* one) {
    ++released;
    one->release = nullptr;
  };
  std::vector<ArrowArray> batches = {*array};
  std::shared_ptr<MemoryTable> table = memory_table(*schema, batches);
  const std::string name = add_memory_source(table);
  EXPECT_EQ(memory_source(name), table);
  remove_memory_source(name);
  EXPECT_EQ(released, 0);
  table.reset();
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace hctr::test
