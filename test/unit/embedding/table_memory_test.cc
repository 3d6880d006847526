// Tables with rows in host memory: the same bytes as tables whose rows all fit on the device.
#include <gtest/gtest.h>

#include "checkpoint/state_reader.h"
#include "plain_table.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

using MemoryRule = ops::Optimizer::Kind;

class TableMemoryTest : public OnDevice {
 protected:
  /// So many granules of rows on the device, and plenty of host memory.
  static RowMemoryLimits limits(int64_t granules, int64_t host = int64_t{1} << 30) {
    const int64_t granule = static_cast<int64_t>(ReservedBuffer(GetParam(), 1).granularity());
    return {.device = granules * granule, .host = host, .host_setting = "\"host\""};
  }
};
HCTR_ON_EACH_DEVICE(TableMemoryTest);

TableSpec large_rows() {
  TableSpec spec = small_spec(512, 3, 128, 128 * 3 * 3);
  spec.optimizer.kind = MemoryRule::adam;
  return spec;
}

/// Trains both for some steps, with evaluations, and compares every output and all rows.
void expect_equal_training(TableRig& plain, TableRig& split, int steps = 6, int64_t vocabulary = 30000) {
  const TableSpec& spec = plain.spec();
  std::mt19937_64 random(3);
  for (int t = 0; t < steps; ++t) {
    SCOPED_TRACE(cat("step ", t));
    const Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    ASSERT_EQ(split.step(bags, dy), plain.step(bags, dy));
    ASSERT_EQ(split.lookup(bags), plain.lookup(bags));
  }
  EXPECT_EQ(split.table->counts(), plain.table->counts());
  EXPECT_TRUE(split.bytes() == plain.bytes());
}

void expect_host_rows(TableRig& rig) {
  const RowStore::HostRows on_host = rig.table->host_rows();
  EXPECT_GT(on_host.rows, rig.table->rows() / 4);
  EXPECT_LE(on_host.rows, rig.table->rows());
  EXPECT_GT(on_host.bytes, on_host.rows * rig.spec().dim);
}

TEST_P(TableMemoryTest, EveryOptimizerAndUpdateTypeGivesTheSameBytes) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global})
    for (const MemoryRule rule : {MemoryRule::sgd, MemoryRule::adagrad, MemoryRule::adam}) {
      if (update == UpdateType::lazy_global && rule != MemoryRule::adam) continue;
      for (const int64_t granules : {0, 2}) {
        SCOPED_TRACE(cat("rule ", static_cast<int>(rule), ", update ", static_cast<int>(update), ", ", granules));
        TableSpec spec = large_rows();
        spec.optimizer.kind = rule;
        spec.update = update;
        TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(granules));
        expect_equal_training(plain, split);
        expect_host_rows(split);
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
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(1));
    expect_equal_training(plain, split);
    expect_host_rows(split);
  }
}

TEST_P(TableMemoryTest, RowsThatLeaveGiveTheSameBytes) {
  for (const WhenFull when : {WhenFull::evict_lru, WhenFull::evict_lfu, WhenFull::ignore}) {
    SCOPED_TRACE(static_cast<int>(when));
    TableSpec spec = large_rows();
    spec.row_limit = 1800;
    spec.policy.when_full = when;
    spec.policy.expire_after = when == WhenFull::evict_lru ? 4 : 0;
    TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(1));
    expect_equal_training(plain, split, 10);
    expect_host_rows(split);
    int64_t gone = 0;
    for (const auto& [what, count] : split.table->counts()) gone += count;
    EXPECT_GT(gone, 0) << "rows left, or were refused";
  }
}

TEST_P(TableMemoryTest, DirectKeysGiveTheSameBytes) {
  TableSpec spec = large_rows();
  spec.direct = direct_keys({700, 700, 700}, false, {}, 0);
  TableRig plain(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(1));
  expect_equal_training(plain, split, 4, 2100);
  expect_host_rows(split);
}

TEST_P(TableMemoryTest, ImportedRowsGoToEitherMemory) {
  TableSpec spec = large_rows();
  TableRig source(GetParam(), spec), split(GetParam(), spec, 1, 2, true, DType::f32, limits(1));
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
  const RowMemoryLimits both = limits(5);
  Runtime runtime(GetParam(), {.row_memory = both});
  {
    const EmbeddingTable first(runtime, spec, 2), second(runtime, spec, 2);
    EXPECT_LE(runtime.row_memory().device_bytes(), *both.device);
    EXPECT_GT(runtime.row_memory().device_bytes(), 0);
    EXPECT_GT(runtime.row_memory().host_bytes(), 0);
  }
  EXPECT_EQ(runtime.row_memory().device_bytes(), 0);
  EXPECT_EQ(runtime.row_memory().host_bytes(), 0);
}

TEST_P(TableMemoryTest, ABudgetThatIsTooSmallSaysTheLeast) {
  TableSpec spec = large_rows();
  const std::string message =
      message_of(Kind::device, [&] { TableRig rig(GetParam(), spec, 1, 2, true, DType::f32, limits(1, 1 << 20)); });
  EXPECT_NE(message.find("table 'small' on rank 0"), std::string::npos) << message;
  EXPECT_NE(message.find("\"host\" must be at least "), std::string::npos) << message;
  const size_t at = message.find("must be at least ") + 17;
  const int64_t least = std::stoll(message.substr(at));
  TableRig enough(GetParam(), spec, 1, 2, true, DType::f32, limits(1, least));
  EXPECT_LE(enough.runtime.row_memory().host_bytes(), least);
}

}  // namespace
}  // namespace hctr::test
