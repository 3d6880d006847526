// Tables with rows on disk have the same bytes as tables with all rows in memory.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "core/base/platform.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/engine/tiers/disk_tiers.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

class TableDiskTest : public testing::Test {
 protected:
  /// Limits the memory to little more than the rows and metadata of `batches` batches, and the disk to `disk` bytes.
  RowMemoryLimits limits(const TableSpec& spec, double batches = 1, int64_t disk = int64_t{1} << 30) const {
    RowMemoryLimits limits{
        .device = 0, .move_every = 0, .host_setting = "\"host\"", .disk_folder = folder_.path().string(), .disk = disk};
    const double more = (batches - 1) * static_cast<double>(spec.key_capacity * (number_bytes_of_row(spec) + 64));
    limits.host = least_host(kCpu, spec, limits) + static_cast<int64_t>(more * 4 / 3);
    return limits;
  }
  TemporaryFolder folder_;
};

/// Trains both tables for some steps, with lookups of other keys, and compares every output and all rows.
void expect_equal_with_disk(TableRig& plain, TableRig& split, int steps = 30, int64_t vocabulary = 4000) {
  const TableSpec& spec = plain.spec();
  std::mt19937_64 random(3);
  for (int t = 0; t < steps; ++t) {
    SCOPED_TRACE(cat("step ", t));
    const Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy));
    const Bags others = random_bags(spec, spec.samples, 3, vocabulary, random);
    ASSERT_EQ(split.lookup(others), plain.lookup(others));
    ASSERT_EQ(split.table->rows(), plain.table->rows());
  }
  EXPECT_EQ(split.table->counts(), plain.table->counts());
  EXPECT_TRUE(split.bytes() == plain.bytes());
  EXPECT_LE(split.runtime.row_memory().host_bytes(), split.runtime.row_memory().limits().host);
}

/// Expects that each row was evicted twice on average.
void expect_disk_was_used(TableRig& rig, int64_t moves = 2) {
  const DiskUse use = rig.table->disk_use();
  EXPECT_GT(use.rows, 300);
  EXPECT_GT(use.written, moves * rig.table->rows());
  EXPECT_GT(use.read, 1000);
  EXPECT_GT(use.bytes, use.rows * rig.spec().dim * 2);
}

/// Calls test(rule, update) for every optimizer, and ends after a failure.
template <class Test>
void for_each_update(const Test& test) {
  for (const UpdateType update : {UpdateType::local, UpdateType::lazy_global})
    for (const OptimizerType& type : optimizer_catalog()) {
      const DiskRule rule = type.kind;
      SCOPED_TRACE(cat("rule ", static_cast<int>(rule), ", update ", static_cast<int>(update)));
      if (update == UpdateType::lazy_global && rule != DiskRule::adam) continue;
      // with sanitizers, one case per code path is enough
      if (kSanitized && rule != DiskRule::sgd && rule != DiskRule::adam) continue;
      test(rule, update);
      if (testing::Test::HasFailure()) return;
    }
}

TEST_F(TableDiskTest, EveryOptimizerAndUpdateTypeGivesTheSameBytes) {
  for_each_update([&](DiskRule rule, UpdateType update) {
    TableSpec spec = disk_spec();
    spec.optimizer.kind = rule;
    spec.update = update;
    TableRig plain(kCpu, spec), split(kCpu, spec, 2, 2, true, DType::f32, limits(spec));
    expect_equal_with_disk(plain, split);
    expect_disk_was_used(split);
  });
}

/// All keys of the bags with their slots.
std::vector<ops::RowOwner> owners_of(const Bags& bags) {
  std::vector<ops::RowOwner> owners;
  for (size_t slot = 0; slot < bags.size(); ++slot)
    for (const auto& bag : bags[slot])
      for (const int64_t key : bag) owners.push_back({key, static_cast<int32_t>(slot)});
  return owners;
}

