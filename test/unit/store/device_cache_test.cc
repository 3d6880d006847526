// A device cache in front of a row source: every vector equals the source's rows, even if rows are inserted, evicted or
// changed concurrently.
#include "store/device_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "core/device/copy_bytes.h"
#include "ops/cache/row_cache_rules.h"
#include "support/devices.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

constexpr int32_t kSmall = 6, kWide = 70;

/// A source of changing tables. Each key has a number, which updates change. The elements of a row depend on its key
/// and the key's number.
class ChangingRows {
 public:
  explicit ChangingRows(int64_t keys) : numbers_(3, std::vector<int>(static_cast<size_t>(keys), 1)) {}
  static int32_t dim(int32_t space) { return space == 1 ? kWide : kSmall; }
  /// A key has no row if it is outside the table, or if its current number is 0.
  bool has(int32_t space, int64_t key) const {
    return key >= 0 && key < static_cast<int64_t>(numbers_[0].size()) && number(space, key) > 0;
  }
  int number(int32_t space, int64_t key) const {
    return numbers_[static_cast<size_t>(space)][static_cast<size_t>(key)];
  }
  static void row(int32_t space, int64_t key, int number, float* to) {
    for (int32_t i = 0; i < dim(space); ++i)
      to[i] = static_cast<float>(number * 100000 + key) + 0.25f * static_cast<float>(i % 3);
  }
  CacheSource source() {
    return {.rows =
                [this](int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found) {
                  const std::lock_guard lock(mutex_);
                  for (size_t i = 0; i < keys.size(); ++i) {
                    found[i] = has(space, keys[i]);
                    if (found[i])
                      row(space, keys[i], number(space, keys[i]), rows + i * static_cast<size_t>(dim(space)));
                  }
                },
            .updates = [this] { return updates_.load(); }};
  }
  /// Sets the number of all keys; keys selected by `goes` lose their rows.
  uint64_t set_all(int number, const std::function<bool(int64_t)>& goes = [](int64_t) { return false; }) {
    const std::lock_guard lock(mutex_);
    // An odd count means that a change is in progress. No cache ever has an odd count.
    ++updates_;
    for (auto& table : numbers_)
      for (size_t key = 0; key < table.size(); ++key) table[key] = goes(static_cast<int64_t>(key)) ? 0 : number;
    return ++updates_;
  }
  int64_t keys() const { return static_cast<int64_t>(numbers_[0].size()); }

 private:
  std::mutex mutex_;
  std::atomic<uint64_t> updates_{0};
  std::vector<std::vector<int>> numbers_;
};

/// The updates that make a cache equal to the source.
struct AllChanges {
  explicit AllChanges(const ChangingRows& source) {
    for (int32_t space = 0; space < 3; ++space) {
      keys.emplace_back(), rows.emplace_back(), removed.emplace_back();
      for (int64_t key = 0; key < source.keys(); ++key) {
        if (!source.has(space, key)) {
          removed.back().push_back(key);
          continue;
        }
        keys.back().push_back(key);
        rows.back().resize(keys.back().size() * static_cast<size_t>(ChangingRows::dim(space)));
        ChangingRows::row(space, key, source.number(space, key),
                          rows.back().data() + rows.back().size() - static_cast<size_t>(ChangingRows::dim(space)));
      }
    }
    for (int32_t space = 0; space < 3; ++space) {
      const auto s = static_cast<size_t>(space);
      updates.push_back({space, keys[s], rows[s].data(), removed[s]});
    }
  }
  std::vector<std::vector<int64_t>> keys, removed;
  std::vector<std::vector<float>> rows;
  std::vector<DeviceCache::Update> updates;
};

class DeviceCacheTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
  /// Tables 0 and 1 are cached partially, table 2 completely.
  static void add_tables(DeviceCache& cache, int64_t rows, int64_t whole_rows) {
    const int32_t small = cache.add_pool({.dim = kSmall, .rows = rows}),
                  wide = cache.add_pool({.dim = kWide, .rows = rows});
    const int32_t whole = cache.add_pool({.dim = kSmall, .rows = whole_rows, .whole = true});
    for (const int32_t pool : {small, wide, whole}) cache.add_space(pool, 0.5f);
  }
};
INSTANTIATE_TEST_SUITE_P(Device, DeviceCacheTest, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

/// Looks up random keys of all tables. Expects that all returned rows have the same number, and returns this number.
int look_up(DeviceCache& cache, const Stream& stream, ChangingRows& source, std::mt19937_64& random, CacheMisses misses,
            CacheResult& result) {
  std::vector<std::vector<int64_t>> keys(4), offsets(4);
  std::vector<Buffer> vectors;
  std::vector<CacheRequest> requests;
  for (size_t p = 0; p < 4; ++p) {
    const auto space = static_cast<int32_t>(p % 3);
    for (auto n = random() % 300; n > 0; --n)  // power law: few keys make up half of the lookups
      keys[p].push_back(static_cast<int64_t>(random() % 2 == 0 ? random() % 20 : random() % (source.keys() + 9)));
    if (p >= 2) {
      offsets[p] = {0};
      while (offsets[p].back() < static_cast<int64_t>(keys[p].size()))
        offsets[p].push_back(std::min<int64_t>(static_cast<int64_t>(keys[p].size()), offsets[p].back() + random() % 7));
    }
    const size_t count = offsets[p].empty() ? keys[p].size() : offsets[p].size() - 1;
    vectors.emplace_back(stream.ref().device,
                         std::max<size_t>(1, count * static_cast<size_t>(ChangingRows::dim(space))) * sizeof(float));
    requests.push_back({.space = space,
                        .keys = keys[p],
                        .offsets = offsets[p],
                        .combiner = p == 2 ? ops::Combiner::sum : ops::Combiner::mean,
                        .vectors = reinterpret_cast<float*>(vectors.back().data())});
  }
  std::vector<Buffer> there;
  if (random() % 2 == 0)
    for (CacheRequest& request : requests) {
      const auto send = [&](std::span<const int64_t>& numbers) {
        if (numbers.empty()) return;
        there.emplace_back(stream.ref().device, numbers.size_bytes());
        copy_bytes(stream.ref(), there.back().data(), numbers.data(), numbers.size_bytes());
        numbers = {reinterpret_cast<const int64_t*>(there.back().data()), numbers.size()};
      };
      send(request.keys), send(request.offsets);
      request.keys_there = true;
    }
  cache.lookup(requests, stream.ref(), misses, &result);
  int number = 0;
  std::vector<float> row(kWide);
  for (size_t p = 0; p < 4; ++p) {
    const auto space = static_cast<int32_t>(p % 3);
    const auto dim = static_cast<size_t>(ChangingRows::dim(space));
    const size_t count = offsets[p].empty() ? keys[p].size() : offsets[p].size() - 1;
    std::vector<float> have(count * dim);
    copy_bytes(stream.ref(), have.data(), vectors[p].data(), have.size() * sizeof(float));
    stream.ref().synchronize();
    for (size_t v = 0; v < count; ++v) {
      const size_t begin = offsets[p].empty() ? v : static_cast<size_t>(offsets[p][v]);
      const size_t end = offsets[p].empty() ? v + 1 : static_cast<size_t>(offsets[p][v + 1]);
      std::vector<float> expected(dim);
      for (size_t k = begin; k < end; ++k) {
        const bool in_range = keys[p][k] < source.keys();
        if (in_range && number == 0 && end - begin == 1) number = static_cast<int>(have[v * dim]) / 100000;
        if (in_range && number > 0)
          ChangingRows::row(space, keys[p][k], number, row.data());
        else
          std::fill(row.begin(), row.end(), 0.5f);
        for (size_t i = 0; i < dim; ++i) expected[i] = offsets[p].empty() ? row[i] : expected[i] + row[i];
      }
      if (!offsets[p].empty()) {
        const float weight = ops::weight_of_bag(requests[p].combiner, static_cast<int64_t>(end - begin));
        for (float& element : expected) element *= weight;
      }
      for (size_t i = 0; i < dim; ++i)
        EXPECT_EQ(have[v * dim + i], expected[i]) << "part " << p << " vector " << v << " element " << i;
    }
  }
  return number;
}

TEST_P(DeviceCacheTest, VectorsAreOfOneUpdateWhileKeysComeAndGo) {
  ChangingRows source(3000);
  DeviceCache cache({.device = GetParam(), .rows_of_change = 150, .admit_after = 1}, source.source());
  add_tables(cache, 400, 3000);
  cache.update(AllChanges(source).updates, 0);  // inserts keys only into the complete table
  std::atomic<int> look_ups{0};
  std::thread other([&] {
    for (int number = 2; number < 12; ++number) {
      // Waits until lookups have inserted keys.
      while (look_ups < 12 * number) std::this_thread::yield();
      const uint64_t update = source.set_all(number);
      cache.update(AllChanges(source).updates, update);
    }
  });
  const Stream stream(GetParam());
  std::mt19937_64 random(5);
  int last = 1;
  for (int i = 0; (i < 150 || last < 11) && i < 100000 && !HasFailure(); ++i) {
    CacheResult result;
    const int number = look_up(cache, stream, source, random, CacheMisses::answered, result);
    ++look_ups;
    if (number == 0) continue;
    EXPECT_GE(number, last);
    last = number;
  }
  EXPECT_EQ(last, 11);
  look_ups = 1 << 20;
  other.join();
  cache.settle();
  const CacheStatistics statistics = cache.statistics();
  EXPECT_GT(statistics.admitted, 0);
  EXPECT_GT(statistics.evicted, 0);
  EXPECT_GT(statistics.misses, 0);
  EXPECT_LT(statistics.misses, statistics.asked);
}

/// Expects that all rows equal the rows of the source.
void check_all_rows(DeviceCache& cache, const Stream& stream, const ChangingRows& source) {
  std::vector<int64_t> keys(static_cast<size_t>(source.keys()) + 5);
  std::iota(keys.begin(), keys.end(), -2);
  for (int32_t space = 0; space < 3; ++space) {
    const auto dim = static_cast<size_t>(ChangingRows::dim(space));
    const Buffer there(stream.ref().device, keys.size() * dim * sizeof(float));
    const CacheRequest request{.space = space, .keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
    cache.lookup({&request, 1}, stream.ref(), CacheMisses::answered);
    std::vector<float> have(keys.size() * dim), row(dim);
    copy_bytes(stream.ref(), have.data(), there.data(), there.bytes());
    stream.ref().synchronize();
    for (size_t i = 0; i < keys.size(); ++i) {
      std::fill(row.begin(), row.end(), 0.5f);
      if (source.has(space, keys[i])) ChangingRows::row(space, keys[i], source.number(space, keys[i]), row.data());
      ASSERT_TRUE(std::equal(row.begin(), row.end(), have.begin() + static_cast<ptrdiff_t>(i * dim)))
          << "space " << space << " key " << keys[i] << " has " << have[i * dim] << ", expected " << row[0];
    }
  }
}

// In the first case, the pool's free rows are too few for all rows of an update. In the second case they are enough.
TEST_P(DeviceCacheTest, UpdatesOfCompleteTablesAreSeenAsAWhole) {
  constexpr int64_t kKeys = 1000, kSpare = 150;
  for (const int64_t rows : {2 * kKeys + 600, 5 * kKeys}) {
    ChangingRows source(kKeys);
    DeviceCache cache({.device = GetParam(), .rows_of_change = kSpare}, source.source());
    const int32_t small = cache.add_pool({.dim = kSmall, .rows = rows, .whole = true}),
                  wide = cache.add_pool({.dim = kWide, .rows = 2 * kKeys, .whole = true});
    for (const int32_t pool : {small, wide, small}) cache.add_space(pool, 0.5f);
    cache.update(AllChanges(source).updates, 0);
    std::atomic<int> look_ups{0};
    std::thread other([&] {
      for (int number = 2; number < 12; ++number) {
        while (look_ups < 12 * number) std::this_thread::yield();
        const uint64_t update = source.set_all(number);
        cache.update(AllChanges(source).updates, update);
      }
    });
    const Stream stream(GetParam());
    std::mt19937_64 random(5);
    int last = 1;
    for (int i = 0; (i < 150 || last < 11) && i < 100000 && !HasFailure(); ++i) {
      CacheResult result;
      const int number = look_up(cache, stream, source, random, CacheMisses::answered, result);
      ++look_ups;
      if (number == 0) continue;
      EXPECT_GE(number, last);
      last = number;
    }
    EXPECT_EQ(last, 11);
    look_ups = 1 << 20;
    other.join();
    for (int number = 12; number < 20 && !HasFailure(); ++number) {
      const uint64_t update = source.set_all(number, [&](int64_t key) { return key % 7 == number % 7; });
      cache.update(AllChanges(source).updates, update);
      check_all_rows(cache, stream, source);
    }
    EXPECT_TRUE(cache.whole(small));
    EXPECT_TRUE(cache.whole(wide));
    EXPECT_EQ(cache.statistics().admitted, 0);
  }
}

TEST_P(DeviceCacheTest, KeysThatWereMissedComeInAndAreFoundThen) {
  ChangingRows source(100);
  DeviceCache cache({.device = GetParam(), .admit_after = 2}, source.source());
  add_tables(cache, 200, 100);
  const Stream stream(GetParam());
  const Buffer there(GetParam(), 3 * kSmall * sizeof(float));
  const std::vector<int64_t> keys = {3, 500, 3};  // key 500 has no row
  const auto ask = [&](CacheMisses misses) {
    CacheResult result;
    const CacheRequest request{.keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
    cache.lookup({&request, 1}, stream.ref(), misses, &result);
    std::vector<float> have(3 * kSmall);
    copy_bytes(stream.ref(), have.data(), there.data(), have.size() * sizeof(float));
    stream.ref().synchronize();
    return std::tuple(result.misses, result.defaults, have[0], have[kSmall], have[2 * kSmall]);
  };
  const float row = 100003;
  EXPECT_EQ(ask(CacheMisses::defaulted), std::tuple(3, 3, 0.5f, 0.5f, 0.5f));
  cache.settle();
  EXPECT_EQ(ask(CacheMisses::answered), std::tuple(3, 1, row, 0.5f, row)) << "one miss is not enough";
  cache.settle();
  for (const CacheMisses misses : {CacheMisses::answered, CacheMisses::defaulted})
    EXPECT_EQ(ask(misses), std::tuple(0, 1, row, 0.5f, row));
  EXPECT_EQ(cache.keys_by_use(0), std::vector<int64_t>{3});
  cache.forget(0);
  EXPECT_EQ(std::get<0>(ask(CacheMisses::defaulted)), 2);  // the cache still knows that key 500 has no row
}

TEST_P(DeviceCacheTest, ALookUpThatBypassesTheCacheAddsNoKeysToAWholePool) {
  constexpr int64_t kRows = 50, kSpare = 20;
  ChangingRows source(kRows);
  DeviceCache cache({.device = GetParam(), .rows_of_change = kSpare, .admit_after = 1, .wait_ms = 0}, source.source());
  add_tables(cache, 64, kRows);
  cache.update(AllChanges(source).updates, 0);
  const uint64_t update = source.set_all(2);  // until update(), the cache has older rows than the source
  std::vector<int64_t> unknown(kSpare);
  std::iota(unknown.begin(), unknown.end(), kRows);
  const std::vector<int64_t> missed = {1};
  const Stream stream(GetParam());
  const Buffer there(GetParam(), (kSpare + 1) * kSmall * sizeof(float));
  auto* const vectors = reinterpret_cast<float*>(there.data());
  const std::vector<CacheRequest> requests = {{.space = 0, .keys = missed, .vectors = vectors},
                                              {.space = 2, .keys = unknown, .vectors = vectors + kSmall}};
  cache.lookup(requests, stream.ref(), CacheMisses::answered);
  EXPECT_EQ(cache.statistics().bypassed, 1);
  cache.settle();
  cache.update(AllChanges(source).updates, update);
  EXPECT_TRUE(cache.whole(2));
}

TEST_P(DeviceCacheTest, ALookUpThatBypassesTheCacheIsOfOneUpdate) {
  ChangingRows rows(10);
  CacheSource source = rows.source();
  int calls = 0;
  source.rows = [&, answers = source.rows](int32_t space, std::span<const int64_t> keys, float* to, uint8_t* found) {
    answers(space, keys, to, found);
    if (++calls == 1) rows.set_all(3);  // the source changes between its answers for two parts
  };
  DeviceCache cache({.device = GetParam(), .wait_ms = 0}, source);
  add_tables(cache, 64, 10);
  rows.set_all(2);  // the cache has older rows than the source
  const std::vector<int64_t> keys = {1};
  const Stream stream(GetParam());
  const Buffer there(GetParam(), (kSmall + kWide) * sizeof(float));
  auto* const vectors = reinterpret_cast<float*>(there.data());
  const std::vector<CacheRequest> requests = {{.space = 0, .keys = keys, .vectors = vectors},
                                              {.space = 1, .keys = keys, .vectors = vectors + kSmall}};
  cache.lookup(requests, stream.ref(), CacheMisses::answered);
  std::vector<float> have(kSmall + kWide);
  copy_bytes(stream.ref(), have.data(), there.data(), have.size() * sizeof(float));
  stream.ref().synchronize();
  EXPECT_EQ(have[0], 300001);
  EXPECT_EQ(have[kSmall], 300001);
}

TEST_P(DeviceCacheTest, MissedAndCachedRowsAreRoundedAlike) {
  constexpr int32_t kDim = 37;
  const CacheSource source{.rows = [](int32_t, std::span<const int64_t> keys, float* rows, uint8_t* found) {
    for (size_t i = 0; i < keys.size() * kDim; ++i)
      rows[i] = std::sin(static_cast<float>(keys[i / kDim] * 100 + static_cast<int64_t>(i % kDim))) *
                static_cast<float>(keys[i / kDim]);
    std::fill_n(found, keys.size(), uint8_t{1});
  }};
  const Stream stream(GetParam());
  const std::vector<int64_t> keys = {0, 1, 7, 40000}, offsets = {0, 2, 4};
  for (const auto type : {ops::CachedType::f32, ops::CachedType::f16, ops::CachedType::bf16, ops::CachedType::fp8,
                          ops::CachedType::int8}) {
    DeviceCache cache({.device = GetParam(), .admit_after = 1}, source);
    cache.add_space(cache.add_pool({.dim = kDim, .type = type, .rows = 100}), 0);
    const Buffer there(GetParam(), 6 * kDim * sizeof(float));
    auto* const vectors = reinterpret_cast<float*>(there.data());
    const std::vector<CacheRequest> requests = {{.keys = keys, .vectors = vectors},
                                                {.keys = keys, .offsets = offsets, .vectors = vectors + 4 * kDim}};
    std::vector<float> have[2];
    for (std::vector<float>& vector : have) {
      CacheResult result;
      cache.lookup(requests, stream.ref(), CacheMisses::answered, &result);
      EXPECT_EQ(result.misses, &vector == have ? 8 : 0);
      vector.resize(6 * kDim);
      copy_bytes(stream.ref(), vector.data(), there.data(), vector.size() * sizeof(float));
      stream.ref().synchronize();
      cache.settle();
    }
    EXPECT_EQ(have[0], have[1]) << static_cast<int>(type);
    std::vector<float> exact(4 * kDim);
    std::vector<uint8_t> found(4);
    source.rows(0, keys, exact.data(), found.data());
    EXPECT_EQ(std::equal(exact.begin(), exact.end(), have[0].begin()), type == ops::CachedType::f32);
  }
}

TEST_P(DeviceCacheTest, ATableThatOutgrowsItsPoolIsCachedPartiallyFromThenOn) {
  ChangingRows source(1000);
  DeviceCache cache({.device = GetParam(), .rows_of_change = 100, .admit_after = 1}, source.source());
  add_tables(cache, 200, 600);
  EXPECT_TRUE(cache.whole(2));
  const AllChanges all(source);
  // first changes 400 of 1000 keys, then all keys
  std::vector<DeviceCache::Update> some = all.updates;
  some[2].keys = some[2].keys.first(400);
  cache.update(some, 0);
  EXPECT_TRUE(cache.whole(2));
  cache.update(all.updates, 0);
  EXPECT_FALSE(cache.whole(2));
  const Stream stream(GetParam());
  std::mt19937_64 random(7);
  for (int number = 1; number < 6; ++number) {
    if (number > 1) {
      const uint64_t update = source.set_all(number);
      cache.update(AllChanges(source).updates, update);
    }
    for (int i = 0; i < 20 && !HasFailure(); ++i) {
      CacheResult result;
      const int found = look_up(cache, stream, source, random, CacheMisses::answered, result);
      EXPECT_TRUE(found == 0 || found == number) << found;
    }
    cache.settle();
  }
  const std::vector<int64_t> keys = cache.keys_by_use(2);
  EXPECT_GT(keys.size(), 100u);
  EXPECT_EQ(std::set<int64_t>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_EQ(cache.statistics().bypassed, 0);
}

TEST_P(DeviceCacheTest, ACacheThatIsBehindItsSourceForTooLongIsPassedBy) {
  ChangingRows source(50);
  DeviceCache cache({.device = GetParam(), .wait_ms = 5}, source.source());
  add_tables(cache, 50, 50);
  cache.update(AllChanges(source).updates, 0);
  const uint64_t update = source.set_all(2, [](int64_t key) { return key % 2 == 1; });
  const Stream stream(GetParam());
  const Buffer there(GetParam(), 2 * kSmall * sizeof(float));
  const std::vector<int64_t> keys = {4, 5};
  const auto ask = [&](int32_t space) {
    CacheResult result;
    const CacheRequest request{.space = space, .keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
    cache.lookup({&request, 1}, stream.ref(), CacheMisses::answered, &result);
    std::vector<float> have(2 * kSmall);
    copy_bytes(stream.ref(), have.data(), there.data(), have.size() * sizeof(float));
    stream.ref().synchronize();
    return std::pair(have[0], have[kSmall]);
  };
  EXPECT_EQ(ask(2), std::pair(100004.0f, 100005.0f));  // both rows are those of the previous update; no key was missing
  EXPECT_EQ(ask(0), std::pair(200004.0f, 0.5f));
  EXPECT_EQ(cache.statistics().bypassed, 1);
  cache.update(AllChanges(source).updates, update);
  EXPECT_EQ(ask(2), std::pair(200004.0f, 0.5f));
  EXPECT_EQ(ask(0), std::pair(200004.0f, 0.5f));
  EXPECT_EQ(cache.statistics().bypassed, 1);
}

// So many keys are missing that several threads read their rows, and several kernels write the rows.
TEST_P(DeviceCacheTest, ManyMissesOfSeveralPartsGetTheRowsOfTheSource) {
  constexpr int64_t kRows = 30'000, kKeys = 21'000, kBag = 7;
  ChangingRows rows(kRows);
  CacheSource source = rows.source();
  std::atomic<bool> fails{false};
  source.rows = [&, answers = source.rows](int32_t space, std::span<const int64_t> keys, float* to, uint8_t* found) {
    EXPECT_EQ(std::set<int64_t>(keys.begin(), keys.end()).size(), keys.size()) << "keys are distinct";
    if (fails && space == 1 && std::ranges::find(keys, 777) != keys.end()) throw Error(Kind::io, "no answer");
    answers(space, keys, to, found);
  };
  DeviceCache cache({.device = GetParam(), .rows_of_change = 500, .admit_after = 1}, source);
  add_tables(cache, 1000, 100);
  std::mt19937_64 random(3);
  std::vector<int64_t> keys, bags, offsets;
  for (int64_t i = 0; i < kKeys; ++i) {
    keys.push_back(static_cast<int64_t>(random() % (kRows + 50)));
    bags.push_back(static_cast<int64_t>(random() % (kRows + 50)));
  }
  bags[kKeys - 3] = 777;
  for (int64_t at = 0; at <= kKeys; at += kBag) offsets.push_back(at);
  const Stream stream(GetParam());
  const Buffer there(GetParam(), (kKeys * kSmall + kKeys / kBag * kWide) * sizeof(float));
  auto* const vectors = reinterpret_cast<float*>(there.data());
  const std::vector<CacheRequest> requests = {
      {.space = 0, .keys = keys, .vectors = vectors},
      {.space = 1, .keys = bags, .offsets = offsets, .vectors = vectors + kKeys * kSmall}};
  for (int round = 0; round < 3; ++round) {
    CacheResult result;
    if (round == 1) {  // the source fails for key 777, which is near the end of the request
      fails = true;
      EXPECT_NE(
          message_of(Kind::io, [&] { cache.lookup(requests, stream.ref(), CacheMisses::answered); }).find("no answer"),
          std::string::npos);
      fails = false;
      cache.settle();
      cache.update(AllChanges(rows).updates, 0);  // must not wait for the failed look-up
    }
    cache.lookup(requests, stream.ref(), CacheMisses::answered, &result);
    EXPECT_GT(result.misses, 30'000);
    std::vector<float> have(there.bytes() / sizeof(float)), row(kWide);
    copy_bytes(stream.ref(), have.data(), there.data(), there.bytes());
    stream.ref().synchronize();
    int64_t defaults = 0;
    const auto fill_row = [&](int32_t space, int64_t key) {
      if (rows.has(space, key)) return ChangingRows::row(space, key, 1, row.data());
      std::fill(row.begin(), row.end(), 0.5f);
      ++defaults;
    };
    for (size_t i = 0; i < kKeys; ++i) {
      fill_row(0, keys[i]);
      ASSERT_TRUE(std::equal(row.begin(), row.begin() + kSmall, have.begin() + static_cast<ptrdiff_t>(i * kSmall)))
          << i;
    }
    for (size_t b = 0; b < kKeys / kBag; ++b) {
      std::vector<float> sum(kWide);
      for (size_t i = b * kBag; i < (b + 1) * kBag; ++i) {
        fill_row(1, bags[i]);
        for (size_t d = 0; d < kWide; ++d) sum[d] += row[d];
      }
      ASSERT_TRUE(std::equal(sum.begin(), sum.end(), have.begin() + static_cast<ptrdiff_t>(kKeys * kSmall + b * kWide)))
          << b;
    }
    EXPECT_EQ(result.defaults, defaults);
  }
}

TEST_P(DeviceCacheTest, AKeyThatAnUpdateRemovesAndChangesKeepsTheNewRow) {
  ChangingRows rows(10);
  DeviceCache cache({.device = GetParam()}, rows.source());
  add_tables(cache, 50, 10);
  cache.update(AllChanges(rows).updates, 0);
  const uint64_t number = rows.set_all(2);
  AllChanges changes(rows);
  changes.removed[2] = {3, 4};
  changes.updates[2].removed = changes.removed[2];
  cache.update(changes.updates, number);
  const Stream stream(GetParam());
  const Buffer there(GetParam(), kSmall * sizeof(float));
  const std::vector<int64_t> keys = {3};
  const CacheRequest request{.space = 2, .keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
  cache.lookup({&request, 1}, stream.ref(), CacheMisses::answered);
  float have = 0;
  copy_bytes(stream.ref(), &have, there.data(), sizeof have);
  stream.ref().synchronize();
  EXPECT_EQ(have, 200003.0f);
}

TEST_P(DeviceCacheTest, AnErrorOfTheSourceIsThrownByTheLookUp) {
  DeviceCache cache({.device = GetParam()}, {.rows = [](int32_t, std::span<const int64_t>, float*, uint8_t*) {
                      throw Error(Kind::io, "no answer");
                    }});
  add_tables(cache, 50, 50);
  const Stream stream(GetParam());
  const Buffer there(GetParam(), kSmall * sizeof(float));
  const std::vector<int64_t> keys = {4};
  const CacheRequest request{.keys = keys, .vectors = reinterpret_cast<float*>(there.data())};
  const auto ask = [&] { cache.lookup({&request, 1}, stream.ref(), CacheMisses::answered); };
  for (int i = 0; i < 40; ++i)  // more lookups than sessions, because each failed lookup must free its session
    EXPECT_NE(message_of(Kind::io, ask).find("no answer"), std::string::npos);
}

}  // namespace
}  // namespace hctr::test
