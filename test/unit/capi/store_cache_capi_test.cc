// Caches of a store's rows through the C interface. Without a GPU the store's levels answer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/device.h"
#include "hctr/huge_ctr.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

/// An array in host memory, or on GPU 0.
struct CacheArray {
  CacheArray(const void* data, hctr_dtype type, std::vector<int64_t> of, int32_t gpu = -1) : shape(std::move(of)) {
    array = {const_cast<void*>(data), type, static_cast<int32_t>(shape.size()), shape.data(), nullptr, gpu};
  }
  CacheArray(const CacheArray&) = delete;
  CacheArray& operator=(const CacheArray&) = delete;
  std::vector<int64_t> shape;
  hctr_array array;
};

class StoreCacheCapi : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
    hctr_store_options options{};
    options.size = sizeof options;
    options.config_text = R"({"gpu_cache": {"most_rows": 2, "admit_after": 1}})";
    ASSERT_EQ(hctr_store_open(&options, &store_), HCTR_OK) << hctr_error_message();
    load("1", 1);
    ASSERT_EQ(hctr_store_cache_create(store_, "m", GetParam().is_cuda() ? 0 : HCTR_NO_GPU, &cache_), HCTR_OK)
        << hctr_error_message();
  }
  void TearDown() override {
    hctr_store_cache_destroy(cache_);
    hctr_store_destroy(store_);
  }
  /// Keys 0 to 9 of table "t" have the rows [factor * key, -key]; table "u" has one key, 7.
  void load(const char* version, float factor) {
    std::vector<int64_t> keys;
    std::vector<float> rows;
    for (int64_t key = 0; key < 10; ++key) {
      keys.push_back(key);
      rows.insert(rows.end(), {factor * static_cast<float>(key), -static_cast<float>(key)});
    }
    const int64_t other_key = 7;
    const float other_row = 42;
    const CacheArray t_keys(keys.data(), HCTR_I64, {10}), t_rows(rows.data(), HCTR_F32, {10, 2}),
        u_keys(&other_key, HCTR_I64, {1}), u_rows(&other_row, HCTR_F32, {1, 1});
    hctr_store_source tables[2] = {};
    for (hctr_store_source& table : tables) table.size = sizeof table;
    tables[0].name = "t", tables[0].dim = 2, tables[0].keys = t_keys.array, tables[0].vectors = t_rows.array;
    tables[1].name = "u", tables[1].dim = 1, tables[1].keys = u_keys.array, tables[1].vectors = u_rows.array;
    tables[1].default_value = 0.5f;
    hctr_store_model model{};
    model.size = sizeof model;
    model.name = "m";
    model.version = version;
    model.tables = tables;
    model.table_count = 2;
    ASSERT_EQ(hctr_store_load(store_, &model), HCTR_OK) << hctr_error_message();
  }
  static hctr_store_lookup lookup(size_t table, const CacheArray& keys, const CacheArray& vectors,
                                  const CacheArray* offsets = nullptr) {
    hctr_store_lookup of{};
    of.size = sizeof of;
    of.table = table;
    of.keys = keys.array;
    of.vectors = vectors.array;
    if (offsets) of.offsets = offsets->array, of.pooling = HCTR_SUM;
    return of;
  }
  std::string error_of(const hctr_store_lookup& one) {
    EXPECT_EQ(hctr_store_cache_look_up(cache_, &one, 1, nullptr, nullptr), HCTR_USAGE);
    return hctr_error_message();
  }
  hctr_store* store_ = nullptr;
  hctr_store_cache* cache_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Device, StoreCacheCapi, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(StoreCacheCapi, LooksUpSeveralTablesOfHostMemoryAndFollowsUpdatesAndVersions) {
  const int32_t keys[4] = {3, 11, 3, 9}, offsets[3] = {0, 3, 4};
  const uint32_t other_keys[2] = {7, 8};
  float rows[8], bags[4], others[2];
  const CacheArray of_t(keys, HCTR_I32, {4}), to_rows(rows, HCTR_F32, {4, 2}), bounds(offsets, HCTR_I32, {3}),
      to_bags(bags, HCTR_F32, {2, 2}), of_u(other_keys, HCTR_U32, {2}), to_others(others, HCTR_F32, {2, 1});
  const hctr_store_lookup all[3] = {lookup(0, of_t, to_rows), lookup(0, of_t, to_bags, &bounds),
                                    lookup(1, of_u, to_others)};
  const auto expect = [&](float factor) {
    for (int round = 0; round < 3; ++round) {
      int64_t missing = -1;
      ASSERT_EQ(hctr_store_cache_look_up(cache_, all, 3, nullptr, &missing), HCTR_OK) << hctr_error_message();
      EXPECT_EQ(missing, 3);
      EXPECT_EQ(std::vector<float>(rows, rows + 8),
                (std::vector<float>{3 * factor, -3, 0, 0, 3 * factor, -3, 9 * factor, -9}));
      EXPECT_EQ(std::vector<float>(bags, bags + 4), (std::vector<float>{6 * factor, -6, 9 * factor, -9}));
      EXPECT_EQ(std::vector<float>(others, others + 2), (std::vector<float>{42, 0.5f}));
    }
  };
  expect(1);
  const int64_t changed[2] = {3, 9};
  const float values[4] = {30, -3, 90, -9};
  const CacheArray changed_keys(changed, HCTR_I64, {2}), changed_rows(values, HCTR_F32, {2, 2});
  hctr_store_update update{};
  update.size = sizeof update;
  update.table = "t";
  update.keys = changed_keys.array;
  update.vectors = changed_rows.array;
  ASSERT_EQ(hctr_store_apply(store_, "m", 1, &update, 1, nullptr), HCTR_OK) << hctr_error_message();
  expect(10);
  load("2", 5);
  ASSERT_EQ(hctr_store_cache_activate(cache_, "2"), HCTR_OK) << hctr_error_message();
  expect(5);
  hctr_store_cache_state state{};
  state.size = sizeof state;
  ASSERT_EQ(hctr_store_cache_statistics(cache_, &state), HCTR_OK);
  EXPECT_STREQ(state.version, "2");
  EXPECT_EQ(state.gpu, GetParam().is_cuda() ? 0 : -1);
  EXPECT_EQ(state.requests, GetParam().is_cuda() ? 3 : 0);
  hctr_store_view* view = nullptr;
  ASSERT_EQ(hctr_store_cache_view(cache_, &view), HCTR_OK);
  const char* version = nullptr;
  EXPECT_EQ(hctr_store_view_version(view, &version, nullptr), HCTR_OK);
  EXPECT_STREQ(version, "2");
  hctr_store_view_destroy(view);
  hctr_store_destroy(store_);
  store_ = nullptr;
  expect(5);
}

