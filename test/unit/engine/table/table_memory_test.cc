// Tables with rows in host memory have the same bytes as tables with all rows on the device.
#include <gtest/gtest.h>

#include "core/base/platform.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

using MemoryRule = ops::Optimizer::Kind;

class TableMemoryTest : public OnDevice {
 protected:
  static int64_t granule() { return static_cast<int64_t>(ReservedBuffer(GetParam(), 1).granularity()); }
  /// Device memory for `granules` granules of rows in addition to a table's minimum, and plenty of host memory. All
  /// rows may be swapped after every step.
  static RowMemoryLimits limits(const TableSpec& spec, int64_t granules, int64_t host = int64_t{1} << 30) {
    RowMemoryLimits limits{
        .host = host, .move_every = 1, .swap_always = true, .device_setting = "\"gpu\"", .host_setting = "\"host\""};
    // Buffers for moving rows may grow by some bytes. Half a granule is added on a GPU, so that this growth does not
    // take a granule from the rows.
    const int64_t spare = GetParam().is_cuda() ? granule() / 2 : 0;
    limits.device = least_device(GetParam(), spec, limits, 2) + granules * granule() + spare;
    return limits;
  }
};
HCTR_ON_EACH_DEVICE(TableMemoryTest);

TableSpec large_rows() {
  TableSpec spec = small_spec(512, 3, 128, 128 * 3 * 3);
  spec.optimizer.kind = MemoryRule::adam;
  return spec;
}

/// Returns the bags with keys reversed, so that large keys are frequent.
Bags reversed(Bags bags, int64_t vocabulary) {
  for (auto& slot : bags)
    for (auto& bag : slot)
      for (int64_t& key : bag) key = vocabulary - 1 - key;
  return bags;
}

/// Trains both tables for some steps, with lookups, and compares every output and all rows.
void expect_equal_training(TableRig& plain, TableRig& split, int steps = 9, int64_t vocabulary = 30000) {
  const TableSpec& spec = plain.spec();
  std::mt19937_64 random(3);
  for (int t = 0; t < steps; ++t) {
    SCOPED_TRACE(cat("step ", t));
    Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
    // Rows of direct keys start on the device in key order. Reversed keys make the frequent rows start on the host.
    if (!spec.direct.empty()) bags = reversed(std::move(bags), vocabulary);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy));
    ASSERT_EQ(split.lookup(bags), plain.lookup(bags));
  }
  EXPECT_EQ(split.table->counts(), plain.table->counts());
  EXPECT_TRUE(split.bytes() == plain.bytes());
}

void expect_moves(TableRig& rig) {
  const HostRows on_host = rig.table->host_rows();
  EXPECT_GT(on_host.moved, 150) << "every row on the device, in every step";
  EXPECT_GT(on_host.reads, on_host.reads_on_device);
  EXPECT_GT(on_host.reads_on_device, 0);
}

void expect_host_rows(TableRig& rig) {
  const HostRows on_host = rig.table->host_rows();
  EXPECT_GT(on_host.rows, rig.table->rows() / 4);
  EXPECT_LE(on_host.rows, rig.table->rows());
  EXPECT_GT(on_host.bytes, on_host.rows * rig.spec().dim);
}

TEST_P(TableMemoryTest, EveryOptimizerAndUpdateTypeGivesTheSameBytes) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global})
    for (const MemoryRule rule : {MemoryRule::sgd, MemoryRule::adagrad, MemoryRule::adam}) {
      if (update == UpdateType::lazy_global && rule != MemoryRule::adam) continue;
      if (kSanitized && rule != MemoryRule::adam && (rule != MemoryRule::sgd || update != UpdateType::local))
        continue;  // with sanitizers, one case per code path is enough
      const int64_t columns = rule == MemoryRule::sgd ? 1 : rule == MemoryRule::adagrad ? 2 : 3;
      for (const int64_t granules : {int64_t{0}, columns}) {
        if (kSanitized && granules == 0 && update == UpdateType::lazy_global)
          continue;  // with sanitizers, one case per code path is enough
        SCOPED_TRACE(cat("rule ", static_cast<int>(rule), ", update ", static_cast<int>(update), ", ", granules));
        TableSpec spec = large_rows();
        spec.optimizer.kind = rule;
        spec.update = update;
        TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, granules));
        expect_equal_training(plain, split);
        expect_host_rows(split);
        if (granules > 0) expect_moves(split);
        EXPECT_EQ(plain.table->host_rows().bytes, 0);
        if (HasFailure()) return;
      }
    }
}

