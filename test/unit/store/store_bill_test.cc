#include "store/store_bill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/files.h"
#include "store/concurrent_rows.h"
#include "store/row_file.h"
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
