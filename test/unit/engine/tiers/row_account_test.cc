// Computes the memory that a row store takes from its budgets, and the number of rows that fit. These tests check
// arithmetic, and need no table.
#include "engine/tiers/row_account.h"

#include <gtest/gtest.h>

#include "support/devices.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kMost = 1 << 16, kPlenty = int64_t{1} << 40;

TableSpec account_spec() {
  TableSpec spec;
  spec.name = "account";
  spec.dim = 16;
  spec.slots = spec.samples = 1;
  return spec;
}

RowMemoryLimits account_limits(int64_t device, int64_t host) {
  return {.device = device, .host = host, .device_setting = "\"gpu\"", .host_setting = "\"host\""};
}

/// Arrays and an index without a table, and their account.
class RowAccounts {
 public:
  explicit RowAccounts(const RowMemoryLimits& limits, bool rows_move = false)
      : memory(kCpu, limits),
        arrays(runtime_of(kCpu), memory, account_spec(), !limits.disk_folder.empty(), kMost),
        index(arrays, kMost, 0),
        account(memory, arrays, index, {.rows_move = rows_move}) {}
  /// Allocates memory for `rows` rows as computed by the account.
  void grow(int64_t rows) {
    const int64_t on_device = account.rows_on_device(rows);
    arrays.grow_besides_numbers(rows);
    arrays.grow_numbers(rows, on_device);
    arrays.set_capacity(rows);
    account.count();
  }
  /// Device bytes of the value columns for `rows` rows.
  int64_t number_bytes(int64_t rows) const {
    int64_t bytes = 0;
    for (const RowColumn& column : arrays.columns())
      if (column.numbers) bytes += static_cast<int64_t>(column.granules_to(rows));
    return bytes;
  }

  RowMemory memory;
  RowArrays arrays;
  RowIndex index;
  RowAccount account;
};

/// Returns the number after "must be at least " in the error of `body`; 0 if there is no error.
template <class Body>
int64_t least_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = error.what();
    const size_t at = message.find("must be at least ");
    EXPECT_NE(at, message.npos) << message;
    return at == message.npos ? -1 : std::stoll(message.substr(at + 17));
  }
  return 0;
}

TEST(RowAccount, WithoutABudgetAllNumbersAreOnTheDevice) {
  const RowAccounts all{RowMemoryLimits{}};
  EXPECT_EQ(all.account.rows_on_device(kMost), kMost);
  EXPECT_LE(all.account.missing_on_device(kMost, false), 0);
  EXPECT_EQ(all.account.most_to_host(), 0);
}

TEST(RowAccount, AStatedDeviceGetsTheRowsThatFit) {
  RowAccounts tiers(account_limits(int64_t{3} << 20, kPlenty));
  const int64_t fits = tiers.account.rows_on_device(kMost);
  ASSERT_GT(fits, 0);
  ASSERT_LT(fits, kMost);
  // One more row needs another granule, which does not fit on the device.
  EXPECT_GT(tiers.number_bytes(fits + 1), tiers.number_bytes(fits));
  tiers.grow(kMost);
  EXPECT_EQ(tiers.account.device_bytes().numbers, tiers.number_bytes(fits));
  EXPECT_GE(tiers.memory.device_room(), 0);
  EXPECT_LT(tiers.memory.device_room(), tiers.number_bytes(fits + 1) - tiers.number_bytes(fits));
  EXPECT_EQ(tiers.account.rows_on_device(kMost), kMost) << "rows that have memory stay where they are";
}

TEST(RowAccount, WhatItCountsIsGivenBack) {
  RowMemory memory(kCpu, account_limits(int64_t{64} << 20, kPlenty));
  {
    const RowArrays arrays(runtime_of(kCpu), memory, account_spec(), false, kMost);
    const RowIndex index(arrays, kMost, 0);
    RowAccount account(memory, arrays, index, {.lookup_bytes = 1000});
    account.count();
    EXPECT_GT(memory.device_bytes(), 0);
    EXPECT_EQ(memory.host_bytes(), 1000);
    account.count();
    EXPECT_EQ(memory.host_bytes(), 1000) << "counted once";
  }
  EXPECT_EQ(memory.device_bytes(), 0);
  EXPECT_EQ(memory.host_bytes(), 0);
}

TEST(RowAccount, NamesTheLeastOfTheDevice) {
  const auto least = [](int64_t device) {
    const RowAccounts tiers(account_limits(device, kPlenty));
    const int64_t missing = tiers.account.missing_on_device(kMost, false);
    return least_of([&] {
      if (missing > 0) tiers.account.throw_missing_on_device(kMost, missing, 0);
    });
  };
  const int64_t enough = least(1);
  EXPECT_GT(enough, 1);
  EXPECT_EQ(least(enough - 1), enough);
  EXPECT_EQ(least(enough), 0);
}