TEST_P(TableMemoryTest, TwoByteRowsAndRowWiseStatesGiveTheSameBytes) {
  for (const bool row_wise : {false, true}) {
    TableSpec spec = large_rows();
    spec.storage = DType::bf16;
    spec.optimizer = {.kind = MemoryRule::adagrad, .epsilon = 1e-3f, .row_wise = row_wise};
    if (!row_wise) spec.state_storage = DType::bf16;
    if (row_wise) spec.dim = 1024;  // the states take one GPU granule, and the vectors exceed the remaining granules
    const int64_t granules = GetParam().is_cuda() && !row_wise ? 3 : 2;
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, granules));
    expect_equal_training(plain, split);
    expect_host_rows(split);
    expect_moves(split);
  }
}

TEST_P(TableMemoryTest, RowsThatLeaveGiveTheSameBytes) {
  for (const WhenFull when : {WhenFull::evict_lru, WhenFull::evict_lfu, WhenFull::ignore}) {
    if (kSanitized && when == WhenFull::evict_lfu) continue;  // with sanitizers, one case per code path is enough
    SCOPED_TRACE(static_cast<int>(when));
    TableSpec spec = large_rows();
    spec.row_limit = 1800;
    spec.policy.when_full = when;
    spec.policy.expire_after = when == WhenFull::evict_lru ? 4 : 0;
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, 3));
    expect_equal_training(plain, split);
    expect_host_rows(split);
    expect_moves(split);
    int64_t gone = 0;
    for (const auto& [what, count] : split.table->counts()) gone += count;
    EXPECT_GT(gone, 0) << "rows left, or were refused";
  }
}

TEST_P(TableMemoryTest, DirectKeysGiveTheSameBytes) {
  // Stochastic rounding depends on the key of the row.
  for (const DType storage : {DType::f32, DType::bf16}) {
    if (kSanitized && storage == DType::f32) continue;  // with sanitizers, one case per code path is enough
    TableSpec spec = large_rows();
    spec.storage = storage;
    spec.direct = direct_keys({1400, 1400, 1400}, false, {}, 0);
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, 3));
    expect_equal_training(plain, split, 6, 4200);
    expect_host_rows(split);
    expect_moves(split);
  }
}

TEST_P(TableMemoryTest, FrequentRowsAreFoundWhereverTheyAre) {
  for (const bool direct : {false, true}) {
    TableSpec spec = large_rows();
    spec.policy.finds_frequent = true;
    if (direct) spec.direct = direct_keys({1400, 1400, 1400}, false, {}, 0);
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, 3));
    expect_equal_training(plain, split, 8, 4200);
    expect_moves(split);
    const std::vector<float> expected = frequent_rows(plain, 500);
    EXPECT_GT(expected.size(), 500u * 1024);
    EXPECT_TRUE(frequent_rows(split, 500) == expected);
  }
}

TEST_P(TableMemoryTest, CheckpointsAndTheirIncrementsHoldTheSameRows) {
  for (const bool direct : {false, true}) {
    SCOPED_TRACE(direct ? "direct keys" : "hash index");
    const TemporaryFolder folder;
    TableSpec spec = large_rows();
    spec.marks_changes = true;
    if (direct) spec.direct = direct_keys({1400, 1400, 1400}, false, {}, 0);
    TableRig split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, 3));
    std::mt19937_64 random(3);
    const auto train = [&](int steps) {
      for (int t = 0; t < steps; ++t)
        split.step(reversed(random_bags(spec, spec.samples, 3, 4200, random), 4200),
                   random_floats(spec.samples * spec.columns() * spec.dim, random));
    };
    const auto expect_loaded = [&](int64_t iteration, const RowMemoryLimits& memory) {
      const fs::path path = folder / cat("iteration_00000", iteration);
      TableRig loaded(GetParam(), spec, 1, 2, true, DType::f32, memory);
      loaded.table->load_state(StateReader(path, read_manifest(path), true, 0, loaded.runtime.compute_stream()));
      EXPECT_TRUE(loaded.bytes() == split.bytes()) << iteration;
    };
    train(6);
    save_table(split, folder.path(), 1, {});
    expect_loaded(1, {});
    for (const int64_t iteration : {2, 3}) {
      train(2);
      save_table(split, folder.path(), iteration, 1);
      expect_loaded(iteration, {});
      expect_loaded(iteration, limits(spec, 3));
    }
    expect_moves(split);
    const Manifest last = read_manifest(folder / "iteration_000003");
    const StateArray* vectors = last.files.at(0).find("vectors");
    ASSERT_TRUE(vectors && vectors->from_base);
    // Checked only on the CPU: a GPU granule holds so many rows that all rows may have moved.
    if (GetParam() == kCpu) {
      EXPECT_LT(vectors->from_base->count, vectors->from_base->rows) << "no row is taken from the base";
    }
  }
}

