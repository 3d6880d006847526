// Fetched and new rows reuse the slots of evicted rows. Row numbers equal those of a table in memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/platform.h"
#include "unit/engine/tiers/disk_tiers.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

/// Trains a table in memory and a table with a disk on the same batches, and counts the steps with evictions.
class TablesInStep {
 public:
  TablesInStep(Device device, const TableSpec& spec, const RowMemoryLimits& limits)
      : plain(device, spec), split(device, spec, 2, 2, true, DType::f32, limits) {}

  void step(int64_t vocabulary) {
    const TableSpec& spec = plain.spec();
    const Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    const int64_t written = split.table->disk_use().written;
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy));
    times_left += split.table->disk_use().written > written;
    ASSERT_EQ(split.table->rows(), plain.table->rows());
  }

  TableRig plain, split;
  std::mt19937_64 random{3};
  int64_t times_left = 0;
};

constexpr int64_t kManyKeys = 40000;

/// An eviction frees a sixteenth of the rows in memory. A step fetches fewer rows, so free slots remain between steps.
class TableDiskPlacesTest : public DiskTiers {
 protected:
  RowMemoryLimits roomy(const TableSpec& spec) const {
    constexpr int64_t kMore = 8000;
    RowMemoryLimits memory = limits(spec);
    memory.host += kMore * (number_bytes_of_row(spec) + 8) * 4 / 3;
    *memory.device += kMore * 100 + (1 << 19);
    return memory;
  }
};
HCTR_ON_EACH_DEVICE(TableDiskPlacesTest);

TEST_P(TableDiskPlacesTest, RowsThatComeTakeThemAndNoOtherRowMoves) {
  for (const bool marks : {false, true}) {
    if (kSanitized && !marks) continue;  // with sanitizers, one case per code path is enough
    TableSpec spec = this->spec();
    spec.marks_changes = spec.identity_by_slot = marks;
    TablesInStep tables(GetParam(), spec, roomy(spec));
    for (int t = 0; t < 50; ++t) tables.step(kManyKeys);
    const DiskUse before = tables.split.table->disk_use();
    tables.times_left = 0;
    for (int t = 0; t < 40; ++t) tables.step(kManyKeys);
    const DiskUse use = tables.split.table->disk_use();
    EXPECT_GT(use.brought - before.brought, 500);
    EXPECT_GE(use.into_places - before.into_places, use.written - before.written - use.free_places);
    EXPECT_GT(use.into_places - before.into_places, use.brought - before.brought) << "new rows, too";
    EXPECT_EQ(use.moved_up, 0);
    EXPECT_GE(tables.times_left, 8);
    EXPECT_LE(use.index_builds - before.index_builds, tables.times_left / 2);
    EXPECT_TRUE(tables.split.bytes() == tables.plain.bytes());
    expect_all_tiers(tables.split);
    EXPECT_EQ(tables.split.table->disk_use().free_places, 0) << "closed for the model";
    for (int t = 0; t < 6; ++t) tables.step(kManyKeys);
    EXPECT_TRUE(tables.split.bytes() == tables.plain.bytes());
  }
}

/// With delayed admission, a table decides which new keys get rows only after it has fetched rows from disk. It appends
/// the new rows, and then moves rows to close the gaps.
TEST_P(TableDiskPlacesTest, BehindAGateRowsMoveIntoGaps) {
  TableSpec spec = this->spec();
  spec.policy.admit_probability = 0.7;
  TablesInStep tables(GetParam(), spec, roomy(spec));
  for (int t = 0; t < 80; ++t) tables.step(kManyKeys);
  EXPECT_GT(tables.split.table->disk_use().moved_up, 500);
  EXPECT_GT(tables.split.table->disk_use().brought, 500);
  EXPECT_TRUE(tables.split.bytes() == tables.plain.bytes());
}

/// Files, statistics and checkpoints are also correct when they are made between steps, while some slots are free.
TEST_P(TableDiskPlacesTest, WhatWalksOverRowsKnowsFreePlaces) {
  const TemporaryFolder folder;
  TableSpec spec = this->spec();
  spec.marks_changes = true;
  spec.policy.finds_frequent = true;
  TablesInStep tables(GetParam(), spec, roomy(spec));
  for (int t = 0; t < 50; ++t) tables.step(kManyKeys);
  int64_t walks_over[4] = {};
  std::optional<int64_t> base;
  int64_t iteration = 0;
  const auto frequent = [](TableRig& rig) {
    std::vector<std::pair<int64_t, uint32_t>> all;
    for (const auto& row : rig.table->most_frequent(1500)) all.emplace_back(row.key, row.occurrences);
    return all;
  };
  for (int t = 0; t < 40; ++t) {
    SCOPED_TRACE(t);
    const int which = t % 4;
    if (which != 3) tables.step(kManyKeys);
    walks_over[which] += tables.split.table->disk_use().free_places > 0;
    if (which == 0) {
      ASSERT_TRUE(frequent(tables.split) == frequent(tables.plain));
    } else if (which == 1) {
      ASSERT_TRUE(tables.split.bytes() == tables.plain.bytes());
    } else if (which == 2) {
      const HostRows on_host = tables.split.table->host_rows();
      ASSERT_LE(on_host.rows + tables.split.table->disk_use().rows, tables.split.table->rows());
      tables.step(kManyKeys);
    } else {
      save_table(tables.split, folder.path(), ++iteration, base);
      base = 1;
      const fs::path path = saved_path(folder.path(), iteration);
      TableRig loaded(GetParam(), spec);
      loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
      ASSERT_TRUE(loaded.bytes() == tables.plain.bytes());
    }
  }
  for (const int64_t times : walks_over) EXPECT_GT(times, 2);
}

