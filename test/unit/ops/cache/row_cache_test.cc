// A row cache compared with a plain map: random changes and lookups, in each storage type, on every device.
#include "ops/cache/row_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/cache/row_cache_rules.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::CachedType;

/// An array in device memory.
template <class T>
class OnDevice {
 public:
  OnDevice(Device device, size_t count) : buffer_(device, std::max<size_t>(1, count) * sizeof(T)), count_(count) {}
  OnDevice(StreamRef stream, const std::vector<T>& values) : OnDevice(stream.device, values.size()) {
    copy_bytes(stream, buffer_.data(), values.data(), values.size() * sizeof(T));
    stream.synchronize();
  }
  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
  std::vector<T> host(StreamRef stream) const {
    std::vector<T> values(count_);
    copy_bytes(stream, values.data(), buffer_.data(), count_ * sizeof(T));
    stream.synchronize();
    return values;
  }

 private:
  Buffer buffer_;
  size_t count_;
};

struct PoolMemory {
  PoolMemory(Context& ctx, int32_t dim, CachedType type, uint32_t sets, uint32_t rows, bool whole)
      : entries(ctx.device(), sets * ops::kCacheWays),
        used(ctx.device(), sets * ops::kCacheWays),
        locks(ctx.device(), sets),
        heads(ctx.device(), rows),
        free(ctx.device(), rows),
        retired(ctx.device(), rows),
        counts(ctx.device(), 1),
        row_bytes((dim * ops::bytes_of(type) + 15) / 16 * 16),
        vectors(ctx.device(), rows * static_cast<size_t>(row_bytes)) {
    pool = {.entries = entries.data(),
            .used = used.data(),
            .locks = locks.data(),
            .heads = heads.data(),
            .rows = vectors.data(),
            .free = free.data(),
            .retired = retired.data(),
            .counts = counts.data(),
            .sets = sets,
            .row_capacity = rows,
            .dim = dim,
            .row_bytes = row_bytes,
            .type = type,
            .whole = whole};
    ops::cache_clear(ctx, pool);
  }
  OnDevice<uint64_t> entries;
  OnDevice<uint8_t> used;
  OnDevice<uint32_t> locks;
  OnDevice<ops::CacheHead> heads;
  OnDevice<uint32_t> free, retired;
  OnDevice<ops::CacheCounts> counts;
  int32_t row_bytes;
  OnDevice<std::byte> vectors;
  ops::CachePool pool;
};

using SpaceKey = std::pair<int32_t, int64_t>;
/// nullopt: the key is known to have no row.
using PlainRows = std::map<SpaceKey, std::optional<std::vector<float>>>;

/// The row as a pool returns it: rounded to the storage type of the pool.
std::vector<float> as_stored(CachedType type, const std::vector<float>& row) {
  float largest = 0;
  for (const float element : row) largest = std::max(largest, std::abs(element));
  const float scale = ops::cache_scale(type, largest);
  std::vector<std::byte> bytes(row.size() * 4);
  std::vector<float> out;
  for (size_t i = 0; i < row.size(); ++i) {
    ops::store_cached(type, bytes.data(), static_cast<int64_t>(i), row[i], scale);
    out.push_back(ops::cached_element(type, bytes.data(), static_cast<int64_t>(i), scale));
  }
  return out;
}

/// A cache with one pool, the rows of the owner (`plain`), and the keys that have been inserted into the cache.
class CacheTwin {
 public:
  CacheTwin(Device device, int32_t dim, CachedType type, uint32_t sets, uint32_t rows, bool whole)
      : runtime_(runtime_of(device)),
        ctx_(runtime_, runtime_.compute_stream()),
        memory_(ctx_, dim, type, sets, rows, whole),
        state_(ctx_.stream(), {ops::CacheState{.epoch = 1, .generation = 0, .era = 0, .sessions = {}}}),
        pools_(ctx_.stream(), {memory_.pool}) {}

  std::vector<float> random_row() {
    std::vector<float> row;
    for (int32_t i = 0; i < memory_.pool.dim; ++i) row.push_back(static_cast<float>(random() % 4001) / 1000 - 2);
    return row;
  }