TEST_P(TableMemoryTest, MovedRowsServeMoreReadsFromTheDevice) {
  const auto share = [&](int64_t every) {
    TableSpec spec = large_rows();
    spec.direct = direct_keys({1400, 1400, 1400}, false, {}, 0);
    RowMemoryLimits given = limits(spec, 3);
    given.move_every = every;
    given.swap_always = false;
    TableRig rig(GetParam(), spec, 1, 2, true, DType::f32, given);
    std::mt19937_64 random(3);
    for (int t = 0; t < 40; ++t)
      rig.step(reversed(random_bags(spec, spec.samples, 3, 4200, random), 4200),
               random_floats(spec.samples * spec.columns() * spec.dim, random));
    const HostRows rows = rig.table->host_rows();
    EXPECT_EQ(rows.moved > 0, every < 40);
    return static_cast<double>(rows.reads_on_device) / static_cast<double>(rows.reads);
  };
  EXPECT_GT(share(1), share(1000) + 0.1);
}

TEST_P(TableMemoryTest, RowsStayWhereMovesAreSwitchedOff) {
  const TableSpec spec = large_rows();
  RowMemoryLimits given = limits(spec, 3);
  given.move_every = 0;
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, given);
  expect_equal_training(plain, split, 6);
  expect_host_rows(split);
  EXPECT_EQ(split.table->host_rows().moved, 0);
}

TEST_P(TableMemoryTest, ImportedRowsGoToEitherMemory) {
  TableSpec spec = large_rows();
  TableRig source(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(spec, 1));
  std::mt19937_64 random(3);
  for (int t = 0; t < 5; ++t)
    source.step(random_bags(spec, spec.samples, 3, 30000, random),
                random_floats(spec.samples * spec.columns() * spec.dim, random));
  source.table->export_rows(true, [&](const RowBlock& block) { split.table->import_rows(block); });
  expect_host_rows(split);
  EXPECT_TRUE(split.bytes() == source.bytes());
}

TEST_P(TableMemoryTest, TablesShareOneBudget) {
  TableSpec spec = large_rows();
  RowMemoryLimits both = limits(spec, 0);
  both.device = 2 * *both.device + 5 * granule();
  Runtime runtime(GetParam(), {.row_memory = both});
  {
    const EmbeddingTable first(runtime, spec, 2), second(runtime, spec, 2);
    EXPECT_LE(runtime.row_memory().device_bytes(), *both.device);
    const auto [numbers, besides] = first.device_bytes();
    EXPECT_GT(numbers, 0);
    EXPECT_GT(besides, 0);
    EXPECT_EQ(runtime.row_memory().device_bytes(),
              numbers + besides + second.device_bytes().numbers + second.device_bytes().besides);
    EXPECT_GT(runtime.row_memory().host_bytes(), 0);
  }
  EXPECT_EQ(runtime.row_memory().device_bytes(), 0);
  EXPECT_EQ(runtime.row_memory().host_bytes(), 0);
}

/// Short rows: the memory of keys and index grows faster than the memory of the rows.
TableSpec small_rows() {
  TableSpec spec = small_spec(8, 3, 128, 128 * 3 * 3);
  spec.optimizer.kind = MemoryRule::adam;
  return spec;
}

/// The number of rows on the device after each of several steps that add keys.
std::vector<int64_t> grow_in_budget(TableRig& plain, TableRig& split, int steps, int64_t most) {
  const TableSpec& spec = plain.spec();
  std::mt19937_64 random(3);
  std::vector<int64_t> on_device;
  for (int t = 0; t < steps; ++t) {
    const Bags bags = random_bags(spec, spec.samples, 3, int64_t{1} << 20, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    EXPECT_EQ(split.step(bags, dy), plain.step(bags, dy)) << t;
    EXPECT_LE(split.runtime.row_memory().device_bytes(), most) << t;
    on_device.push_back(split.table->device_bytes().numbers);
  }
  EXPECT_TRUE(split.bytes() == plain.bytes());
  return on_device;
}

TEST_P(TableMemoryTest, RowsLeaveTheDeviceForKeysAndIndexThatGrow) {
  const TableSpec spec = small_rows();
  RowMemoryLimits given = limits(spec, GetParam().is_cuda() ? 6 : 40);
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, given);
  const std::vector<int64_t> on_device = grow_in_budget(plain, split, GetParam().is_cuda() ? 600 : 60, *given.device);
  const auto most = std::max_element(on_device.begin(), on_device.end());
  EXPECT_GT(*most, on_device.front()) << "rows first go to the device";
  EXPECT_LT(on_device.back(), *most) << "and make room later";
  EXPECT_TRUE(std::is_sorted(most, on_device.end(), std::greater<>())) << "and do not come back";
  EXPECT_GT(split.table->host_rows().moved, 150);
}

