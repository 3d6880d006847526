// RowsInMemory alone, without a table, a policy or another tier.
#include "engine/rows/rows_in_memory.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kMostOfRows = 1 << 12;

/// Records how rows move.
class NotedMoves : public RowFollower {
 public:
  void follow(Context& ctx, const ops::RowMoves& moves, int64_t rows) override {
    before = rows;
    after = moves.rows;
    from.resize(static_cast<size_t>(moves.count));
    to = from;
    copy_bytes(ctx.stream(), from.data(), moves.from, from.size() * sizeof(int32_t));
    copy_bytes(ctx.stream(), to.data(), moves.to, to.size() * sizeof(int32_t));
    ctx.stream().synchronize();
  }
  int64_t before = 0, after = 0;
  std::vector<int32_t> from, to;
};

/// Rows without a table, with initial memory for 64 rows.
class LoneRows {
 public:
  explicit LoneRows(Device device, bool on_disk = false, DirectKeys keys = {})
      : runtime(runtime_of(device)),
        memory(device, {}),
        rows(runtime, memory, spec(), std::move(keys),
             {.most_rows = kMostOfRows,
              .addresses = kMostOfRows,
              .batch_keys = 16,
              .batches_ahead = 2,
              .on_disk = on_disk,
              .removes = true}) {
    grow(64);
  }
  void grow(int64_t count) {
    rows.grow_besides_numbers(count);
    rows.arrays().grow_numbers(count, count);
    rows.open(count);
    if (!rows.direct()) rows.index().grow(count);
  }
  template <class T>
  std::vector<T> values(const char* column, int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count * rows.arrays().column(column).elements_per_row));
    rows.arrays().read(runtime.compute_stream(), rows.arrays().column(column), 0,
                       std::as_writable_bytes(std::span(values)));
    runtime.compute_stream().synchronize();
    return values;
  }
  /// Returns the row number of each key; 0 if the key has no row.
  std::vector<int32_t> find(const std::vector<int64_t>& keys) const {
    const Device device = runtime.device();
    const StreamRef stream = runtime.compute_stream();
    const int32_t ends[2] = {0, static_cast<int32_t>(keys.size())};
    std::vector<int32_t> found(keys.size());
    const Buffer device_keys(device, keys.size() * sizeof(int64_t)), offsets(device, sizeof ends),
        device_rows(device, keys.size() * sizeof(int32_t));
    copy_bytes(stream, device_keys.data(), keys.data(), device_keys.bytes());
    copy_bytes(stream, offsets.data(), ends, sizeof ends);
    Context ctx(runtime, stream);
    ops::index_find(ctx, rows.index().view(),
                    {.keys = reinterpret_cast<const int64_t*>(device_keys.data()),
                     .offsets = reinterpret_cast<const int32_t*>(offsets.data()),
                     .slots = 1,
                     .samples = 1,
                     .key_capacity = static_cast<int64_t>(keys.size()),
                     .columns = 1},
                    reinterpret_cast<int32_t*>(device_rows.data()));
    copy_bytes(stream, found.data(), device_rows.data(), device_rows.bytes());
    stream.synchronize();
    return found;
  }

  Runtime& runtime;
  RowMemory memory;
  RowsInMemory rows;

 private:
  static TableSpec spec() {
    TableSpec spec;
    spec.name = "lone";
    spec.dim = 2;
    spec.slots = spec.samples = 1;
    return spec;
  }
};

/// Returns a function that marks `rows` for eviction.
RowsInMemory::Choose leave(std::vector<int32_t> rows) {
  return [rows = std::move(rows)](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState&) {
    const Buffer list(ctx.device(), rows.size() * sizeof(int32_t));
    copy_bytes(ctx.stream(), list.data(), rows.data(), list.bytes());
    ops::set_fates(ctx, reinterpret_cast<const int32_t*>(list.data()), static_cast<int64_t>(rows.size()),
                   ops::Fate::leaves, memory.fates);
    ctx.stream().synchronize();
  };
}

using Numbers = std::vector<int32_t>;

TEST(RowsInMemory, AssignedKeysHaveRowsInTheirOrder) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.assign(std::vector<int64_t>{30, 10, -20}, {});
    EXPECT_EQ(lone.find({10, 11, -20, 30}), (Numbers{2, 0, 3, 1}));
    EXPECT_EQ(lone.rows.index().state().finished, 3u);
    for (const float value : lone.values<float>("vectors", 3)) EXPECT_NE(value, 0) << "the initial value";
  }
}

TEST(RowsInMemory, GrowthMovesNothing) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.assign(std::vector<int64_t>{1, 2, 3}, {});
    const auto vectors = lone.values<float>("vectors", 3);
    const std::byte* const address = lone.rows.arrays().column("vectors").memory.data();
    const int64_t entries = lone.rows.index().entries();
    lone.grow(kMostOfRows);
    EXPECT_EQ(lone.rows.arrays().capacity(), kMostOfRows);
    EXPECT_GT(lone.rows.index().entries(), entries);
    EXPECT_EQ(lone.rows.arrays().column("vectors").memory.data(), address);
    EXPECT_EQ(lone.values<float>("vectors", 3), vectors);
    EXPECT_EQ(lone.find({1, 2, 3}), (Numbers{1, 2, 3}));
  }
}