  /// Writes rows of random keys, or removes keys.
  void change(int64_t count, bool removes, bool only_present, int64_t vocabulary) {
    std::set<SpaceKey> chosen;
    while (static_cast<int64_t>(chosen.size()) < count)
      chosen.insert({static_cast<int32_t>(random() % 3), static_cast<int64_t>(random() % vocabulary) * 7919 - 50});
    std::vector<int64_t> keys;
    std::vector<int32_t> spaces;
    std::vector<float> rows;
    std::vector<uint8_t> absent;
    for (const auto& [space, key] : chosen) {
      keys.push_back(key);
      spaces.push_back(space);
      const std::vector<float> row = random_row();
      rows.insert(rows.end(), row.begin(), row.end());
      absent.push_back(random() % 5 == 0);
      auto& plain = plain_[{space, key}];
      if (removes)
        plain_.erase({space, key});
      else if (absent.back())
        plain.reset();
      else
        plain = as_stored(memory_.pool.type, row);
    }
    const OnDevice<int64_t> device_keys(ctx_.stream(), keys);
    const OnDevice<int32_t> device_spaces(ctx_.stream(), spaces);
    const OnDevice<float> device_rows(ctx_.stream(), rows);
    const OnDevice<uint8_t> device_absent(ctx_.stream(), absent);
    const OnDevice<uint32_t> taken(ctx_.device(), keys.size());
    const ops::CacheChange change{.keys = device_keys.data(),
                                  .spaces = device_spaces.data(),
                                  .rows = device_rows.data(),
                                  .absent = device_absent.data(),
                                  .taken = taken.data(),
                                  .count = count,
                                  .only_present = only_present};
    if (!removes) ops::cache_write(ctx_, memory_.pool, change);
    ops::cache_begin_update(ctx_, state_.data());
    if (removes)
      ops::cache_remove(ctx_, memory_.pool, change);
    else
      ops::cache_set(ctx_, memory_.pool, state_.data(), change);
    ops::cache_end_update(ctx_, state_.data());
    ops::cache_next_epoch(ctx_, state_.data());
    ops::cache_reclaim(ctx_, memory_.pool);
    ops::cache_set_era(ctx_, state_.data(), ++era_);
    ctx_.stream().synchronize();
  }

  /// Marks `count` keys as stale, and gives their owner new rows. Then runs lookups: the owner answers the marked keys.
  /// Finally writes the new rows to the cache.
  void mark_and_replace(int64_t count, int64_t vocabulary) {
    std::set<SpaceKey> chosen;
    while (static_cast<int64_t>(chosen.size()) < count)
      chosen.insert({1, static_cast<int64_t>(random() % vocabulary) * 7919 - 50});
    std::vector<int64_t> keys;
    std::vector<float> rows;
    // If `removes`, the owner answers that it has no rows for the keys.
    const bool removes = random() % 3 == 0;
    for (const auto& [space, key] : chosen) {
      keys.push_back(key);
      const std::vector<float> row = random_row();
      rows.insert(rows.end(), row.begin(), row.end());
      plain_[{space, key}] = removes ? std::nullopt : std::optional(as_stored(memory_.pool.type, row));
      cached_.erase({space, key});
    }
    const OnDevice<int64_t> device_keys(ctx_.stream(), keys);
    const OnDevice<float> device_rows(ctx_.stream(), rows);
    const OnDevice<uint32_t> taken(ctx_.device(), keys.size());
    const ops::CacheChange change{.keys = device_keys.data(),
                                  .space = 1,
                                  .rows = removes ? nullptr : device_rows.data(),
                                  .taken = taken.data(),
                                  .count = count,
                                  .only_present = !memory_.pool.whole};
    ops::cache_begin_update(ctx_, state_.data());
    ops::cache_mark(ctx_, memory_.pool, change);
    ops::cache_set_applying(ctx_, state_.data(), true);
    ops::cache_end_update(ctx_, state_.data());
    applying_ = true;
    check_lookup(60, true, vocabulary);
    check_lookup(60, true, vocabulary, false);
    ops::cache_write(ctx_, memory_.pool, change);
    ops::cache_set(ctx_, memory_.pool, state_.data(), change);
    ops::cache_next_epoch(ctx_, state_.data());
    ops::cache_reclaim(ctx_, memory_.pool);
    ops::cache_set_applying(ctx_, state_.data(), false);
    applying_ = false;
    ctx_.stream().synchronize();
  }

