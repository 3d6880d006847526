#include "store/store_bill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/files.h"
#include "store/bound_version.h"
#include "store/concurrent_rows.h"
#include "store/row_file.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(StoreBill, BytesAreThoseThatLevelsSayOnceTheTableIsLoaded) {
  const TemporaryFolder folder;
  const int64_t rows = 5000, dim = 16;
  std::string bytes;
  const std::vector<float> row(static_cast<size_t>(dim), 1);
  for (int64_t key = 0; key < rows; ++key) {
    bytes.append(reinterpret_cast<const char*>(&key), sizeof key);
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  }
  write_text(folder / "t.model", bytes);
  StoreConfig config;
  config.folder = folder / "store";
  const StoreModel model{
      .name = "m", .version = "1", .tables = {{.name = "t", .dim = dim, .model_file = folder / "t.model"}}};
  const StoreBill bill = store_bill(config, {model});
  ASSERT_EQ(bill.tables.size(), 1u);
  EXPECT_EQ(bill.tables[0].rows, rows);
  EXPECT_FALSE(fs::exists(folder / "store")) << "nothing is loaded";
  Store store(config.options());
  store.load(model);
  const StoreTableStatistics loaded = store.tables()[0];
  EXPECT_NEAR(static_cast<double>(bill.tables[0].memory), static_cast<double>(loaded.levels[0].bytes),
              0.1 * static_cast<double>(loaded.levels[0].bytes));
  EXPECT_LE(loaded.levels[0].bytes, bill.tables[0].memory * 11 / 10);
  EXPECT_EQ(bill.tables[0].file, loaded.levels[1].bytes);
  EXPECT_NE(bill.text().find("m/1    t      5000   16"), std::string::npos) << bill.text();
  EXPECT_EQ(*bill.json().find("tables")->array()->at(0).find("rows")->integer(), rows);
}

// Three tables: one fits into the cache, the other two share a pool.
TEST(StoreBill, BytesOfTheGpuCacheAreThoseThatTheCacheTakes) {
  const TemporaryFolder folder;
  StoreModel model{.name = "m", .version = "1", .tables = {}};
  for (const auto& [name, dim, rows] : {std::tuple("a", 4, 3000), {"b", 8, 9000}, {"c", 8, 6000}}) {
    std::string bytes;
    const std::vector<float> row(static_cast<size_t>(dim), 1);
    for (int64_t key = 0; key < rows; ++key) {
      bytes.append(reinterpret_cast<const char*>(&key), sizeof key);
      bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
    }
    const fs::path file = folder / (std::string(name) + ".model");
    write_text(file, bytes);
    model.tables.push_back({.name = name, .dim = dim, .model_file = file});
  }
  const auto bill_of = [&](const StoreCacheSection& cache) {
    StoreConfig config;
    config.gpu_cache = cache;
    return store_bill(config, {model});
  };
  Store store({});
  store.load(model);
  const StoreCacheSection by_rows{.most_rows = 4000}, by_share{.share = 0.1},
      by_bytes{.bytes = 3 << 20, .row_type = StoreCacheOptions::Rows::int8};
  for (const StoreCacheSection& cache : {by_rows, by_share, by_bytes}) {
    StoreConfig config;
    config.gpu_cache = cache;
    const StoreBill bill = bill_of(cache);
    const StoreCache loaded = cache_on(store, "m", config.options().cache, &kCpu);
    EXPECT_EQ(bill.on_gpu(), loaded.statistics().bytes);
    for (const StoreBill::Table& table : bill.tables) EXPECT_GT(table.gpu, 0);
  }
  const StoreBill bill = bill_of(by_rows);
  EXPECT_GT(bill.tables[1].gpu, bill.tables[2].gpu);
  EXPECT_NE(bill.text().find("GPU cache"), std::string::npos);
  EXPECT_EQ(*bill.json().find("gpu_cache_bytes")->integer(), bill.on_gpu());
  EXPECT_NE(message_of(Kind::device, [&] { bill_of({.bytes = 1000}); }).find(" bytes or more"), std::string::npos);
  if (find_gpus().count > 0) return;
  EXPECT_NE(bill_of({}).text().find("not known"), std::string::npos) << "the size follows from the GPU";
  EXPECT_NE(bill_of({}).text().find("this machine has no GPU"), std::string::npos);
}

TEST(StoreBill, SharedMemoryIsCountedOnceForAllProcesses) {
  const TemporaryFolder folder;
  const int64_t rows = 3001, dim = 4;
  std::string bytes;
  for (int64_t key = 0; key < rows; ++key) {
    bytes.append(reinterpret_cast<const char*>(&key), sizeof key);
    bytes.append(16, '\0');
  }
  write_text(folder / "t.model", bytes);
  StoreConfig config;
  config.shared_memory = "test-bill-" + std::to_string(::getpid());
  const StoreModel model{
      .name = "m", .version = "1", .tables = {{.name = "t", .dim = dim, .model_file = folder / "t.model"}}};
  const StoreBill bill = store_bill(config, {model});
  Store store(config.options());
  store.load(model);
  EXPECT_EQ(bill.tables[0].memory, store.tables()[0].levels[0].bytes);
  EXPECT_NE(bill.text().find("counted once for all processes that use '" + config.shared_memory + "'"),
            std::string::npos);
  EXPECT_EQ(*bill.json().find("shared_memory")->string(), config.shared_memory);
}

TEST(StoreBill, MostRowsBoundTheMemoryAndRowsByCallAreNotKnown) {
  StoreConfig config;
  config.folder = "nowhere";
  config.most_rows = 10;
  const StoreModel model{
      .name = "m", .version = "1", .tables = {{.name = "t", .dim = 4, .rows = [](const StoreRowSink&) { FAIL(); }}}};
  const StoreBill bill = store_bill(config, {model});
  EXPECT_EQ(bill.tables[0].rows, -1);
  EXPECT_NE(bill.text().find("not known"), std::string::npos);
  EXPECT_LT(ConcurrentRows::expected_bytes(4, 10), ConcurrentRows::expected_bytes(4, 100'000));
}

}  // namespace
}  // namespace hctr::test