/// A search for an absent key ends at an empty index entry. Evictions leave tombstones, so the index must be rebuilt
/// before no empty entry remains.
TEST_P(TableDiskPlacesTest, TheIndexIsBuiltAgainBeforeMarksFillIt) {
  const TableSpec spec = this->spec();
  TableRig rig(GetParam(), spec, 2, 2, true, DType::f32, roomy(spec));
  std::mt19937_64 random(7);
  int64_t next = 0, keys = 30000;
  const auto step = [&] {
    Bags bags = empty_bags(spec, spec.samples);
    for (auto& slot : bags)
      for (auto& bag : slot) bag = {next, next + 1, next + 2}, next = (next + 3) % keys;
    rig.step(bags, random_floats(spec.samples * spec.columns() * spec.dim, random));
  };
  while (rig.table->disk_use().written == 0) step();
  const int64_t places = rig.table->index_places(), builds = rig.table->disk_use().index_builds;
  // Limits the number of different keys, but keeps it above the number of index entries.
  keys = std::max(keys, 7 * places / 4);
  while (rig.table->disk_use().written < 6 * places) step();
  EXPECT_EQ(rig.table->index_places(), places);
  EXPECT_GT(rig.table->disk_use().index_builds, builds);
}

/// Evicted rows may be copied, and their slots reused, while queued steps still run. Therefore rows of queued steps are
/// not evicted, even if other rows were accessed more often.
TEST_P(TableDiskPlacesTest, RowsOfStepsThatMayBeQueuedDoNotLeave) {
  constexpr int kRing = 3;
  const TableSpec spec = this->spec();
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 2, kRing, true, DType::f32, roomy(spec));
  std::mt19937_64 random(5);
  const auto step = [&](const Bags& bags) {
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    EXPECT_EQ(split.step(bags, dy), plain.step(bags, dy));
  };
  int64_t next = 0;
  const auto new_keys = [&] {
    Bags bags = empty_bags(spec, spec.samples);
    for (auto& slot : bags)
      for (auto& bag : slot) bag = {next++};
    return bags;
  };
  // Old rows have many accesses; rows of the last steps have one.
  std::vector<Bags> old;
  for (int t = 0; t < 60 && split.table->disk_use().written == 0; ++t) {
    old.push_back(new_keys());
    for (int times = 0; times < 2; ++times) step(old.back());
  }
  ASSERT_GT(split.table->disk_use().written, 0);
  int times_left = 0;
  for (int t = 0; t < 200 && times_left < 3; ++t) {
    std::vector<Bags> last;
    for (int i = 0; i < kRing; ++i) {
      const int64_t written = split.table->disk_use().written;
      last.push_back(new_keys());
      step(last.back());
      if (split.table->disk_use().written == written || i + 1 < kRing) continue;
      ++times_left;
      const int64_t brought = split.table->disk_use().brought;
      for (const Bags& bags : last) step(bags);
      EXPECT_EQ(split.table->disk_use().brought, brought) << "a row of the last " << kRing << " steps had left";
    }
  }
  EXPECT_EQ(times_left, 3);
  EXPECT_EQ(split.table->disk_use().waits_to_leave, 0);
  EXPECT_TRUE(split.bytes() == plain.bytes());
}

/// If another table or rank rejects the batch, rows of new keys are removed again.
TEST_P(TableDiskPlacesTest, NewRowsOfARefusedBatchGo) {
  const TableSpec spec = this->spec();
  TablesInStep tables(GetParam(), spec, roomy(spec));
  for (int t = 0; t < 40 || tables.split.table->disk_use().free_places < 50; ++t) {
    ASSERT_LT(t, 100);
    tables.step(kManyKeys);
  }
  const DiskUse before = tables.split.table->disk_use();
  Bags bags = empty_bags(spec, spec.samples);
  for (int64_t key = 0; key < 40; ++key) bags[0][static_cast<size_t>(key)] = {key + 1'000'000};
  tables.split.prepare(bags, 0.1f, false);
  EXPECT_EQ(tables.split.table->disk_use().into_places - before.into_places, 40);
  EXPECT_EQ(tables.split.table->rows(), tables.plain.table->rows());
  EXPECT_EQ(tables.split.table->disk_use().free_places, before.free_places);
  EXPECT_TRUE(tables.split.bytes() == tables.plain.bytes());
}

}  // namespace
}  // namespace hctr::test