  /// Checks the keys that cache_list() returns: each key belongs to the owner, occurs once and has the owner's row.
  /// Checks that every other row of the pool is free.
  void check_content() {
    const OnDevice<ops::CacheListed> listed(ctx_.device(), memory_.pool.row_capacity);
    const OnDevice<uint32_t> count(ctx_.device(), 1);
    ops::cache_list(ctx_, memory_.pool, listed.data(), count.data());
    const ops::CacheCounts counts = memory_.counts.host(ctx_.stream())[0];
    const std::vector<ops::CacheListed> all = listed.host(ctx_.stream());
    const uint32_t keys = count.host(ctx_.stream())[0];
    EXPECT_EQ(counts.keys, keys);
    EXPECT_EQ(counts.retired, 0u);
    EXPECT_EQ(counts.free_rows + keys, memory_.pool.row_capacity);
    cached_.clear();
    std::set<uint32_t> rows;
    const std::vector<uint32_t> free = memory_.free.host(ctx_.stream());
    rows.insert(free.begin(), free.begin() + counts.free_rows);
    for (uint32_t i = 0; i < keys; ++i) {
      const SpaceKey key{all[i].head.space, all[i].head.key};
      EXPECT_TRUE(cached_.insert(key).second) << key.second << " twice";
      EXPECT_TRUE(rows.insert(all[i].row).second) << "row " << all[i].row << " twice";
      const auto plain = plain_.find(key);
      ASSERT_TRUE(plain != plain_.end()) << key.second;
      EXPECT_EQ(all[i].head.scale == all[i].head.scale, plain->second.has_value());
    }
    EXPECT_EQ(rows.size(), memory_.pool.row_capacity);
    if (memory_.pool.whole) {
      EXPECT_EQ(cached_.size(), plain_.size());
    }
  }

  /// Runs a lookup of three parts. One part requests rows, one requests sums and one means of bags; if `has_bags` is
  /// false, all parts request rows. `lists`: whether missing keys are requested from the owner.
  void check_lookup(int64_t keys_of_part, bool lists, int64_t vocabulary, bool has_bags = true) {
    const int64_t dim = memory_.pool.dim, stride = dim + 3;
    struct Part {
      int32_t space;
      std::vector<int64_t> keys, offsets;
      int64_t items() const { return static_cast<int64_t>(offsets.empty() ? keys.size() : offsets.size() - 1); }
    };
    std::vector<Part> parts;
    for (int32_t p = 0; p < 3; ++p) {
      Part part{.space = p == 0 ? 1 : static_cast<int32_t>(random() % 3), .keys = {}, .offsets = {}};
      while (static_cast<int64_t>(part.keys.size()) < keys_of_part)
        part.keys.push_back(static_cast<int64_t>(random() % vocabulary) * 7919 - 50);
      if (has_bags && p > 0) {  // the last part has a key before its first bag, and one after its last bag
        const int64_t most = keys_of_part - (p == 2);
        const int64_t longest = random() % 4 == 0 ? keys_of_part : 9;
        part.offsets = {p == 2};
        while (part.offsets.back() < most)
          part.offsets.push_back(std::min<int64_t>(most, part.offsets.back() + random() % longest));
      }
      parts.push_back(std::move(part));
    }
    std::vector<int64_t> keys, all_offsets;
    for (const Part& part : parts) {
      keys.insert(keys.end(), part.keys.begin(), part.keys.end());
      all_offsets.insert(all_offsets.end(), part.offsets.begin(), part.offsets.end());
    }
    const OnDevice<int64_t> device_keys(ctx_.stream(), keys), device_offsets(ctx_.stream(), all_offsets);
    std::vector<OnDevice<float>> outputs;
    std::vector<ops::CachePart> device_parts;
    int64_t item = 0, offset = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::vector<float> before(static_cast<size_t>(parts[p].items() * stride), -7.0f);
      outputs.emplace_back(ctx_.stream(), before);
      device_parts.push_back({.pool = 0,
                              .space = parts[p].space,
                              .first_item = item,
                              .first_key = static_cast<int64_t>(p) * keys_of_part,
                              .keys = device_keys.data() + static_cast<int64_t>(p) * keys_of_part,
                              .offsets = parts[p].offsets.empty() ? nullptr : device_offsets.data() + offset,
                              .combiner = p == 1 ? ops::Combiner::sum : ops::Combiner::mean,
                              .out = outputs[p].data(),
                              .stride = stride,
                              .default_value = p == 2 ? 0.25f : 0.0f});
      item += parts[p].items();
      offset += static_cast<int64_t>(parts[p].offsets.size());
    }
    const OnDevice<ops::CachePart> parts_there(ctx_.stream(), device_parts);
    const OnDevice<int32_t> places(ctx_.device(), keys.size());
    const OnDevice<ops::CacheMiss> misses(ctx_.device(), keys.size());
    const OnDevice<ops::CacheAnswer> answer(ctx_.device(), 1);
    const ops::CacheLookup lookup{.pools = pools_.data(),
                                  .parts = parts_there.data(),
                                  .part_count = static_cast<int32_t>(parts.size()),
                                  .most_dim = memory_.pool.dim,
                                  .only_f32 = memory_.pool.type == CachedType::f32,
                                  .has_bags = has_bags,
                                  .items = item,
                                  .keys = static_cast<int64_t>(keys.size()),
                                  .places = has_bags ? places.data() : nullptr,
                                  .misses = misses.data(),
                                  .state = state_.data(),
                                  .session = 5,
                                  .generation = state_.host(ctx_.stream())[0].generation,
                                  .answer = answer.data(),
                                  .ticket = ++ticket_,
                                  .lists_misses = lists};
    ops::cache_lookup(ctx_, lookup);
    const ops::CacheAnswer said = answer.host(ctx_.stream())[0];
    EXPECT_EQ(said.ticket, ticket_);
    EXPECT_EQ(said.mixed, 0u);
    const auto session_epoch = [&] { return state_.host(ctx_.stream())[0].sessions[5].epoch; };
    EXPECT_EQ(session_epoch() != 0, lists && said.misses > 0);
    if (lists && said.misses > 0) fill(lookup, device_parts, misses, said.misses, keys);
    EXPECT_EQ(session_epoch(), 0u);