/// Look-ahead requests rows in memory, rows on disk, missing rows, and rows that are being evicted, changed and evicted
/// again. Prefetched data must never be older than the row.
TEST_F(TableDiskTest, RowsThatAreReadAheadGiveTheSameBytes) {
  for (const bool by_slot : {false, true}) {
    if (kSanitized && !by_slot) continue;  // with sanitizers, one case per code path is enough
    TableSpec spec = disk_spec();
    spec.identity_by_slot = by_slot;
    TableRig plain(kCpu, spec), split(kCpu, spec, 2, 2, true, DType::f32, limits(spec));
    std::jthread ahead([&](const std::stop_token& done) {
      // `random` has the same seed as in expect_equal_with_disk(), so the first batch here is the first batch there.
      std::mt19937_64 random(3), other(5);
      for (int t = 0; !done.stop_requested(); ++t) {
        split.table->look_ahead(owners_of(random_bags(spec, spec.samples, 3, 4000, t % 2 == 0 ? random : other)));
        std::this_thread::yield();
      }
    });
    expect_equal_with_disk(plain, split);
    ahead.request_stop();
    ahead.join();
    expect_disk_was_used(split);
    EXPECT_GT(split.table->disk_use().ahead, 500);
    EXPECT_GT(split.table->disk_use().read_ahead, 50);
  }
}

/// Evictions and fetches leave holes in the file. Compaction keeps the file below about twice the number of rows.
TEST_F(TableDiskTest, RowsMoveTogetherInTheFile) {
  TableSpec spec = disk_spec();
  spec.dim = 512;  // 42 rows per block
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  std::mt19937_64 random(3);
  for (int t = 0; t < 60; ++t) {
    const Bags bags = random_bags(spec, spec.samples, 3, 4000, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy));
  }
  EXPECT_TRUE(split.bytes() == plain.bytes());
  const DiskUse use = split.table->disk_use();
  EXPECT_GT(use.moved, 1000);
  EXPECT_LT(split.runtime.row_memory().disk_bytes(), use.bytes * 23 / 10);
}

/// A batch that cycles through `keys` keys from `first`.
Bags bags_of_keys(const TableSpec& spec, int64_t first, int64_t keys) {
  Bags bags(static_cast<size_t>(spec.slots), std::vector<std::vector<int64_t>>(static_cast<size_t>(spec.samples)));
  int64_t next = 0;
  for (auto& slot : bags)
    for (auto& bag : slot) bag = {first + next++ % keys};
  return bags;
}

/// Rows of every tenth batch stay in memory, while rows of single batches are evicted and fetched. A policy by last
/// access alone would evict the frequent rows each time. Once no batch uses them, they are evicted.
TEST_F(TableDiskTest, RowsThatAreUsedOftenStayAndWhatWasUsedLongAgoLeaves) {
  TableSpec spec = small_spec(384, 3, 32, 32 * 3 * 3);  // wide rows, so that the map of rows on disk is small
  spec.optimizer.kind = DiskRule::adam;
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec, 1.1));
  std::mt19937_64 random(3);
  const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
  int64_t next = 10'000;  // next unused key
  /// Returns the number of rows fetched from disk.
  const auto step = [&](int64_t first, int64_t keys) {
    const Bags bags = bags_of_keys(spec, first, keys);
    const int64_t before = split.table->disk_use().brought;
    EXPECT_TRUE(split.step(bags, dy) == plain.step(bags, dy));
    return split.table->disk_use().brought - before;
  };
  const auto often_and_once = [&](int64_t often, int times) {
    std::vector<int64_t> brought;
    for (int t = 0; t < times; ++t) {
      brought.push_back(step(often, 50));
      for (int once = 0; once < 9; ++once) step(next += 48, 48);
    }
    return brought;
  };
  const std::vector<int64_t> first = often_and_once(0, 10), second = often_and_once(5000, 15);
  EXPECT_LT(std::accumulate(first.begin(), first.end(), int64_t{0}), 4 * 50) << "of 9 * 50";
  EXPECT_EQ(std::accumulate(second.end() - 5, second.end(), int64_t{0}), 0);
  EXPECT_EQ(step(0, 50), 50) << "they have left";
  EXPECT_TRUE(split.bytes() == plain.bytes());
}

