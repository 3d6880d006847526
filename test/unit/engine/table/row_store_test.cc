// Stress test of the hash index: adversarial keys, growth, and lookups concurrent with insertions. Each result is
// checked against an array.
#include "engine/table/row_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/base/random.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

struct KeyKind {
  const char* name;
  int64_t (*key)(uint64_t n);
};
const KeyKind kKeyKinds[] = {
    {"random", [](uint64_t n) { return static_cast<int64_t>(mix64(n)); }},
    {"in sequence", [](uint64_t n) { return static_cast<int64_t>(n); }},
    {"negative", [](uint64_t n) { return -static_cast<int64_t>(n) - 1; }},
    {"alike in their low bits", [](uint64_t n) { return static_cast<int64_t>(n << 36); }},
    {"from both ends",
     [](uint64_t n) {
       return n % 2 ? INT64_MAX - static_cast<int64_t>(n / 2) : INT64_MIN + static_cast<int64_t>(n / 2);
     }},
    {"all equal", [](uint64_t) { return int64_t{0}; }},
};

class RowStoreLoad {
 public:
  RowStoreLoad(Device device, int64_t batch)
      : runtime_(runtime_of(device)),
        batch_(batch),
        store_(runtime_, spec(), batch, 3),
        keys_(device, bytes(batch, 8)),
        offsets_(device, 2 * sizeof(int32_t)),
        rows_(device, bytes(batch, 4)),
        found_(device, bytes(batch, 4)),
        rows_after_(device, sizeof(uint32_t)) {
    const int32_t ends[2] = {0, static_cast<int32_t>(batch)};
    copy_bytes(runtime_.compute_stream(), offsets_.data(), ends, sizeof ends);
    runtime_.compute_stream().synchronize();
  }

  /// Inserts keys of `kind`, selected by `draw`, on one stream. Looks up the same keys concurrently on another stream.
  void step(const KeyKind& kind, const std::function<uint64_t(int64_t)>& draw) {
    std::vector<int64_t> keys(static_cast<size_t>(batch_));
    for (int64_t i = 0; i < batch_; ++i) keys[static_cast<size_t>(i)] = kind.key(draw(i));
    store_.reserve_rows();
    Context prepare(runtime_, runtime_.prepare_stream()), compute(runtime_, runtime_.compute_stream());
    copy_bytes(prepare.stream(), keys_.data(), keys.data(), keys_.bytes());
    prepare.stream().synchronize();
    const ops::KeyBatch batch = device_batch();
    auto* rows = reinterpret_cast<int32_t*>(rows_.data());
    auto* found = reinterpret_cast<int32_t*>(found_.data());
    auto* after = reinterpret_cast<uint32_t*>(rows_after_.data());
    ops::index_find(compute, store_.rows().index().view(), batch, found);
    ops::index_insert(prepare, store_.rows().index().view(), batch, rows);
    ops::index_close_batch(prepare, store_.rows().index().view(), after, store_.rows().index().host_word());
    const std::vector<int32_t> before = read(found_);
    ops::index_finish_step(prepare, store_.rows().index().view(), after);
    check(kind, keys, read(rows_), before);
  }

  /// Checks that no two rows have the same key, and that every row number up to the number of rows is used.
  void check_all(const char* name) {
    std::vector<int64_t> keys(key_of_row_.begin() + 1, key_of_row_.begin() + 1 + static_cast<std::ptrdiff_t>(known_));
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end()) << name << ": a key has two rows";
    EXPECT_EQ(store_.tiers().finished_rows(), known_) << name;
  }
  /// Checks that the reserved memory matches the expected rows, up to one growth step.
  void check_capacity() const {
    const int64_t expected = rows_with_memory(known_, 0, batch_, 4);
    EXPECT_GE(store_.rows().arrays().capacity(), known_ == 0 ? expected : expected / 3 * 2) << known_ << " rows";
    EXPECT_LE(store_.rows().arrays().capacity(), known_ == 0 ? expected : expected / 2 * 3) << known_ << " rows";
  }

 private:
  static size_t bytes(int64_t count, size_t each) { return static_cast<size_t>(count) * each; }
  static TableSpec spec() {
    TableSpec spec;
    spec.name = "load";
    spec.dim = 1;
    spec.slots = spec.samples = 1;
    spec.identity_by_slot = false;
    return spec;
  }
  ops::KeyBatch device_batch() const {
    ops::KeyBatch batch;
    batch.keys = reinterpret_cast<const int64_t*>(keys_.data());
    batch.offsets = reinterpret_cast<const int32_t*>(offsets_.data());
    batch.slots = batch.samples = batch.columns = 1;
    batch.key_capacity = batch_;
    return batch;
  }
  std::vector<int32_t> read(const Buffer& buffer) {
    std::vector<int32_t> host(static_cast<size_t>(batch_));
    runtime_.prepare_stream().synchronize();
    copy_bytes(runtime_.compute_stream(), host.data(), buffer.data(), buffer.bytes());
    runtime_.compute_stream().synchronize();
    return host;
  }
  void check(const KeyKind& kind, const std::vector<int64_t>& keys, const std::vector<int32_t>& rows,
             const std::vector<int32_t>& found_before) {
    const int64_t known_before = known_;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = static_cast<size_t>(rows[i]);
      ASSERT_GT(rows[i], 0) << kind.name << ": no row for " << keys[i];
      if (row >= key_of_row_.size()) key_of_row_.resize(2 * row), has_key_.resize(2 * row);
      if (!has_key_[row]) {
        has_key_[row] = true;
        key_of_row_[row] = keys[i];
        ++known_;
      }
      ASSERT_EQ(key_of_row_[row], keys[i]) << kind.name << ": row " << row << " has two keys";
      // row numbers increase in the order of insertion
      const bool was_known = static_cast<int64_t>(row) <= known_before;
      ASSERT_EQ(found_before[i], was_known ? rows[i] : 0)
          << kind.name << ": a lookup concurrent with the insertion of " << keys[i];
    }
  }

  Runtime& runtime_;
  int64_t batch_, known_ = 0;
  RowStore store_;
  Buffer keys_, offsets_, rows_, found_, rows_after_;
  std::vector<int64_t> key_of_row_ = std::vector<int64_t>(1024);
  std::vector<bool> has_key_ = std::vector<bool>(1024);
};

TEST(RowStore, EveryKeyHasOneRowThroughGrowthAndAdversity) {
  for (const Device device : devices()) {
    const bool large = device.is_cuda();
    const int64_t batch = large ? 1 << 20 : 1 << 13;
    for (const KeyKind& kind : kKeyKinds) {
      RowStoreLoad load(device, batch);
      load.check_capacity();
      const int steps = large ? 17 : 6;  // about 10^8 operations on a GPU
      for (int step = 0; step < steps; ++step) {
        // Half of the keys of the first batches are new; later batches have fewer new keys. Many keys occur several
        // times in a batch.
        const uint64_t known = static_cast<uint64_t>(step + 1) * static_cast<uint64_t>(batch) / 3;
        load.step(kind, [&](int64_t i) {
          return mix64(static_cast<uint64_t>(i) << 8 | static_cast<uint64_t>(step)) % known;
        });
        if (::testing::Test::HasFatalFailure()) return;
        load.check_capacity();
      }
      load.check_all(kind.name);
    }
  }
}

}  // namespace
}  // namespace hctr::test