    uint32_t missing = 0, defaults = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const std::vector<float> have = outputs[p].host(ctx_.stream());
      for (int64_t i = 0; i < parts[p].items(); ++i) {
        const bool bag = !parts[p].offsets.empty();
        const int64_t begin = bag ? parts[p].offsets[static_cast<size_t>(i)] : i;
        const int64_t end = bag ? parts[p].offsets[static_cast<size_t>(i) + 1] : i + 1;
        std::vector<float> expected(static_cast<size_t>(dim), 0.0f);
        for (int64_t k = begin; k < end; ++k) {
          const SpaceKey key{parts[p].space, parts[p].keys[static_cast<size_t>(k)]};
          const auto plain = plain_.find(key);
          const bool cached = cached_.contains(key), has = plain != plain_.end() && plain->second;
          const bool complete = memory_.pool.whole && !applying_;
          missing += !cached && !complete;
          defaults += cached ? !has : complete || !lists;
          const bool answered = has && (cached || lists);
          for (int64_t d = 0; d < dim; ++d)
            expected[static_cast<size_t>(d)] +=
                answered ? (*plain->second)[static_cast<size_t>(d)] : device_parts[p].default_value;
        }
        const float weight = ops::weight_of_bag(device_parts[p].combiner, bag ? end - begin : 1);
        for (int64_t d = 0; d < stride; ++d)
          ASSERT_EQ(have[static_cast<size_t>(i * stride + d)],
                    d < dim ? expected[static_cast<size_t>(d)] * weight : -7.0f)
              << "part " << p << " vector " << i << " element " << d;
      }
    }
    EXPECT_EQ(said.misses, missing);
    EXPECT_EQ(said.defaults, defaults);
  }

  std::mt19937_64 random{17};

 private:
  /// Answers the misses, as the owner of the rows does.
  void fill(const ops::CacheLookup& lookup, const std::vector<ops::CachePart>& parts,
            const OnDevice<ops::CacheMiss>& misses, uint32_t count, const std::vector<int64_t>& keys) {
    std::vector<ops::CacheMiss> listed = misses.host(ctx_.stream());
    listed.resize(count);
    std::vector<ops::CacheFound> found;
    std::vector<float> values;
    std::set<int64_t> bags;
    for (const ops::CacheMiss& miss : listed) {
      EXPECT_EQ(miss.key, keys[static_cast<size_t>(miss.at)]);
      const ops::CachePart& part = parts[static_cast<size_t>(miss.part)];
      const auto plain = plain_.find({part.space, miss.key});
      int64_t first = -1;
      if (plain != plain_.end() && plain->second) {
        first = static_cast<int64_t>(values.size());
        values.insert(values.end(), plain->second->begin(), plain->second->end());
      }
      found.push_back({miss.part, miss.at, first});
      if (part.offsets) bags.insert(miss.item);
    }
    const OnDevice<ops::CacheFound> device_found(ctx_.stream(), found);
    const OnDevice<float> device_values(ctx_.stream(), values);
    const OnDevice<int64_t> device_bags(ctx_.stream(), std::vector<int64_t>(bags.begin(), bags.end()));
    const auto some = static_cast<int64_t>(random() % found.size());  // two calls of fill() answer the misses
    ops::cache_fill(ctx_, lookup,
                    {.found = device_found.data(), .found_count = some, .ends = false, .values = device_values.data()});
    ops::cache_fill(ctx_, lookup,
                    {.found = device_found.data(),
                     .found_first = some,
                     .found_count = static_cast<int64_t>(found.size()),
                     .values = device_values.data(),
                     .bags = device_bags.data(),
                     .bag_count = static_cast<int64_t>(bags.size())});
    ctx_.stream().synchronize();
  }

  Runtime& runtime_;
  Context ctx_;
  PoolMemory memory_;
  OnDevice<ops::CacheState> state_;
  OnDevice<ops::CachePool> pools_;
  PlainRows plain_;
  std::set<SpaceKey> cached_;
  uint32_t ticket_ = 0, era_ = 0;
  bool applying_ = false;
};

