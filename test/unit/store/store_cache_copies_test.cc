// Two GPUs, each with a cache. Both caches read one store, or two stores that share their rows in memory, like the
// stores of two processes. A cache never shows a part of an update, and has the update after it was applied and
// fetched.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "core/base/expect.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "hctr/store_cache.h"
#include "store/bound_version.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kCopiedKeys = 5000, kCopiedDim = 32;

std::vector<int64_t> all_copied_keys() {
  std::vector<int64_t> keys(kCopiedKeys);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i) * 977;
  return keys;
}

/// A table in which all elements of all rows are 0.
StoreModel copied_model() {
  return {.name = "m",
          .version = "1",
          .tables = {{.name = "t", .dim = kCopiedDim, .rows = [](const StoreRowSink& sink) {
                        sink({}, all_copied_keys(), std::vector<float>(kCopiedKeys * kCopiedDim, 0));
                      }}}};
}

/// Sets all elements of all rows to `number`.
void set_all_rows(Store& store, int64_t number) {
  const std::vector<int64_t> keys = all_copied_keys();
  const std::vector<float> rows(keys.size() * kCopiedDim, static_cast<float>(number));
  const StoreTableUpdate update{.table = "t", .keys = keys, .rows = rows.data()};
  ASSERT_TRUE(store.apply("m", number, {&update, 1}));
}

/// A cache with memory for a part of the rows.
class CopyOnDevice {
 public:
  CopyOnDevice(const Store& store, Device device)
      : device_(device), stream_(device), cache_(cache_on(store, "m", options(), &device)) {}

  /// Looks up random keys. Returns the number that all elements of all rows have; none if they differ.
  std::optional<float> ask(std::mt19937_64& random) {
    const CurrentDevice current(device_);
    std::vector<int64_t> keys(200);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % kCopiedKeys) * 977;
    const Buffer there(device_, keys.size() * kCopiedDim * sizeof(float));
    const StoreCache::Part part{.keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
    cache_.lookup({&part, 1}, stream_.ref().handle);
    std::vector<float> rows(keys.size() * kCopiedDim);
    copy_bytes(stream_.ref(), rows.data(), there.data(), there.bytes());
    stream_.ref().synchronize();
    for (const float element : rows)
      if (element != rows[0]) return std::nullopt;
    return rows[0];
  }
  StoreCacheStatistics statistics() const { return cache_.statistics(); }

 private:
  static StoreCacheOptions options() {
    return {.bytes = DeviceCache::bytes_of({.dim = kCopiedDim, .rows = 1200}, kRowsOfCacheChange), .admit_after = 1};
  }

  Device device_;
  Stream stream_;
  StoreCache cache_;
};

/// Looks up in both caches from two threads while `update` applies updates 1 to `updates`, and checks the caches after
/// each update.
void expect_whole_updates(std::array<CopyOnDevice, 2>& copies, int64_t updates,
                          const std::function<void(int64_t)>& update) {
  std::atomic<bool> ends{false};
  std::array<std::atomic<int>, 2> mixed{}, went_back{}, asked{};
  std::vector<std::jthread> asking;
  for (size_t c = 0; c < 2; ++c)
    asking.emplace_back([&, c] {
      std::mt19937_64 random(c);
      for (float before = 0; !ends; ++asked[c]) {
        const std::optional<float> found = copies[c].ask(random);
        mixed[c] += !found;
        went_back[c] += found && *found < before;
        before = found.value_or(before);
      }
    });
  std::mt19937_64 random(7);
  for (int64_t number = 1; number <= updates; ++number) {
    update(number);
    for (CopyOnDevice& copy : copies) EXPECT_EQ(copy.ask(random), static_cast<float>(number));
  }
  while (asked[0] < 20 || asked[1] < 20) std::this_thread::yield();
  ends = true;
  asking.clear();
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(mixed[c], 0) << "answers with rows of two updates";
    EXPECT_EQ(went_back[c], 0) << "answers older than one before";
    const StoreCacheStatistics counts = copies[c].statistics();
    EXPECT_GT(counts.misses, 0) << "not all rows fit";
    EXPECT_LT(counts.misses, counts.asked) << "some rows are cached";
    EXPECT_GT(counts.updated, 0);
  }
}

class StoreCacheCopies : public testing::TestWithParam<std::array<Device, 2>> {
 protected:
  void SetUp() override {
    if (GetParam()[1].is_cuda() && find_gpus().count < 2) GTEST_SKIP() << "needs two GPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(On, StoreCacheCopies,
                         testing::Values(std::array{kCpu, kCpu}, std::array{kGpu, Device{DeviceKind::cuda, 1}}),
                         [](const auto& row) { return row.param[0].is_cuda() ? "TwoGpus" : "TheCpu"; });

TEST_P(StoreCacheCopies, OfOneStoreHaveEachUpdateOnceItIsApplied) {
  Store store{StoreOptions{}};
  store.load(copied_model());
  std::array<CopyOnDevice, 2> copies{CopyOnDevice(store, GetParam()[0]), CopyOnDevice(store, GetParam()[1])};
  expect_whole_updates(copies, 12, [&](int64_t number) { set_all_rows(store, number); });
}

TEST_P(StoreCacheCopies, OfTwoStoresInSharedMemoryFollowTheStoreThatUpdates) {
  const StoreOptions options{.levels = {{.shared = cat("test-", ::getpid(), "-copies")}}};
  Store writer(options);
  writer.load(copied_model());
  writer.loaded();
  Store reader(options);
  ASSERT_FALSE(reader.writable());
  std::array<CopyOnDevice, 2> copies{CopyOnDevice(writer, GetParam()[0]), CopyOnDevice(reader, GetParam()[1])};
  expect_whole_updates(copies, 12, [&](int64_t number) {
    set_all_rows(writer, number);
    reader.refresh();
  });
}

}  // namespace
}  // namespace hctr::test
