// A sort by row number compares only the low bits that row numbers use. A recorded sort must compare enough bits for
// rows that are added later.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/device/copy_bytes.h"
#include "engine/table/row_store.h"
#include "support/devices.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kBatchKeys = 64;

/// A CPU row store that receives a batch of new keys in each step.
class GrowingRows {
 public:
  explicit GrowingRows(std::shared_ptr<RowMemory> memory)
      : store_(runtime_, spec(std::move(memory)), kBatchKeys, /*batches_ahead=*/1),
        keys_(kBatchKeys),
        rows_(kBatchKeys) {
    store_.rows().bits().follow_memory();
    recorded_bits_ = store_.rows().bits().now();
  }
  int64_t capacity() const { return store_.rows().arrays().capacity(); }
  /// Adds the next batch of new keys, and returns its largest row number. Reads the number of bits after
  /// reserve_rows(), as a table does.
  int64_t step() {
    std::iota(keys_.begin(), keys_.end(), next_key_);
    next_key_ += kBatchKeys;
    const ops::KeyBatch batch{
        .keys = keys_.data(), .offsets = ends_, .slots = 1, .samples = 1, .key_capacity = kBatchKeys, .columns = 1};
    store_.reserve_rows();
    if (store_.rows().bits().consume_change()) recorded_bits_ = store_.rows().bits().now();
    Context ctx(runtime_, runtime_.prepare_stream());
    store_.tiers().bring_rows(ctx, batch, rows_.data(), NewKeys::get_rows);
    ops::index_insert(ctx, store_.rows().index().view(), batch, rows_.data());
    ops::init_new_rows(ctx, store_.rows().index().view(), store_.rows().arrays().init(), store_.rows().arrays().data());
    uint32_t after = 0;
    ops::index_close_batch(ctx, store_.rows().index().view(), &after, store_.rows().index().host_word());
    if (RowDiskTier* const disk = store_.tiers().disk()) disk->keep_new_rows();
    ops::index_finish_step(ctx, store_.rows().index().view(), &after);
    return *std::max_element(rows_.begin(), rows_.end());
  }
  int recorded_bits() const { return recorded_bits_; }

 private:
  static TableSpec spec(std::shared_ptr<RowMemory> memory) {
    TableSpec spec;
    spec.name = "bits";
    spec.dim = 1;
    spec.slots = spec.samples = 1;
    spec.key_capacity = kBatchKeys;
    spec.memory = std::move(memory);
    return spec;
  }

  Runtime& runtime_ = runtime_of(kCpu);
  RowStore store_;
  std::vector<int64_t> keys_;
  std::vector<int32_t> rows_;
  const int32_t ends_[2] = {0, kBatchKeys};
  int64_t next_key_ = 0;
  int recorded_bits_ = 0;
};

void expect_bits_for_every_row(GrowingRows& rows) {
  ASSERT_LT(rows.capacity(), 256) << "rows of more than a byte must come later";
  int64_t row = 0;
  for (int step = 0; row < 2 * 256; ++step) {
    row = rows.step();
    ASSERT_LT(row, int64_t{1} << rows.recorded_bits()) << "step " << step;
  }
}

TEST(RowBits, FollowTheRowsThatHaveMemory) {
  GrowingRows rows(nullptr);
  EXPECT_EQ(rows.recorded_bits(), 8);
  expect_bits_for_every_row(rows);
  EXPECT_EQ(rows.recorded_bits(), 16);
}

// With a disk, memory grows in bring_rows(), after the batch's sort was recorded.
TEST(RowBits, AreThoseOfAllRowsWithADisk) {
  const TemporaryFolder folder;
  RowMemoryLimits limits{.device = 0, .host = int64_t{1} << 32, .host_setting = "\"host\""};
  limits.disk_folder = folder.path().string();
  limits.disk = int64_t{1} << 32;
  GrowingRows rows(std::make_shared<RowMemory>(kCpu, limits));
  expect_bits_for_every_row(rows);
}

}  // namespace
}  // namespace hctr::test