TEST_F(TableDiskTest, SlotsTwoByteRowsAndRowWiseStatesGiveTheSameBytes) {
  for (const bool row_wise : {false, true}) {
    TableSpec spec = disk_spec();
    spec.dim = 256;
    spec.identity_by_slot = row_wise;
    spec.storage = DType::bf16;
    spec.optimizer = {.kind = DiskRule::adagrad, .epsilon = 1e-3f, .row_wise = row_wise};
    if (!row_wise) spec.state_storage = DType::bf16;
    TableRig plain(kCpu, spec), split(kCpu, spec, 2, 2, true, DType::f32, limits(spec, 1.5));
    expect_equal_with_disk(plain, split);
    expect_disk_was_used(split, 1);
  }
}

TEST_F(TableDiskTest, EveryBudgetGivesTheSameBytes) {
  TableSpec spec = disk_spec();
  spec.dim = 192;
  for (int eighths = 8; eighths < 30; eighths += kSanitized ? 10 : 5) {
    SCOPED_TRACE(eighths);
    TableRig plain(kCpu, spec), split(kCpu, spec, 1, 3, true, DType::f32, limits(spec, eighths / 8.0));
    expect_equal_with_disk(plain, split, 12, 30000);
    EXPECT_GT(split.table->disk_use().written, 0);
  }
}

/// The rows in memory and the keys of batches in progress fill the index to its maximum load. The index need not grow,
/// because evicted rows leave it before fetched rows enter it.
TEST_F(TableDiskTest, AnIndexThatIsNearlyFullStaysAsLargeAsItIs) {
  TableSpec spec = disk_spec();
  spec.dim = 512;
  RowMemoryLimits memory = limits(spec);
  // 7680 rows and 4 * 1152 keys are 12,288 entries, three quarters of 2^14. The host memory holds these entries, blocks
  // of 288 rows in transfer, and rounding, but not an index of twice the size. A quarter of the budget is reserved for
  // the map of rows on disk.
  memory.host =
      4 * (7680 * (number_bytes_of_row(spec) + 12) + 3 * 288 * number_bytes_of_row(spec) + (1 << 14) * 16 + (9 << 16)) /
      3;
  TableRig plain(kCpu, spec), split(kCpu, spec, 2, 3, true, DType::f32, memory);
  expect_equal_with_disk(plain, split, 36, 60000);
  EXPECT_GT(split.table->disk_use().read, 200);
}

