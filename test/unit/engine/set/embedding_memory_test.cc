// A set allocates all memory with the caller's allocator and frees all of it, except memory that recorded work still
// needs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "engine/set/set_rules.h"
#include "engine/set/set_table.h"
#include "hctr/embedding.h"
#include "support/temporary_folder.h"
#include "unit/engine/set/rank_runs.h"

namespace hctr::test {
namespace {

/// Counts allocations and frees, and fills new memory with garbage.
struct CountedMemory {
  std::map<void*, size_t> taken{};
  int64_t bytes = 0, calls = 0, frees = 0;
  int64_t most = INT64_MAX;

  void* allocate(size_t wanted) {
    if (bytes + static_cast<int64_t>(wanted) > most) return nullptr;
    void* const memory = std::aligned_alloc(256, (wanted + 255) / 256 * 256);
    std::memset(memory, 0xab, wanted);
    taken[memory] = wanted;
    bytes += static_cast<int64_t>(wanted);
    ++calls;
    return memory;
  }
  void free(void* memory, size_t given) {
    ASSERT_TRUE(taken.contains(memory));
    EXPECT_EQ(taken[memory], given);
    taken.erase(memory);
    bytes -= static_cast<int64_t>(given);
    ++frees;
    std::free(memory);
  }
  EmbeddingAllocator callbacks() {
    return {
        [](size_t wanted, void*, void* user) { return static_cast<CountedMemory*>(user)->allocate(wanted); },
        [](void* memory, size_t given, void*, void* user) { static_cast<CountedMemory*>(user)->free(memory, given); },
        this};
  }
};

EmbeddingOptions set_with_memory(CountedMemory& memory) {
  EmbeddingTableOptions items{.name = "items", .dim = 4}, days{.name = "days", .dim = 3, .rows = 5000};
  items.min_count = 2;
  return {.tables = {items, days},
          .features = {{"item", "items", Pooling::max, false}, {"day", "days", Pooling::mean, true}},
          .seed = 3,
          .allocator = memory.callbacks()};
}

TEST(EmbeddingSetMemory, TheCallersAllocatorGivesItAndGetsAllBack) {
  CountedMemory memory;
  const EmbeddingOptions options = set_with_memory(memory);
  std::mt19937_64 random(1);
  RankNumbers numbers, with_driver;
  EmbeddingOptions plain = options;
  plain.allocator = {};
  EmbeddingSet other(plain);
  EXPECT_EQ(other.allocated_bytes(), 0);
  {
    EmbeddingSet set(options);
    for (const int64_t samples : {3, 5000, 20}) {  // the second batch needs more memory than the first
      const RankSamples of = random_samples(options, samples, random);
      run_step(set, of, {.learning_rate = 0.1f}, numbers);
      run_step(other, of, {.learning_rate = 0.1f}, with_driver);
      EXPECT_EQ(set.allocated_bytes(), memory.bytes);
    }
    // The allocated bytes include the rows and optimizer states of table "days", which is indexed by row number.
    EXPECT_GE(memory.bytes, set.memory("days").device_bytes);
    EXPECT_GE(set.memory("days").device_bytes, 5000 * 3 * 4 * 3);
    EXPECT_TRUE(std::ranges::any_of(memory.taken, [](const auto& one) { return one.second >= 5001 * 3 * 4; }));
    EXPECT_EQ(numbers, with_driver);
    EXPECT_EQ(all_rows(set), all_rows(other));
    EmbeddingSet moved = std::move(set);
    EXPECT_EQ(moved.allocated_bytes(), memory.bytes);
  }
  EXPECT_EQ(memory.bytes, 0);
  EXPECT_TRUE(memory.taken.empty());
  EXPECT_EQ(memory.calls, memory.frees);
}

TEST(EmbeddingSetMemory, WhatAnAllocatorRefusesIsAnErrorAndTheSetGoesOn) {
  CountedMemory memory;
  const EmbeddingOptions options = set_with_memory(memory);
  std::mt19937_64 random(2);
  {
    EmbeddingSet set(options);
    RankNumbers numbers;
    memory.most = memory.bytes + 1000;
    const RankSamples large = random_samples(options, 20'000, random), small = random_samples(options, 2, random);
    try {
      run_step(set, large, {}, numbers);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::device) << error.what();
      EXPECT_NE(std::string(error.what()).find("the caller's allocator refused"), std::string::npos) << error.what();
    }
    memory.most = INT64_MAX;
    run_step(set, small, {}, numbers);
  }
  EXPECT_TRUE(memory.taken.empty());
  EmbeddingOptions half = options;
  half.allocator.free = nullptr;
  EXPECT_THROW(EmbeddingSet{half}, Error);
}

TEST(EmbeddingSetMemory, LookUpsTakeNoneOnceItIsReserved) {
  CountedMemory memory;
  const EmbeddingOptions options = set_with_memory(memory);
  std::mt19937_64 random(3);
  EmbeddingSet set(options);
  const RankSamples large = random_samples(options, 6000, random), small = random_samples(options, 100, random);
  std::vector<int64_t> counts;
  for (const auto& keys : large.keys) counts.push_back(static_cast<int64_t>(keys.size()));
  set.reserve_lookup(6000, counts);
  const int64_t calls = memory.calls;
  for (const RankSamples* of : {&small, &large, &small}) {
    RankVectors vectors(options, *of);
    set.lookup(of->samples, of->views(options), vectors.views);
  }
  EXPECT_EQ(memory.calls, calls);
  EXPECT_THROW(set.reserve_lookup(10, {counts.data(), 1}), Error);
  EXPECT_THROW(set.reserve_lookup(0, counts), Error);
}

// Recorded work refers to memory of batches and lookups. When a set grows, it allocates new memory and keeps the old
// memory.
TEST(EmbeddingSetMemory, MemoryOfRecordedWorkStays) {
  CountedMemory memory;
  const auto allocator = std::make_shared<DeviceAllocator>();
  allocator->allocate = [&](size_t bytes, void*) { return static_cast<std::byte*>(memory.allocate(bytes)); };
  allocator->free = [&](std::byte* at, size_t bytes, void*) { memory.free(at, bytes); };
  const AllocatorScope scope(allocator);
  Runtime runtime(Device{}, {.threads = 1});
  TableSpec spec = spec_of({.name = "items", .dim = 4, .min_count = 2}, 1);
  spec.samples = spec.eval_samples = 1;
  spec.key_capacity = spec.eval_key_capacity = 64;
  spec.most_key_capacity = 1 << 20;
  for (const bool recorded : {false, true}) {
    SetTable table(runtime, spec, {{0, "item", ops::BagPooling::sum, false}}, 2);
    table.reserve(0, 10, 60);
    table.reserve_lookup(10, 60);
    EXPECT_TRUE(table.lookup_reserved(10, 60));
    EXPECT_FALSE(table.lookup_reserved(10, 1000));
    if (recorded) table.keep_replaced_memory();
    const int64_t frees = memory.frees;
    table.reserve_lookup(1000, 5000);
    table.reserve(0, 2000, 9000);
    table.reserve(1, 3000, 20'000);
    EXPECT_TRUE(table.lookup_reserved(1000, 5000));
    EXPECT_EQ(memory.frees > frees, !recorded);
  }
}

/// The message of an Error of `call`. The message must name options, not config fields.
std::string error_with_options(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* field : {"table_memory", "slot_size_array", "update_type", "disk_limit", "\"grow\"", "storage",
                              "\"index\"", "batchsize", "\"gpu\""})
      EXPECT_EQ(text.find(field), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(EmbeddingSetMemory, MessagesNameTheOptionsOfTheSet) {
  const auto expect_said = [](const std::string& text, const std::function<void()>& call) {
    const std::string said = error_with_options(call);
    EXPECT_NE(said.find(text), std::string::npos) << said;
  };
  CountedMemory none;
  EmbeddingOptions options = set_with_memory(none);
  options.allocator = {};
  options.tables[0].min_count = 1;
  std::mt19937_64 random(4);
  const RankSamples samples = random_samples(options, 50, random);
  const auto step = [&](const EmbeddingOptions& with) {
    EmbeddingSet set(with);
    RankNumbers numbers;
    run_step(set, samples, {}, numbers);
  };
  EmbeddingOptions changed = options;
  changed.tables[0].most_rows = 3;
  expect_said("(most_rows = 0)", [&] { step(changed); });
  changed.tables[0].when_full = EmbeddingTableOptions::WhenFull::evict_lru;
  expect_said("use batches with fewer keys", [&] { step(changed); });
  changed = options;
  changed.device_bytes = 1 << 20;
  changed.tables[1].rows = 2'000'000;
  expect_said("device_bytes must be at least", [&] { step(changed); });
  changed = options;
  changed.tables[1].rows = 2'000'000'000;
  changed.tables[1].dim = 60'000;
  expect_said("2000000000 rows of \"rows\" take", [&] { step(changed); });
  const TemporaryFolder folder;
  changed = options;
  changed.disk = folder.path();
  changed.disk_bytes = 1 << 30;
  changed.device_bytes = 1 << 10;
  expect_said("host_bytes must be at least", [&] { step(changed); });
  changed.device_bytes.reset();
  changed.tables[0].optimizer.rows = EmbeddingOptimizer::Rows::global;
  expect_said("use local or lazy_global; or remove `disk`", [&] { step(changed); });
  expect_said("key 5001 is outside the rows 0 to 4999", [&] {
    EmbeddingSet set(options);
    const int64_t key = 5001;
    set.import_rows("days", {{&key, 1}, {}});
  });
}

}  // namespace
}  // namespace hctr::test