/// If the allocation of an array failed, other arrays may already have memory for more rows than the table. A smaller
/// number of rows then needs 0 bytes. A negative result would be mistaken for a shortage.
TEST(RowAccount, FewerRowsThanHaveMemoryAlreadyLackNone) {
  for (const RowMemoryLimits& limits :
       {RowMemoryLimits{}, account_limits(kPlenty, 0), account_limits(kPlenty, kPlenty)}) {
    RowAccounts refused(limits);
    refused.arrays.grow_numbers(kMost, kMost);
    refused.account.count();
    EXPECT_LE(refused.account.missing_on_device(1000, false), 0);
    EXPECT_EQ(refused.account.rows_on_device(1000), 1000);
  }
}

TEST(RowAccount, NamesTheLeastOfTheHost) {
  const auto least = [](int64_t host) {
    const RowAccounts tiers(account_limits(int64_t{3} << 20, host));
    return least_of(
        [&] { tiers.account.check_host_room(kMost, tiers.account.rows_on_device(kMost), /*moving=*/false); });
  };
  const int64_t enough = least(1);
  EXPECT_GT(enough, 1);
  EXPECT_EQ(least(enough - 1), enough);
  EXPECT_EQ(least(enough), 0);
}

TEST(RowAccount, OneMemoryOfACpuIsTheHosts) {
  RowAccounts one(account_limits(0, kPlenty));
  one.grow(1000);
  EXPECT_EQ(one.account.device_bytes().besides, 0);
  EXPECT_EQ(one.account.device_bytes().numbers, 0);
  EXPECT_GT(one.memory.host_bytes(), one.number_bytes(1000));
  EXPECT_EQ(one.account.most_to_host(), 0) << "rows have nowhere to move to";
}

TEST(RowAccount, RowsLeaveTheDeviceForAsMuchAsIsWanted) {
  RowAccounts tiers(account_limits(int64_t{64} << 20, kPlenty), /*rows_move=*/true);
  tiers.grow(kMost);
  const int64_t all = tiers.account.most_to_host(), uses = tiers.account.bytes_to_start(kMost);
  EXPECT_TRUE(tiers.account.starts_to_move());
  EXPECT_EQ(all, tiers.account.device_bytes().numbers - uses) << "uses take their part of what is freed";
  const auto staying = tiers.account.rows_to_stay(all / 2);
  ASSERT_TRUE(staying.has_value());
  const int64_t before = tiers.account.device_bytes().numbers;
  tiers.arrays.move_to_host(*staying);
  const int64_t freed = before - tiers.account.device_bytes().numbers;
  EXPECT_GE(freed, all / 2 + uses);
  const int64_t piece = tiers.number_bytes(*staying + 1) - tiers.number_bytes(*staying);
  EXPECT_GT(piece, 0);
  EXPECT_LT(freed, all / 2 + uses + piece) << "with one row more too little would leave";
  tiers.account.set_uses(uses);
  EXPECT_FALSE(tiers.account.starts_to_move());
  EXPECT_EQ(tiers.account.bytes_to_start(kMost), 0);
}

TEST(RowAccount, WithADiskAPartOfTheHostIsKeptForItsMap) {
  const TemporaryFolder folder;
  RowMemoryLimits limits = account_limits(int64_t{3} << 20, int64_t{4} << 20);
  limits.disk_folder = folder.path().string();
  limits.disk = int64_t{1} << 34;
  RowAccounts tiers(limits);
  const int64_t without = tiers.account.rows_in_budget(kMost);
  const RecordBlocks records(kCpu, 64, 10);
  DiskRows disk(tiers.memory, "account", 64);
  tiers.account.set_disk(disk, records);
  EXPECT_EQ(tiers.account.kept_for_map() + disk.map_bytes(), limits.host / 4);
  const int64_t fits = tiers.account.rows_in_budget(kMost);
  EXPECT_GT(fits, 0);
  EXPECT_LT(fits, without);
  EXPECT_EQ(least_of([&] { tiers.account.check_host_room(fits, tiers.account.rows_on_device(fits), false); }), 0);
  EXPECT_GT(least_of([&] { tiers.account.check_host_room(kMost, tiers.account.rows_on_device(kMost), false); }),
            limits.host);
}

}  // namespace
}  // namespace hctr::test