/// With many short rows, the map of rows on disk exceeds the host budget.
TEST_F(TableDiskTest, AMapThatOutgrowsTheHostGoesOnOnTheDisk) {
  TableSpec spec = disk_spec();
  spec.dim = 4;
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  expect_equal_with_disk(plain, split, 40, 200'000);
  const DiskUse use = split.table->disk_use();
  constexpr int64_t kRecord = 3 * 4 * sizeof(float);  // vector and both moments
  EXPECT_GT(use.bytes - use.rows * kRecord, split.runtime.row_memory().limits().host) << "the map";
}

TEST_F(TableDiskTest, AdmissionExpiryAndCountsGiveTheSameBytes) {
  for (const int which : {0, 1, 2, 3}) {
    SCOPED_TRACE(which);
    TableSpec spec = disk_spec();
    if (which == 0) spec.policy.min_count = 2;
    if (which == 1) spec.policy.admit_probability = 0.5;
    if (which == 2) spec.policy.expire_after = 6;
    if (which == 3) spec.policy.counts_keys = true;
    TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    expect_equal_with_disk(plain, split, 40);
    expect_disk_was_used(split, 1);
    if (which == 2) {
      EXPECT_GT(split.table->counts().at("rows_expired"), 1000);
    }
  }
}

/// Runs all policies with a row limit. The limit counts rows on disk, and the same rows are removed as without a disk.
TEST_F(TableDiskTest, ALimitCountsRowsInBothAndTheSameRowsLeave) {
  for (const int which : {0, 1, 2, 3, 4, 5}) {
    for (const bool by_slot : {false, true}) {
      // with sanitizers, one case per code path is enough
      if (kSanitized && (which == 0 || by_slot == (which % 2 == 0))) continue;
      SCOPED_TRACE(cat("policy ", which, by_slot ? ", by slot" : ""));
      TableSpec spec = disk_spec();
      spec.identity_by_slot = by_slot;
      spec.row_limit = by_slot ? 4000 : 2500;
      if (which == 0) spec.row_limit = 12000;  // the limit exceeds the number of keys
      if (which == 1 || which >= 4) spec.policy.when_full = WhenFull::evict_lru;
      if (which == 2) spec.policy.when_full = WhenFull::evict_lfu;
      if (which == 3) spec.policy.when_full = WhenFull::ignore;
      if (which == 4) spec.policy.min_count = 2;
      if (which == 5) {
        spec.policy.expire_after = 9;
        spec.row_limit = by_slot ? 2500 : 1500;
      }
      TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec, which == 2 ? 1.5 : 1));
      expect_equal_with_disk(plain, split, 40);
      EXPECT_GT(split.table->disk_use().read, 1000);
      if (which == 1 || which == 2 || which == 5) {
        EXPECT_GT(split.table->counts().at("rows_evicted"), which == 5 ? 200 : 1000);
      }
      if (which == 3) {
        EXPECT_GT(split.table->counts().at("occurrences_ignored"), 1000);
      }
      if (HasFailure()) return;
    }
  }
}

TEST_F(TableDiskTest, KeysBeyondALimitEndTheRunWithTheRowsOfItsSteps) {
  // 400 rows are fewer than a batch has; 1800 rows are more than memory holds
  for (const int64_t limit : {400, 1800}) {
    TableSpec spec = disk_spec();
    spec.row_limit = limit;
    TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    std::mt19937_64 random(3);
    std::string expected, message;
    for (int t = 0; t < 20 && expected.empty(); ++t) {
      const Bags bags = random_bags(spec, spec.samples, 3, 4000, random);
      const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
      const auto step = [&](TableRig& rig, std::string& error_text) {
        try {
          rig.step(bags, dy);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), Kind::data);
          error_text = error.what();
        }
      };
      step(plain, expected);
      step(split, message);
    }
    EXPECT_NE(message.find(cat("the ", limit, " rows that \"max_vocabulary_size_per_gpu\" allows")), std::string::npos)
        << message;
    EXPECT_EQ(message, expected);
    EXPECT_EQ(split.table->rows(), plain.table->rows());
    EXPECT_TRUE(split.bytes() == plain.bytes()) << "a model can still be saved";
    if (limit == 1800) {
      EXPECT_GT(split.table->disk_use().rows, 0);
    }
  }
}

TEST_F(TableDiskTest, FrequentRowsAreFoundWhereverTheyAre) {
  TableSpec spec = disk_spec();
  spec.policy.finds_frequent = true;
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  expect_equal_with_disk(plain, split);
  const std::vector<float> expected = frequent_rows(plain, 3000);
  EXPECT_GT(expected.size(), 3000u * 2 * 64);
  EXPECT_TRUE(frequent_rows(split, 3000) == expected);
}

