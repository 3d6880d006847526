// Runs the lock-free protocol of the GPU hash index on CPU threads, so that ThreadSanitizer can check it.
#include "ops/embedding/hash_index_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace hctr::test {
namespace {

using ops::IndexEntry;

/// Loads both words of an entry consistently: if `meta` did not change while the key was read, the key belongs to
/// `meta`.
struct ThreadAccess {
  static IndexEntry load(const IndexEntry& from) {
    auto& entry = const_cast<IndexEntry&>(from);
    const std::atomic_ref<uint64_t> meta(entry.meta);
    for (;;) {
      const uint64_t before = meta.load(std::memory_order_acquire);
      const int64_t key = std::atomic_ref<int64_t>(entry.key).load(std::memory_order_acquire);
      if (meta.load(std::memory_order_acquire) == before) return {key, before};
    }
  }
  static bool claim(IndexEntry& entry, uint64_t from, uint64_t meta) {
    return std::atomic_ref<uint64_t>(entry.meta).compare_exchange_strong(from, meta);
  }
  static void store(IndexEntry& entry, int64_t key, uint64_t meta) {
    std::atomic_ref<int64_t>(entry.key).store(key, std::memory_order_release);
    std::atomic_ref<uint64_t>(entry.meta).store(meta, std::memory_order_release);
  }
};

struct Keys {
  const char* name;
  int64_t (*key)(uint64_t n);
};
const Keys kKinds[] = {
    {"all equal", [](uint64_t) { return int64_t{-1}; }},
    {"in sequence", [](uint64_t n) { return static_cast<int64_t>(n); }},
    {"alike in their low bits", [](uint64_t n) { return static_cast<int64_t>(n << 40); }},
    {"at both ends", [](uint64_t n) { return static_cast<int64_t>(n % 2 ? n / 2 : ~(n / 2)) ^ INT64_MIN; }},
};

using Identity = std::pair<int64_t, int32_t>;

/// Returns identity number n = 0, 1, .... Successive identities are the same key in slot 0 and in slot 1.
Identity identity_of(const Keys& kind, uint64_t n) { return {kind.key(n / 2), static_cast<int32_t>(n % 2)}; }

/// `workers` threads look up the identities (n * 7 + worker) % distinct. Each thread works like a block of a kernel: it
/// first makes all searches, then adds its new rows, then waits for rows of other threads. New rows are numbered from
/// rows_before + 1.
std::vector<std::vector<uint32_t>> run_on(std::vector<IndexEntry>& table, int workers, int per_worker, int distinct,
                                          const Keys& kind, uint32_t rows_before) {
  const uint64_t entries = table.size();
  std::vector<std::vector<uint32_t>> rows(static_cast<size_t>(workers),
                                          std::vector<uint32_t>(static_cast<size_t>(per_worker)));
  std::atomic<uint32_t> next_row{rows_before};
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      constexpr int kBlock = 16;
      for (int first = 0; first < per_worker; first += kBlock) {
        const int count = std::min(kBlock, per_worker - first);
        ops::IndexSearch found[kBlock];
        const auto identity = [&](int i) {
          return identity_of(kind, (static_cast<uint64_t>(first + i) * 7 + static_cast<uint64_t>(w)) %
                                       static_cast<uint64_t>(distinct));
        };
        for (int i = 0; i < count; ++i) {
          const auto [key, slot] = identity(i);
          found[i] = i % 2 ? ops::find_or_claim<ThreadAccess, ops::kFewestBytes>(table.data(), entries - 1, key, slot)
                           : ops::find_or_claim<ThreadAccess, ops::kFewestWaits>(table.data(), entries - 1, key, slot);
        }
        for (int i = 0; i < count; ++i) {
          if (!found[i].claimed) continue;
          const auto [key, slot] = identity(i);
          found[i].row = ++next_row;
          ops::publish_row<ThreadAccess>(*found[i].entry, key, slot, found[i].row);
        }
        for (int i = 0; i < count; ++i)
          rows[static_cast<size_t>(w)][static_cast<size_t>(first + i)] =
              found[i].row == ops::kNoRowYet ? ops::wait_for_row<ThreadAccess>(*found[i].entry) : found[i].row;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return rows;
}

std::vector<std::vector<uint32_t>> run(int workers, int per_worker, int distinct, uint64_t entries, const Keys& kind,
                                       std::vector<IndexEntry>& table) {
  table.assign(entries, {});
  return run_on(table, workers, per_worker, distinct, kind, 0);
}

TEST(HashIndexProtocol, ManyThreadsGiveEachIdentityOneRow) {
  constexpr int kWorkers = 4, kEach = 6000, kDistinct = 1500;
  for (const Keys& kind : kKinds) {
    std::vector<IndexEntry> table;
    const auto rows = run(kWorkers, kEach, kDistinct, 2048, kind, table);
    std::map<std::pair<int64_t, uint64_t>, uint32_t> row_of;
    std::set<uint32_t> given;
    for (int w = 0; w < kWorkers; ++w)
      for (int i = 0; i < kEach; ++i) {
        const uint64_t n = (static_cast<uint64_t>(i) * 7 + static_cast<uint64_t>(w)) % kDistinct;
        const uint32_t row = rows[static_cast<size_t>(w)][static_cast<size_t>(i)];
        const auto [at, is_new] = row_of.try_emplace({kind.key(n / 2), n % 2}, row);
        ASSERT_EQ(at->second, row) << kind.name << ": key " << kind.key(n / 2) << " of slot " << n % 2
                                   << " has two rows";
        given.insert(row);
      }
    EXPECT_EQ(given.size(), row_of.size()) << kind.name << ": two keys share a row";
    EXPECT_EQ(*given.rbegin(), row_of.size()) << kind.name << ": a row was left out";
    for (const auto& [identity, row] : row_of) {
      EXPECT_EQ((ops::find_row<ThreadAccess, ops::kFewestWaits>(table.data(), 2047, row, identity.first,
                                                                static_cast<int32_t>(identity.second))),
                row);
      EXPECT_EQ((ops::find_row<ThreadAccess, ops::kFewestBytes>(table.data(), 2047, row - 1, identity.first,
                                                                static_cast<int32_t>(identity.second))),
                0u)
          << "newer than asked for";
    }
  }
}

TEST(HashIndexProtocol, ConcurrentLookupsSeeTheRowsOfBeforeThroughSeveralGrowths) {
  for (const Keys& kind : kKinds) {
    std::map<Identity, uint32_t> row_of;
    for (uint64_t entries = 32; entries <= 2048; entries *= 2) {
      // Growth: clears the index, and several threads insert every row again.
      std::vector<IndexEntry> table(entries);
      const std::vector<std::pair<Identity, uint32_t>> known(row_of.begin(), row_of.end());
      std::vector<std::thread> threads;
      for (size_t w = 0; w < 3; ++w)
        threads.emplace_back([&, w] {
          for (size_t i = w; i < known.size(); i += 3) {
            const auto& [identity, row] = known[i];
            ops::enter<ThreadAccess>(table.data(), entries - 1, identity.first, identity.second, row);
          }
        });
      for (std::thread& thread : threads) thread.join();
      threads.clear();

      const auto rows_before = static_cast<uint32_t>(known.size());
      const int distinct = static_cast<int>(entries / 4 * 3);
      std::atomic<bool> over{false};
      std::atomic<int> wrong{0}, rounds{0};
      for (int reader = 0; reader < 2; ++reader)
        threads.emplace_back([&, reader] {
          do {
            for (uint64_t n = 0; n < static_cast<uint64_t>(distinct); ++n) {
              const auto [key, slot] = identity_of(kind, n);
              const auto expected = row_of.find({key, slot});
              const uint32_t row = reader == 0 ? ops::find_row<ThreadAccess, ops::kFewestBytes>(
                                                     table.data(), entries - 1, rows_before, key, slot)
                                               : ops::find_row<ThreadAccess, ops::kFewestWaits>(
                                                     table.data(), entries - 1, rows_before, key, slot);
              wrong += row != (expected == row_of.end() ? 0 : expected->second);
            }
            ++rounds;
          } while (!over);
        });
      const auto rows = run_on(table, 2, distinct, distinct, kind, rows_before);
      over = true;
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(wrong, 0) << kind.name << ", " << entries << " entries: a lookup saw concurrent insertions";
      EXPECT_GE(rounds, 2);
      std::set<uint32_t> given;
      for (size_t w = 0; w < rows.size(); ++w)
        for (size_t i = 0; i < rows[w].size(); ++i) {
          const auto [at, is_new] =
              row_of.try_emplace(identity_of(kind, (i * 7 + w) % static_cast<uint64_t>(distinct)), rows[w][i]);
          ASSERT_EQ(at->second, rows[w][i]) << kind.name << ": key " << at->first.first << " changed its row";
          given.insert(rows[w][i]);
        }
      EXPECT_EQ(given.size(), row_of.size());
      EXPECT_EQ(*given.rbegin(), row_of.size()) << kind.name << ": a row was left out";
    }
  }
}

TEST(HashIndexProtocol, AFullTableTakesWhatFitsAndRefusesTheRest) {
  std::vector<IndexEntry> table;
  const auto rows = run(2, 400, 400, 64, kKinds[1], table);
  std::set<uint32_t> given(rows[0].begin(), rows[0].end());
  given.insert(rows[1].begin(), rows[1].end());
  EXPECT_EQ(given.size(), 65u) << "64 rows and none";
  EXPECT_EQ(*given.begin(), 0u);
}

/// Removes a third of the keys. Then threads insert new keys while other threads look up the remaining keys. Each
/// remaining key is always found, and at the end each key has one entry.
TEST(HashIndexProtocol, KeysTakeTheMarksOfOthersWhileLookupsRun) {
  constexpr uint64_t kEntries = 1024, kFirst = 600, kAll = 780;
  for (const Keys& kind : kKinds) {
    if (kind.key(0) == kind.key(1)) continue;
    std::vector<IndexEntry> table(kEntries);
    const auto row_of = [](uint64_t n) { return static_cast<uint32_t>(n + 1); };
    const auto goes = [](uint64_t n) { return n % 3 == 0; };
    for (uint64_t n = 0; n < kFirst; ++n) {
      const auto [key, slot] = identity_of(kind, n);
      ops::enter<ThreadAccess>(table.data(), kEntries - 1, key, slot, row_of(n));
    }
    for (uint64_t n = 0; n < kFirst; n += 3) {
      const auto [key, slot] = identity_of(kind, n);
      EXPECT_TRUE(ops::leave_mark<ThreadAccess>(table.data(), kEntries - 1, key, slot));
      EXPECT_FALSE(ops::leave_mark<ThreadAccess>(table.data(), kEntries - 1, key, slot)) << "it has gone";
    }
    const auto find = [&](uint64_t n) {
      const auto [key, slot] = identity_of(kind, n);
      return n % 2 == 0 ? ops::find_row<ThreadAccess, ops::kFewestBytes>(table.data(), kEntries - 1, kAll, key, slot)
                        : ops::find_row<ThreadAccess, ops::kFewestWaits>(table.data(), kEntries - 1, kAll, key, slot);
    };
    for (uint64_t n = 0; n < kFirst; ++n) ASSERT_EQ(find(n), goes(n) ? 0 : row_of(n)) << kind.name << ", key " << n;
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0}, taken{0};
    std::thread reader([&] {
      do
        for (uint64_t n = 0; n < kAll; ++n) {
          const uint32_t row = find(n);
          wrong += n < kFirst && !goes(n) ? row != row_of(n) : row != 0 && row != row_of(n);
        }
      while (!over);
    });
    std::vector<std::thread> writers;
    for (uint64_t w = 0; w < 3; ++w)
      writers.emplace_back([&, w] {
        for (uint64_t n = kFirst + w; n < kAll; n += 3) {
          const auto [key, slot] = identity_of(kind, n);
          taken += ops::enter_absent<ThreadAccess>(table.data(), kEntries - 1, key, slot, row_of(n));
        }
      });
    for (std::thread& writer : writers) writer.join();
    over = true;
    reader.join();
    EXPECT_EQ(wrong, 0) << kind.name;
    EXPECT_GT(taken, 20) << kind.name;
    for (uint64_t n = 0; n < kAll; ++n)
      ASSERT_EQ(find(n), n < kFirst && goes(n) ? 0 : row_of(n)) << kind.name << ", key " << n;
    const auto marks =
        std::count_if(table.begin(), table.end(), [](const IndexEntry& e) { return e.meta == ops::kMark; });
    EXPECT_EQ(marks, static_cast<int64_t>(kFirst / 3) - taken) << kind.name;
  }
}

TEST(HashIndexProtocol, EveryPlaceIsVisitedOnce) {
  for (const uint64_t entries : {4, 8, 256})
    for (const uint64_t hash : {0ull, 1ull, 0x123456789abcdefull, ~0ull}) {
      std::set<uint64_t> visited;
      for (ops::ProbeOrder order(hash, entries - 1); !order.exhausted(); order.next_line())
        for (int i = 0; i < ops::ProbeOrder::kLine; ++i) EXPECT_TRUE(visited.insert(order.entry(i)).second);
      EXPECT_EQ(visited.size(), entries);
      EXPECT_LT(*visited.rbegin(), entries);
    }
}

}  // namespace
}  // namespace hctr::test