/// If memory permits, a table reserves space for more rows than the next batch needs. If not, it reserves less, but
/// evicts no row to get more space.
TEST_P(TableMemoryTest, NoRowLeavesTheDeviceInVain) {
  const TableSpec spec = small_rows();
  for (const int64_t granules : {8, 11, 15, 20, 29}) {
    SCOPED_TRACE(granules);
    RowMemoryLimits given = limits(spec, granules);
    TableRig rig(GetParam(), spec, 1, 2, true, DType::f32, given);
    std::mt19937_64 random(3);
    int64_t before = 0;
    for (int t = 0; t < 60; ++t) {
      try {
        rig.step(random_bags(spec, spec.samples, 3, int64_t{1} << 40, random),
                 random_floats(spec.samples * spec.columns() * spec.dim, random));
      } catch (const Error&) {  // here, keys and index alone exceed the budget
        break;
      }
      const int64_t numbers = rig.table->device_bytes().numbers;
      if (numbers < before) {
        EXPECT_GT(rig.runtime.row_memory().device_bytes(), *given.device - 4 * granule()) << t;
      }
      before = numbers;
    }
  }
}

TEST_P(TableMemoryTest, RowsOfOneTableLeaveTheDeviceForTheIndexOfAnother) {
  const TableSpec wide = small_rows();
  TableSpec deep = large_rows();
  deep.name = "deep";
  deep.policy.finds_frequent = true;
  // On a GPU, device memory at first holds all rows of `other`, and no row of `split`.
  RowMemoryLimits given = limits(wide, 0);
  given.device = (GetParam().is_cuda() ? 1 : 2) * *given.device + *limits(deep, GetParam().is_cuda() ? 12 : 40).device;
  TableRig plain(GetParam(), wide), split(GetParam(), wide, 1, 2, true, DType::f32, given);
  EmbeddingTable other(split.runtime, deep, 2);
  const int64_t before = other.device_bytes().numbers;
  ASSERT_GT(before, 0);
  grow_in_budget(plain, split, GetParam().is_cuda() ? 600 : 60, *given.device);
  EXPECT_LT(other.device_bytes().numbers, before);
  EXPECT_EQ(split.table->device_bytes().numbers, 0) << "first its own leave";
}

TEST_P(TableMemoryTest, AnIndexThatNoLongerFitsSaysTheLeast) {
  const TableSpec spec = small_rows();
  for (const bool host : {true, false}) {
    RowMemoryLimits given = limits(spec, 0);
    if (!host) given.host = 0, *given.device += (GetParam().is_cuda() ? 3 : 60) * granule();
    const auto grow = [&](TableRig& rig) {
      std::mt19937_64 random(3);
      for (int t = 0; t < (GetParam().is_cuda() ? 400 : 80); ++t) {
        rig.step(random_bags(spec, spec.samples, 3, int64_t{1} << 40, random),
                 random_floats(spec.samples * spec.columns() * spec.dim, random));
      }
    };
    int errors = 0;
    for (bool enough = false; !enough; ++errors) {
      TableRig rig(GetParam(), spec, 1, 2, true, DType::f32, given);
      std::string message;
      try {
        grow(rig);
        enough = true;
      } catch (const Error& error) {
        message = error.what();
        ASSERT_EQ(error.kind(), Kind::device) << message;
        const size_t at = message.find("\"gpu\" must be at least ");
        ASSERT_NE(at, std::string::npos) << message;
        EXPECT_NE(message.find("table 'small' on rank 0: "), std::string::npos) << message;
        EXPECT_EQ(message.find("keys, index and statistics") != std::string::npos, host) << message;
        EXPECT_NE(message.find("name a \"disk\""), std::string::npos) << message;
        const int64_t least = std::stoll(message.substr(at + 23));
        ASSERT_GT(least, *given.device);
        given.device = least;
      }
      EXPECT_LE(rig.runtime.row_memory().device_bytes(), *given.device);
      ASSERT_LT(errors, 60);
    }
    EXPECT_GT(errors, 1);
  }
}

TEST_P(TableMemoryTest, ABudgetThatIsTooSmallSaysTheLeast) {
  TableSpec spec = large_rows();
  RowMemoryLimits given = limits(spec, 1);
  given.host = 1 << 20;
  const std::string message =
      message_of(Kind::device, [&] { TableRig rig(GetParam(), spec, 1, 2, true, DType::f32, given); });
  EXPECT_NE(message.find("table 'small' on rank 0"), std::string::npos) << message;
  EXPECT_NE(message.find("\"host\" must be at least "), std::string::npos) << message;
  const size_t at = message.find("must be at least ") + 17;
  const int64_t least = std::stoll(message.substr(at));
  given.host = least;
  TableRig enough(GetParam(), spec, 1, 2, true, DType::f32, given);
  EXPECT_LE(enough.runtime.row_memory().host_bytes(), least);
}

}  // namespace
}  // namespace hctr::test