TEST_F(TableDiskTest, ImportedRowsGoToTheDisk) {
  TableSpec spec = disk_spec();
  TableRig source(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  std::mt19937_64 random(3);
  for (int t = 0; t < 12; ++t)
    source.step(random_bags(spec, spec.samples, 3, 30000, random),
                random_floats(spec.samples * spec.columns() * spec.dim, random));
  for (int times = 0; times < 2; ++times)
    source.table->export_rows(true, [&](const RowBlock& block) { split.table->import_rows(block); });
  EXPECT_GT(split.table->disk_use().rows, 1000);
  EXPECT_TRUE(split.bytes() == source.bytes());
}

StateArray array_of(const Manifest& manifest, const std::string& name) {
  for (const StateArray& array : manifest.files.at(0).arrays)
    if (array.name == name || array.name.ends_with("/" + name)) return array;
  ADD_FAILURE() << "no array " << name;
  return {};
}

TEST_F(TableDiskTest, CheckpointsHoldTheSameRowsAndTrainOnFromThere) {
  for (const auto& [marks, limited] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    if (kSanitized && marks != limited) continue;  // with sanitizers, one case per code path is enough
    SCOPED_TRACE(cat(marks ? "increments" : "whole", limited ? ", limited" : ""));
    const TemporaryFolder folder;
    TableSpec spec = disk_spec();
    spec.marks_changes = marks;
    spec.policy.expire_after = 12;
    if (limited) {
      spec.policy = {.when_full = WhenFull::evict_lru};
      spec.row_limit = 3000;
    }
    spec.identity_by_slot = marks;
    TableRig split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    std::mt19937_64 random(3);
    const auto step = [&](const std::vector<TableRig*>& rigs) {
      const Bags bags = random_bags(spec, spec.samples, 3, 4000, random);
      const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
      std::vector<float> first;
      for (TableRig* rig : rigs) {
        const std::vector<float> y = rig->step(bags, dy);
        if (first.empty()) first = y;
        EXPECT_TRUE(y == first);
      }
    };
    for (int t = 0; t < 12; ++t) step({&split});
    save_table(split, folder.path(), 1, {});
    for (int t = 0; t < 2; ++t) step({&split});
    save_table(split, folder.path(), 2, marks ? std::optional<int64_t>(1) : std::nullopt);
    const fs::path path = folder / "iteration_000002";
    TableRig in_memory(kCpu, spec), on_disk(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    for (TableRig* rig : {&in_memory, &on_disk}) {
      rig->table->load_state(StateReader(path, read_manifest(path), true, 0, rig->runtime.compute_stream()));
      EXPECT_TRUE(rig->bytes() == split.bytes());
      rig->continue_at(split);
    }
    EXPECT_GT(on_disk.table->disk_use().rows, 500);
    for (int t = 0; t < 6; ++t) step({&split, &in_memory, &on_disk});
    EXPECT_TRUE(in_memory.bytes() == split.bytes());
    EXPECT_TRUE(on_disk.bytes() == split.bytes());
    if (!marks) continue;
    // Few rows change before the next increment. Some rows were fetched from disk, and some rows expired.
    save_table(on_disk, folder.path(), 3, 1);
    const fs::path next = folder / "iteration_000003";
    const StateArray vectors = array_of(read_manifest(next), "vectors");
    ASSERT_TRUE(vectors.from_base);
    EXPECT_GT(vectors.from_base->rows, 1000);
    TableRig again(kCpu, spec);
    again.table->load_state(StateReader(next, read_manifest(next), true, 0, again.runtime.compute_stream()));
    EXPECT_TRUE(again.bytes() == split.bytes());
  }
}

TEST_F(TableDiskTest, IncrementsHoldTheRowsThatHaveChanged) {
  const TemporaryFolder folder;
  TableSpec spec = disk_spec();
  spec.marks_changes = true;
  TableRig split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  std::mt19937_64 random(3);
  const auto step = [&](int64_t vocabulary) {
    split.step(random_bags(spec, spec.samples, 3, vocabulary, random),
               random_floats(spec.samples * spec.columns() * spec.dim, random));
  };
  for (int t = 0; t < 12; ++t) step(4000);
  save_table(split, folder.path(), 1, {});
  for (int64_t iteration = 2; iteration < 6; ++iteration) {
    SCOPED_TRACE(iteration);
    step(iteration == 4 ? 6000 : 4000);
    save_table(split, folder.path(), iteration, 1);
    const fs::path path = folder / cat("iteration_00000", iteration);
    const Manifest manifest = read_manifest(path);
    const StateArray vectors = array_of(manifest, "vectors");
    ASSERT_TRUE(vectors.from_base);
    EXPECT_LE(vectors.from_base->count, (iteration - 1) * spec.key_capacity);
    EXPECT_LT(vectors.from_base->count, vectors.from_base->rows * 9 / 10);
    EXPECT_GT(vectors.from_base->count, 300);
    EXPECT_EQ(array_of(manifest, "keys").from_base->count, 0) << "rows stay at their places";
    TableRig loaded(kCpu, spec);
    loaded.table->load_state(StateReader(path, manifest, true, 0, loaded.runtime.compute_stream()));
    EXPECT_TRUE(loaded.bytes() == split.bytes());
  }
  EXPECT_GT(split.table->disk_use().read, 1000);
}

/// The unlinked files that this process has open in a folder.
std::vector<std::string> scratch_files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const fs::path target = fs::read_symlink(entry.path(), error);
    if (!error && target.string().starts_with(fs::canonical(folder).string() + "/")) files.push_back(entry.path());
  }
  return files;
}