class RowCache : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
};
INSTANTIATE_TEST_SUITE_P(Device, RowCache, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(RowCache, RandomChangesAndLookUpsGiveTheRowsOfAPlainMap) {
  for (const CachedType type : {CachedType::f32, CachedType::f16, CachedType::bf16, CachedType::fp8, CachedType::int8})
    for (const int32_t dim : {1, 5, 16, 130, 300}) {
      SCOPED_TRACE(cat("type ", static_cast<int>(type), ", dim ", dim));
      CacheTwin twin(GetParam(), dim, type, 8, 8 * ops::kCacheWays + 60, false);
      for (int round = 0; round < 8; ++round) {
        const bool removes = round % 4 == 3;
        twin.change(50, removes, false, 200);
        twin.change(20, false, true, 200);
        twin.check_content();
        twin.check_lookup(70, true, 200);
        twin.check_lookup(33, false, 200);
        twin.check_lookup(45, round % 2 == 0, 200, false);
        twin.mark_and_replace(40, 200);
        twin.check_content();
        twin.check_lookup(70, round % 2 == 0, 200);
      }
    }
}

TEST_P(RowCache, AWholePoolKeepsEveryKeyHoweverFullItsSetsAre) {
  CacheTwin twin(GetParam(), 8, CachedType::f32, 16, 16 * ops::kCacheWays + 60, true);
  for (int round = 0; round < 12; ++round) {
    twin.change(60, round % 3 == 2, false, 80);  // at most 240 keys in a cache of 256 entries
    twin.check_content();
    twin.check_lookup(200, round % 2 == 0, 90);
    twin.check_lookup(100, round % 2 == 0, 90, false);
    twin.mark_and_replace(20, 80);
    twin.check_content();
    twin.check_lookup(100, round % 2 == 0, 90);
  }
}

// Lookups run while updates change all rows from one value to the next. A lookup that is not flagged as mixed must
// return a single value. No lookup may return a row with two values.
TEST(RowCacheOnGpu, LookUpsBesideUpdatesSeeOneUpdateOrSaySo) {
  HCTR_SKIP_WITHOUT_GPU();
  constexpr int64_t kKeys = 20'000, kDim = 24;
  Runtime& runtime = runtime_of(kGpu);
  const Stream updates(kGpu), look_ups(kGpu);
  Context writer(runtime, updates.ref()), reader(runtime, look_ups.ref());
  const PoolMemory memory(writer, kDim, CachedType::f32, 4096, 4096 * ops::kCacheWays, true);
  const OnDevice<ops::CacheState> state(updates.ref(), {ops::CacheState{.epoch = 1, .sessions = {}}});
  const OnDevice<ops::CachePool> pools(updates.ref(), {memory.pool});
  std::vector<int64_t> keys(kKeys);
  for (int64_t i = 0; i < kKeys; ++i) keys[static_cast<size_t>(i)] = i * 31;
  const OnDevice<int64_t> device_keys(updates.ref(), keys);
  const OnDevice<int32_t> spaces(updates.ref(), std::vector<int32_t>(kKeys, 0));
  const OnDevice<uint32_t> taken(kGpu, kKeys);
  const auto update = [&](float number) {
    const OnDevice<float> rows(updates.ref(), std::vector<float>(kKeys * kDim, number));
    const ops::CacheChange change{.keys = device_keys.data(),
                                  .spaces = spaces.data(),
                                  .rows = rows.data(),
                                  .taken = taken.data(),
                                  .count = kKeys};
    ops::cache_write(writer, memory.pool, change);
    ops::cache_begin_update(writer, state.data());
    ops::cache_set(writer, memory.pool, state.data(), change);
    ops::cache_end_update(writer, state.data());
    ops::cache_next_epoch(writer, state.data());
    updates.ref().synchronize();
    const uint64_t epoch = state.host(updates.ref())[0].epoch;
    for (bool waits = true; waits;) {  // waits for lookups of earlier epochs
      const ops::CacheState seen = state.host(updates.ref())[0];
      waits = std::any_of(std::begin(seen.sessions), std::end(seen.sessions),
                          [&](const auto& session) { return session.epoch != 0 && session.epoch < epoch; });
    }
    ops::cache_reclaim(writer, memory.pool);
    updates.ref().synchronize();
    EXPECT_EQ(memory.counts.host(updates.ref())[0].refused, 0u);
  };
  update(1);
  std::thread other([&] {
    for (int i = 2; i < 60; ++i) update(static_cast<float>(i));
  });
  const OnDevice<float> out(kGpu, kKeys * kDim);
  std::vector<int64_t> offsets;
  for (int64_t at = 0; at <= kKeys; at += 2) offsets.push_back(at);
  const OnDevice<int64_t> device_offsets(look_ups.ref(), offsets);
  const OnDevice<int32_t> places(kGpu, kKeys);
  const ops::CachePart rows{.keys = device_keys.data(), .out = out.data(), .stride = kDim};
  ops::CachePart bags = rows;
  bags.offsets = device_offsets.data();
  const OnDevice<ops::CachePart> parts(look_ups.ref(), {rows, bags});
  const OnDevice<ops::CacheAnswer> answer(kGpu, 1);
  int whole[2] = {}, mixed = 0;
  for (int i = 0; i < 800; ++i) {
    const bool has_bags = i % 2 != 0;
    const int64_t items = has_bags ? kKeys / 2 : kKeys;
    const ops::CacheState before = state.host(look_ups.ref())[0];
    ops::cache_lookup(reader, {.pools = pools.data(),
                               .parts = parts.data() + has_bags,
                               .part_count = 1,
                               .most_dim = kDim,
                               .only_f32 = true,
                               .has_bags = has_bags,
                               .items = items,
                               .keys = kKeys,
                               .places = places.data(),
                               .state = state.data(),
                               .epoch = before.epoch,
                               .generation = before.generation,
                               .answer = answer.data()});
    const std::vector<float> have = out.host(look_ups.ref());
    const ops::CacheAnswer said = answer.host(look_ups.ref())[0];
    EXPECT_EQ(said.defaults, 0u);
    for (int64_t k = 0; k < items; ++k)
      for (int64_t d = 0; d < kDim; ++d)
        ASSERT_EQ(have[static_cast<size_t>(k * kDim + d)], have[static_cast<size_t>(said.mixed ? k * kDim : 0)]);
    ++(said.mixed ? mixed : whole[has_bags]);
  }
  other.join();
  EXPECT_GT(whole[0], 0);
  EXPECT_GT(whole[1], 0);
  RecordProperty("mixed", mixed);
}

}  // namespace
}  // namespace hctr::test