TEST_P(StoreCacheCapi, RefusesWhatDoesNotFitAndSaysWhy) {
  const int64_t keys[2] = {1, 2}, offsets[2] = {1, 0};
  float rows[4];
  const CacheArray wanted(keys, HCTR_I64, {2}), to(rows, HCTR_F32, {2, 2}), less(rows, HCTR_F32, {1, 2}),
      floats(rows, HCTR_F32, {2}), bounds(offsets, HCTR_I64, {2}), elsewhere(keys, HCTR_I64, {2}, 7);
  EXPECT_EQ(error_of(lookup(2, wanted, to)), "there is no table 2: the version has 2 tables");
  EXPECT_EQ(error_of(lookup(0, wanted, less)), "vectors of table 't' have shape [1, 2], expected [2, 2]");
  EXPECT_NE(error_of(lookup(0, wanted, to, &bounds)).find("offset 1 is less than the previous offset"),
            std::string::npos);
  EXPECT_NE(error_of(lookup(0, floats, to)).find("must be integers"), std::string::npos);
  EXPECT_NE(error_of(lookup(0, elsewhere, to)).find("on GPU 7, but the cache "), std::string::npos);
  EXPECT_NE(error_of(lookup(0, wanted, to, &elsewhere)).find("on the host, or both on the GPU"), std::string::npos);
  hctr_store_cache* none = nullptr;
  EXPECT_EQ(hctr_store_cache_create(store_, "n", HCTR_NO_GPU, &none), HCTR_USAGE);
  EXPECT_EQ(hctr_store_cache_create(store_, "m", 99, &none), HCTR_DEVICE);
  EXPECT_NE(std::string(hctr_error_message()).find("there is no GPU 99"), std::string::npos);
  EXPECT_EQ(hctr_store_cache_activate(cache_, "9"), HCTR_USAGE);
}

TEST_P(StoreCacheCapi, KeysAndVectorsMayBeOnTheGpu) {
  if (!GetParam().is_cuda()) GTEST_SKIP() << "needs memory of a GPU";
  const Stream stream(kGpu);
  const std::vector<int64_t> keys = {3, 11, 9}, offsets = {0, 2, 3};
  const auto sent = [&](const std::vector<int64_t>& numbers) {
    Buffer there(kGpu, numbers.size() * sizeof(int64_t));
    copy_bytes(stream.ref(), there.data(), numbers.data(), numbers.size() * sizeof(int64_t));
    stream.ref().synchronize();
    return there;
  };
  const Buffer keys_there = sent(keys), offsets_there = sent(offsets), vectors_there(kGpu, 6 * sizeof(float));
  const CacheArray wanted(keys_there.data(), HCTR_I64, {3}, 0), bounds(offsets_there.data(), HCTR_I64, {3}, 0),
      to(vectors_there.data(), HCTR_F32, {3, 2}, 0), narrow(keys_there.data(), HCTR_I32, {3}, 0);
  for (void* const order : {stream.ref().handle, static_cast<void*>(nullptr)}) {
    std::vector<float> have(6);
    hctr_store_lookup one = lookup(0, wanted, to);
    ASSERT_EQ(hctr_store_cache_look_up(cache_, &one, 1, order, nullptr), HCTR_OK) << hctr_error_message();
    copy_bytes(stream.ref(), have.data(), vectors_there.data(), have.size() * sizeof(float));
    stream.ref().synchronize();
    EXPECT_EQ(have, (std::vector<float>{3, -3, 0, 0, 9, -9}));
    one = lookup(0, wanted, to, &bounds);
    ASSERT_EQ(hctr_store_cache_look_up(cache_, &one, 1, order, nullptr), HCTR_OK) << hctr_error_message();
    copy_bytes(stream.ref(), have.data(), vectors_there.data(), 4 * sizeof(float));
    stream.ref().synchronize();
    EXPECT_EQ(std::vector<float>(have.begin(), have.begin() + 4), (std::vector<float>{3, -3, 9, -9}));
  }
  float host[6];
  const CacheArray to_host(host, HCTR_F32, {3, 2});
  const hctr_store_lookup mixed = lookup(0, wanted, to_host);
  ASSERT_EQ(hctr_store_cache_look_up(cache_, &mixed, 1, nullptr, nullptr), HCTR_OK) << hctr_error_message();
  EXPECT_EQ(std::vector<float>(host, host + 6), (std::vector<float>{3, -3, 0, 0, 9, -9}));
  EXPECT_NE(error_of(lookup(0, narrow, to)).find("on a GPU must have 64 bits"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