TEST_F(TableDiskTest, AnAlteredRowIsFound) {
  TableSpec spec = disk_spec();
  spec.ranks = 2;
  TableRig rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  std::mt19937_64 random(3);
  for (int t = 0; t < 10; ++t) {  // separate statements, because the evaluation order of arguments is unspecified
    const auto gradients = random_floats(spec.samples * spec.columns() * spec.dim, random);
    rig.step(random_bags(spec, spec.samples, 3, 4000, random), gradients);
  }
  const std::vector<std::string> files = scratch_files_in(folder_.path());
  ASSERT_EQ(files.size(), 1u);
  while (rig.table->disk_use().unwritten) std::this_thread::yield();
  EXPECT_TRUE(fs::is_empty(folder_.path())) << "the file has no name";
  {
    const File file(std::fopen(files[0].c_str(), "r+b"));
    ASSERT_TRUE(file);
    std::fseek(file.get(), 5 * 128 * 3 * 4 + 17, SEEK_SET);
    const int byte = std::fgetc(file.get());
    std::fseek(file.get(), -1, SEEK_CUR);
    std::fputc(byte ^ 4, file.get());
  }
  std::vector<ops::RowOwner> all;
  for (int64_t key = 0; key < 4000; ++key) all.push_back({key, 0});
  rig.table->look_ahead(all);  // does not report read errors
  EXPECT_GT(rig.table->disk_use().ahead, 500);
  const std::string message = message_of(Kind::io, [&] { rig.bytes(); });
  EXPECT_NE(message.find("table 'small' on rank 0"), std::string::npos) << message;
  EXPECT_NE(message.find(cat("at byte ", 5 * 128 * 3 * 4, " of a file in '", folder_.path().string(), "'")),
            std::string::npos)
      << message;
  // The lookup does not fail, but omits the row, because other ranks wait for vectors. The error is raised at the next
  // rendezvous of the ranks.
  rig.table->check_keys();
  for (int64_t key = 0; key < 4000;) {
    Bags bags = empty_bags(spec, spec.samples);
    for (auto& slot : bags)
      for (auto& bag : slot) bag = {key, key + 1, key + 2}, key += 3;
    rig.lookup(bags);
  }
  EXPECT_NE(
      message_of(Kind::io, [&] { rig.table->check_keys(); }).find(" rows of table 'small' on rank 0 from the disk"),
      std::string::npos);
  // Waits for running evictions. An eviction after the truncation would extend the file again.
  while (rig.table->disk_use().unwritten) std::this_thread::yield();
  fs::resize_file(files[0], 1000);
  EXPECT_NE(message_of(Kind::io, [&] { rig.bytes(); }).find("the file is too short"), std::string::npos);
}