TEST(RowsInMemory, RemovalFillsGapsWithTheLastRowsAndTellsTheFollower) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.assign(std::vector<int64_t>{10, 20, 30, 40, 50}, {});
    const auto vectors = lone.values<float>("vectors", 5);
    NotedMoves noted;
    EXPECT_EQ(lone.rows.remove({}, leave({2, 5}), noted), 2);
    EXPECT_EQ(lone.find({10, 20, 30, 40, 50}), (Numbers{1, 0, 3, 2, 0}));
    EXPECT_EQ(noted.before, 5);
    EXPECT_EQ(noted.after, 3);
    EXPECT_EQ(noted.from, Numbers{4});
    EXPECT_EQ(noted.to, Numbers{2});
    const auto now = lone.values<float>("vectors", 4);
    EXPECT_EQ(now[2], vectors[6]) << "the row of key 40";
    EXPECT_EQ(now[6], 0) << "later rows expect new memory";
    EXPECT_EQ(lone.rows.index().progress().rows, 3u);
  }
}

TEST(RowsInMemory, TheRowsOfABatchAreRenumbered) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.assign(std::vector<int64_t>{10, 20, 30, 40, 50}, {});
    const Numbers batch = {5, 2, 1, 0};
    const Buffer list(device, batch.size() * sizeof(int32_t));
    const StreamRef stream = lone.runtime.compute_stream();
    copy_bytes(stream, list.data(), batch.data(), list.bytes());
    NotedMoves noted;
    lone.rows.remove({reinterpret_cast<int32_t*>(list.data()), 4}, leave({2}), noted);
    Numbers now(batch.size());
    copy_bytes(stream, now.data(), list.data(), list.bytes());
    stream.synchronize();
    EXPECT_EQ(now, (Numbers{2, 0, 1, 0})) << "row 5 has moved to 2, whose row is gone";
  }
}

TEST(RowsInMemory, FreePlacesAreFilledAndDoNotCountAsRemoved) {
  for (const Device device : devices()) {
    LoneRows lone(device, true);
    lone.rows.assign(std::vector<int64_t>{10, 20, 30, 40}, {});
    const Numbers left = {2};
    lone.rows.arrays().for_listed(lone.runtime.compute_stream(), left,
                                  [&](Context& ctx, const int32_t* rows, int64_t count) {
                                    ops::index_remove(ctx, lone.rows.index().view(), rows, count);
                                    ops::set_fates(ctx, rows, count, ops::Fate::leaves, lone.rows.arrays().left());
                                  });
    lone.rows.free_places().add(left);
    NotedMoves noted;
    EXPECT_EQ(lone.rows.remove({}, leave({}), noted), 0);
    EXPECT_EQ(lone.find({10, 20, 30, 40}), (Numbers{1, 0, 3, 2}));
    EXPECT_TRUE(lone.rows.free_places().empty());
  }
}

TEST(RowsInMemory, AfterAnErrorInAChoiceAllRowsAreThere) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.assign(std::vector<int64_t>{10, 20}, {});
    NotedMoves noted;
    const auto choose = [](Context&, const ops::RemovalMemory&, const ops::IndexState&) {
      throw Error(Kind::io, "the disk is full");
    };
    EXPECT_THROW(lone.rows.remove({}, choose, noted), Error);
    EXPECT_EQ(lone.find({10, 20}), (Numbers{1, 2})) << "the memory of the index was scratch";
    EXPECT_EQ(noted.before, 0);
  }
}

TEST(RowsInMemory, TheSharedRowBelongsToNoKey) {
  for (const Device device : devices()) {
    LoneRows lone(device);
    lone.rows.add_shared_row("lone");
    EXPECT_EQ(lone.rows.index().shared_rows(), 1);
    EXPECT_EQ(lone.find({0}), Numbers{0}) << "its random numbers are those of key 0";
    EXPECT_EQ(lone.rows.index().state().finished, 1u);
    EXPECT_NE(lone.values<float>("vectors", 1)[0], 0);
  }
}

TEST(RowsInMemory, DirectKeysHaveAllRowsFromTheStart) {
  for (const Device device : devices()) {
    DirectKeys keys;
    keys.spans.push_back({.first = 5, .count = 40, .base = 0, .step = 1});
    LoneRows lone(device, false, keys);
    ASSERT_TRUE(lone.rows.direct());
    EXPECT_EQ(lone.rows.index().entries(), 0);
    lone.rows.create_all();
    EXPECT_EQ(lone.rows.index().state().finished, 40u);
    for (const float value : lone.values<float>("vectors", 40)) EXPECT_NE(value, 0);
  }
}

TEST(RowsInMemory, BitsOfRowNumbersFollowMemoryWhereTheyMay) {
  for (const bool on_disk : {false, true}) {
    LoneRows lone(kCpu, on_disk);
    EXPECT_EQ(lone.rows.bits().now(), 13);
    lone.rows.bits().follow_memory();
    EXPECT_EQ(lone.rows.bits().now(), on_disk ? 13 : 8);
    lone.grow(1 << 10);
    EXPECT_EQ(lone.rows.bits().consume_change(), !on_disk);
    EXPECT_FALSE(lone.rows.bits().consume_change());
  }
}

}  // namespace
}  // namespace hctr::test
