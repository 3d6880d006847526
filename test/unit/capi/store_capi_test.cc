// The store through the C interface.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "hctr/huge_ctr.h"

namespace hctr::test {
namespace {

hctr_array array_of(const void* data, hctr_dtype type, const std::vector<int64_t>& shape) {
  return {const_cast<void*>(data), type, static_cast<int32_t>(shape.size()), shape.data(), nullptr, -1};
}

class StoreCapi : public ::testing::Test {
 protected:
  void SetUp() override {
    hctr_store_options options{};
    options.size = sizeof options;
    options.config_text = "{}";
    ASSERT_EQ(hctr_store_open(&options, &store_), HCTR_OK) << hctr_error_message();
    const std::vector<uint32_t> keys = {1, 4000000000u};
    const std::vector<float> vectors = {1, 2, 3, 4};
    hctr_store_source table{};
    table.size = sizeof table;
    table.name = "t";
    table.dim = 2;
    table.keys = array_of(keys.data(), HCTR_U32, of_two_);
    table.vectors = array_of(vectors.data(), HCTR_F32, two_by_two_);
    table.default_value = 9;
    hctr_store_model model{};
    model.size = sizeof model;
    model.name = "m";
    model.tables = &table;
    model.table_count = 1;
    ASSERT_EQ(hctr_store_load(store_, &model), HCTR_OK) << hctr_error_message();
    ASSERT_EQ(hctr_store_view_create(store_, "m", &view_), HCTR_OK) << hctr_error_message();
  }
  void TearDown() override {
    hctr_store_view_destroy(view_);
    hctr_store_destroy(store_);
  }
  std::vector<float> rows_of(const std::vector<int64_t>& keys, int64_t* missing = nullptr) {
    std::vector<float> rows(2 * keys.size());
    const std::vector<int64_t> count = {static_cast<int64_t>(keys.size())}, shape = {count[0], 2};
    const hctr_array wanted = array_of(keys.data(), HCTR_I64, count), to = array_of(rows.data(), HCTR_F32, shape);
    EXPECT_EQ(hctr_store_get(view_, 0, 0, &wanted, &to, nullptr, missing), HCTR_OK) << hctr_error_message();
    return rows;
  }
  const std::vector<int64_t> of_two_ = {2}, two_by_two_ = {2, 2};
  hctr_store* store_ = nullptr;
  hctr_store_view* view_ = nullptr;
};

TEST_F(StoreCapi, LooksUpRowsAndAppliesUpdates) {
  int64_t missing = -1;
  EXPECT_EQ(rows_of({4000000000, 7, 1, 7}, &missing), (std::vector<float>{3, 4, 9, 9, 1, 2, 9, 9}));
  EXPECT_EQ(missing, 1);
  const int64_t changed[2] = {7, 8}, removed[1] = {1};
  const float vectors[4] = {5, 6, 7, 8};
  const std::vector<int64_t> of_one = {1};
  hctr_store_update update{};
  update.size = sizeof update;
  update.table = "t";
  update.keys = array_of(changed, HCTR_I64, of_two_);
  update.vectors = array_of(vectors, HCTR_F32, two_by_two_);
  update.removed = array_of(removed, HCTR_I64, of_one);
  int64_t applied = 0;
  EXPECT_EQ(hctr_store_apply(store_, "m", 3, &update, 1, &applied), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(hctr_store_apply(store_, "m", 3, &update, 1, &applied), HCTR_OK);
  EXPECT_EQ(applied, 0);
  EXPECT_EQ(rows_of({7, 8, 1}), (std::vector<float>{5, 6, 7, 8, 9, 9}));
  hctr_store_destroy(store_);
  store_ = nullptr;
  EXPECT_EQ(rows_of({8}), (std::vector<float>{7, 8})) << "a view outlives its store";
}

TEST_F(StoreCapi, PoolsAndSaysWhatThereIs) {
  const int64_t keys[3] = {1, 4000000000, 1};
  const int32_t offsets[4] = {0, 2, 2, 3};
  float vectors[6];
  const std::vector<int64_t> three = {3}, four = {4}, three_by_two = {3, 2};
  const hctr_array wanted = array_of(keys, HCTR_I64, three), bounds = array_of(offsets, HCTR_I32, four),
                   to = array_of(vectors, HCTR_F32, three_by_two);
  EXPECT_EQ(hctr_store_get_pooled(view_, 0, 0, &wanted, &bounds, HCTR_MEAN, &to, nullptr), HCTR_OK)
      << hctr_error_message();
  EXPECT_EQ(std::vector<float>(vectors, vectors + 6), (std::vector<float>{2, 3, 0, 0, 1, 2}));
  EXPECT_TRUE(rows_of({}).empty());
  const char* version = nullptr;
  size_t tables = 0;
  EXPECT_EQ(hctr_store_view_version(view_, &version, &tables), HCTR_OK);
  EXPECT_STREQ(version, "1");
  EXPECT_EQ(tables, 1u);
  hctr_store_table table{};
  table.size = sizeof table;
  EXPECT_EQ(hctr_store_view_table(view_, 0, &table), HCTR_OK);
  EXPECT_STREQ(table.name, "t");
  EXPECT_EQ(table.default_value, 9);
  int64_t seen = 0;
  const auto add = [](void* user, const hctr_store_level_state* state) {
    *static_cast<int64_t*>(user) += state->rows + (std::string(state->level) == "memory" ? 10 : 0);
  };
  EXPECT_EQ(hctr_store_levels(store_, add, &seen), HCTR_OK);
  EXPECT_EQ(seen, 12);
}

TEST_F(StoreCapi, RefusesWhatDoesNotFitAndSaysWhy) {
  float rows[4];
  const int64_t keys[2] = {1, 2};
  const hctr_array wanted = array_of(keys, HCTR_I64, of_two_), to = array_of(rows, HCTR_F32, two_by_two_);
  EXPECT_EQ(hctr_store_get(view_, 1, 0, &wanted, &to, nullptr, nullptr), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "there is no table 1: the version has 1 tables");
  const std::vector<int64_t> one_by_two = {1, 2};
  const hctr_array less = array_of(rows, HCTR_F32, one_by_two);
  EXPECT_EQ(hctr_store_get(view_, 0, 0, &wanted, &less, nullptr, nullptr), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "rows of table 't' have shape [1, 2], expected [2, 2]");
  EXPECT_EQ(hctr_store_get(view_, 0, 0, &to, &to, nullptr, nullptr), HCTR_USAGE);
  hctr_store_view* other = nullptr;
  EXPECT_EQ(hctr_store_view_create(store_, "n", &other), HCTR_USAGE);
  EXPECT_STREQ(hctr_error_message(), "the store has no model 'n'; it has 'm'");
  hctr_store_options options{};
  options.size = sizeof options;
  options.config_text = R"({"mormory": true})";
  hctr_store* second = nullptr;
  EXPECT_EQ(hctr_store_open(&options, &second), HCTR_CONFIG);
  EXPECT_NE(std::string(hctr_error_message()).find("did you mean \"memory\"?"), std::string::npos)
      << hctr_error_message();
}

}  // namespace
}  // namespace hctr::test