TEST_F(TableDiskTest, AFullDiskEndsTheStepAndLosesNoRow) {
  // In the first case, the rows are evicted in one block. In the second, they are evicted in several blocks, and the
  // first blocks still fit on the disk.
  for (const auto& [dim, disk] : {std::pair(int64_t{64}, int64_t{500'000}), {2048, 20'000'000}}) {
    SCOPED_TRACE(dim);
    TableSpec spec = disk_spec();
    spec.dim = dim;
    TableRig plain(kCpu, spec), rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec, 1, disk));
    std::mt19937_64 random(3);
    std::string message;
    for (int t = 0; t < 20 && message.empty(); ++t) {
      const Bags bags = random_bags(spec, spec.samples, 3, 20000, random);
      const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
      try {
        rig.step(bags, dy);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Kind::io);
        message = error.what();
        break;
      }
      plain.step(bags, dy);
    }
    EXPECT_NE(message.find("\"disk_limit\" of \"table_memory\", or the space that is free there when the run "
                           "starts, must be at least "),
              std::string::npos)
        << message;
    EXPECT_TRUE(rig.bytes() == plain.bytes()) << "a model can still be saved";
  }
}

TEST_F(TableDiskTest, ABudgetThatIsTooSmallSaysTheLeast) {
  const TableSpec spec = disk_spec();
  RowMemoryLimits small = limits(spec);
  small.host = 1 << 18;
  const std::string message =
      message_of(Kind::device, [&] { TableRig rig(kCpu, spec, 1, 2, true, DType::f32, small); });
  const size_t at = message.find("must be at least ");
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_NE(message.find(" are left, 32768 of these for the map of rows on disk; "), std::string::npos) << message;
  small.host = std::stoll(message.substr(at + 17));
  TableRig plain(kCpu, spec), enough(kCpu, spec, 1, 2, true, DType::f32, small);
  expect_equal_with_disk(plain, enough);
}

/// The shared row is never evicted, so a batch of distinct keys needs memory for one row more than it has keys.
TEST_F(TableDiskTest, TheLeastBudgetHasRoomForABatchAndTheSharedRow) {
  TableSpec spec = disk_spec();
  spec.policy.when_full = WhenFull::ignore;
  spec.row_limit = 4000;
  TableRig plain(kCpu, spec), rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  const std::vector<float> dy(static_cast<size_t>(spec.samples * spec.columns() * spec.dim), 0.25f);
  int64_t key = 0;
  for (int t = 0; t < 4; ++t) {
    Bags bags = empty_bags(spec, spec.samples);
    for (auto& slot : bags)
      for (auto& bag : slot)
        for (int i = 0; i < 3; ++i) bag.push_back(key++);
    ASSERT_EQ(rig.step(bags, dy), plain.step(bags, dy));
  }
  EXPECT_GT(rig.table->disk_use().rows, 0);
}

TEST_F(TableDiskTest, WhatNeedsEveryRowInMemoryIsRefused) {
  TableSpec spec = disk_spec();
  spec.update = UpdateType::global;
  const auto refusal = [&] {
    return message_of(Kind::config, [&] { TableRig rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec)); });
  };
  EXPECT_NE(refusal().find("\"LazyGlobal\""), std::string::npos) << refusal();
}

TEST_F(TableDiskTest, WhereAllRowsFitNoneIsWritten) {
  const TableSpec spec = disk_spec();
  TableRig plain(kCpu, spec), roomy(kCpu, spec, 1, 2, true, DType::f32, limits(spec, 100));
  expect_equal_with_disk(plain, roomy, 10);
  EXPECT_EQ(roomy.table->disk_use().written, 0);
}

class TableDiskTiersTest : public DiskTiers {};
HCTR_ON_EACH_DEVICE(TableDiskTiersTest);

TEST_P(TableDiskTiersTest, EveryOptimizerAndUpdateTypeGivesTheSameBytes) {
  for_each_update([&](DiskRule rule, UpdateType update) {
    TableSpec spec = this->spec(rule);
    spec.update = update;
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 2, 2, true, DType::f32, limits(spec));
    expect_equal_with_disk(plain, split, 16, 12000);
    expect_all_tiers(split);
  });
}

TEST_P(TableDiskTiersTest, PoliciesSlotsAndTwoByteRowsGiveTheSameBytes) {
  for (const int which : {0, 1, 2, 3}) {
    SCOPED_TRACE(which);
    TableSpec spec = this->spec();
    if (which == 0) spec.policy.min_count = 2;
    if (which == 1) spec.policy.expire_after = 6;
    if (which == 2) spec.identity_by_slot = true;
    if (which == 3) {
      spec.dim *= 2;
      spec.storage = spec.state_storage = DType::bf16;
    }
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 3, true, DType::f32, limits(spec));
    expect_equal_with_disk(plain, split, which == 0 ? 40 : 20, 12000);
    expect_all_tiers(split);
  }
}

/// Keys of the second batch are looked up while the first step is queued and may still run.
TEST_P(TableDiskTiersTest, ABatchIsPreparedWhileTheOneBeforeIsComputed) {
  const TableSpec spec = this->spec();
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 2, 3, true, DType::f32, limits(spec));
  std::mt19937_64 random(5);
  std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
  for (int t = 0; t < 24; ++t) {
    const Bags bags = random_bags(spec, spec.samples, 3, t % 3 == 0 ? 12000 : 500, random);
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy)) << t;
  }
  EXPECT_TRUE(split.bytes() == plain.bytes());
  expect_all_tiers(split);
}

/// Rows are evicted and fetched before the checkpoint reads the rows on disk. The disk has little free space.
TEST_P(TableDiskTiersTest, ACheckpointThatIsWrittenLaterHasTheRowsOfItsStep) {
  const TemporaryFolder folder;
  TableSpec spec = this->spec();
  spec.marks_changes = true;
  RowMemoryLimits limits = this->limits(spec);
  limits.host += 1 << 20;
  std::mt19937_64 random(3);
  const auto step = [&](const std::vector<TableRig*>& rigs) {
    const Bags bags = random_bags(spec, spec.samples, 3, 12000, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    const std::vector<float> y = rigs[0]->step(bags, dy);
    for (size_t i = 1; i < rigs.size(); ++i) ASSERT_EQ(rigs[i]->step(bags, dy), y);
  };
  {
    TableRig roomy(GetParam(), spec, 2, 2, true, DType::f32, limits);
    for (int t = 0; t < 40; ++t) step({&roomy});
    limits.disk = roomy.table->disk_use().bytes * 4 / 3;
  }
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 2, 2, true, DType::f32, limits);
  for (int t = 0; t < 16; ++t) step({&plain, &split});
  for (const int64_t iteration : {1, 2, 3}) {
    SCOPED_TRACE(iteration);
    const std::string bytes = plain.bytes();
    const int64_t written = split.table->disk_use().written;
    TableSavedLater later(split, folder.path(), iteration, iteration > 1 ? std::optional<int64_t>(1) : std::nullopt);
    ASSERT_FALSE(later.later().rows.empty()) << later.later().refused;
    ASSERT_EQ(later.write_beside(std::chrono::milliseconds(100),
                                 [&] {
                                   for (int t = 0; t < 8; ++t) step({&plain, &split});
                                 }),
              "");
    EXPECT_GT(split.table->disk_use().written, written + 1000);
    TableRig loaded(GetParam(), spec);
    const fs::path path = saved_path(folder.path(), iteration);
    loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
    EXPECT_TRUE(loaded.bytes() == bytes);
  }
  EXPECT_TRUE(split.bytes() == plain.bytes());
  expect_all_tiers(split);
}

}  // namespace
}  // namespace hctr::test
