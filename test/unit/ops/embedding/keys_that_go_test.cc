// Removes keys from the index, and lets other keys reuse their tombstones, compared with a map. Rows in a list get
// initial values.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/hash_index.h"
#include "ops/embedding/row_removal.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kGoEntries = 1 << 12, kGoRows = kGoEntries / 4 * 3;

/// An index whose row numbers the test chooses.
class GoingKeys {
 public:
  explicit GoingKeys(Device device)
      : ctx_(runtime_of(device), runtime_of(device).compute_stream()),
        entries_(device, kGoEntries * sizeof(ops::IndexEntry)),
        state_(device, sizeof(ops::IndexState)),
        keys_(device, (kGoRows + 1) * sizeof(int64_t)),
        slots_(device, (kGoRows + 1) * sizeof(int32_t)),
        list_(device, (kGoRows + 1) * sizeof(int32_t)) {
    index_.entries = reinterpret_cast<ops::IndexEntry*>(entries_.data());
    index_.state = reinterpret_cast<ops::IndexState*>(state_.data());
    index_.row_keys = reinterpret_cast<int64_t*>(keys_.data());
    index_.row_slots = reinterpret_cast<int32_t*>(slots_.data());
    zero_bytes(ctx_.stream(), entries_.data(), entries_.bytes());
    const ops::IndexState state{.mask = kGoEntries - 1,
                                .row_capacity = kGoRows,
                                .rows = kGoRows,
                                .ready = kGoRows,
                                .finished = kGoRows,
                                .batches = 0,
                                .marks = 0};
    write(state_, &state, sizeof state);
  }

  /// Writes the key and slot of each row in `owners` to the arrays that the index reads.
  void set_owners(const std::map<int32_t, ops::RowOwner>& owners) {
    std::vector<int64_t> keys(kGoRows + 1, -1);
    std::vector<int32_t> slots(kGoRows + 1, 0);
    for (const auto& [row, owner] : owners) {
      keys[static_cast<size_t>(row)] = owner.key;
      slots[static_cast<size_t>(row)] = owner.slot;
    }
    write(keys_, keys.data(), keys_.bytes());
    write(slots_, slots.data(), slots_.bytes());
  }
  void enter(const std::vector<int32_t>& rows) {
    put_list(rows);
    ops::index_enter(ctx_, index_, list(), static_cast<int64_t>(rows.size()));
    ctx_.stream().synchronize();
  }
  void remove(const std::vector<int32_t>& rows) {
    put_list(rows);
    ops::index_remove(ctx_, index_, list(), static_cast<int64_t>(rows.size()));
    ctx_.stream().synchronize();
  }
  /// Rebuilds the index with all rows except `rows`.
  void rebuild_without(const std::vector<int32_t>& rows) {
    const Buffer left(ctx_.device(), kGoRows + 1);
    zero_bytes(ctx_.stream(), left.data(), left.bytes());
    put_list(rows);
    ops::set_fates(ctx_, list(), static_cast<int64_t>(rows.size()), ops::Fate::leaves,
                   reinterpret_cast<ops::Fate*>(left.data()));
    zero_bytes(ctx_.stream(), entries_.data(), entries_.bytes());
    ops::index_rebuild(ctx_, index_, reinterpret_cast<const uint8_t*>(left.data()));
    ctx_.stream().synchronize();
  }
  /// Returns the row of each key in slot `slot`; 0 if the key has no row.
  std::vector<int32_t> find(const std::vector<int64_t>& keys, int32_t slot) {
    const auto count = static_cast<int64_t>(keys.size());
    const Device device = ctx_.device();
    const Buffer on_device(device, keys.size() * sizeof(int64_t)), offsets(device, 2 * sizeof(int32_t)),
        numbers(device, sizeof(int32_t)), rows(device, keys.size() * sizeof(int32_t));
    const int32_t ends[2] = {0, static_cast<int32_t>(count)};
    write(on_device, keys.data(), on_device.bytes());
    write(offsets, ends, sizeof ends);
    write(numbers, &slot, sizeof slot);
    ops::KeyBatch batch;
    batch.keys = reinterpret_cast<const int64_t*>(on_device.data());
    batch.offsets = reinterpret_cast<const int32_t*>(offsets.data());
    batch.slots = batch.samples = batch.columns = 1;
    batch.key_capacity = count;
    batch.slot_numbers = reinterpret_cast<const int32_t*>(numbers.data());
    ops::index_find(ctx_, index_, batch, reinterpret_cast<int32_t*>(rows.data()));
    std::vector<int32_t> found(keys.size());
    copy_bytes(ctx_.stream(), found.data(), rows.data(), rows.bytes());
    ctx_.stream().synchronize();
    return found;
  }
  uint32_t marks() {
    ops::IndexState state;
    copy_bytes(ctx_.stream(), &state, state_.data(), sizeof state);
    ctx_.stream().synchronize();
    return state.marks;
  }
  Context& context() { return ctx_; }

 private:
  void write(const Buffer& to, const void* from, size_t bytes) {
    copy_bytes(ctx_.stream(), to.data(), from, bytes);
    ctx_.stream().synchronize();
  }
  void put_list(const std::vector<int32_t>& rows) { write(list_, rows.data(), rows.size() * sizeof(int32_t)); }
  const int32_t* list() const { return reinterpret_cast<const int32_t*>(list_.data()); }

  Context ctx_;
  Buffer entries_, state_, keys_, slots_, list_;
  ops::HashIndex index_;
};

int64_t going_key(int64_t n) { return static_cast<int64_t>(mix64(static_cast<uint64_t>(n))); }

void expect_found(GoingKeys& index, const std::map<int32_t, ops::RowOwner>& owners, int64_t numbers) {
  for (const int32_t slot : {0, 1}) {
    std::vector<int64_t> keys;
    std::map<int64_t, int32_t> row_of;
    for (int64_t n = 0; n < numbers; ++n) keys.push_back(going_key(n));
    for (const auto& [row, owner] : owners)
      if (owner.slot == slot) row_of[owner.key] = row;
    const std::vector<int32_t> found = index.find(keys, slot);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto at = row_of.find(keys[i]);
      ASSERT_EQ(found[i], at == row_of.end() ? 0 : at->second) << "key " << i << " of slot " << slot;
    }
  }
}

/// Inserts and removes keys below 3 * kGoRows in two slots. The index is at most 15/16 full.
TEST(KeysThatGo, OthersAreFoundAndTakeTheirMarks) {
  for (const Device device : devices()) {
    SCOPED_TRACE(to_string(device));
    GoingKeys index(device);
    std::mt19937_64 random(5);
    std::map<int32_t, ops::RowOwner> owners;
    std::vector<int32_t> free;
    for (int32_t row = kGoRows; row > 0; --row) free.push_back(row);
    int64_t used = 0, next = 0;  // used: index entries with a row or a mark; next: the number of the next new key
    uint32_t reused = 0;
    for (int round = 0; round < 12; ++round) {
      std::vector<int32_t> coming;
      while (static_cast<int64_t>(owners.size()) < kGoEntries / 2) {
        const int32_t row = free.back();
        free.pop_back();
        owners[row] = {going_key(next / 2), static_cast<int32_t>(next % 2)};
        ++next;
        coming.push_back(row);
      }
      const uint32_t before = index.marks();
      index.set_owners(owners);
      index.enter(coming);
      const uint32_t taken = before - index.marks();
      reused += taken;
      used += static_cast<int64_t>(coming.size()) - taken;
      ASSERT_LE(used, kGoEntries / 16 * 15);
      ASSERT_EQ(used, static_cast<int64_t>(owners.size() + index.marks())) << "an entry is a row or a mark";
      expect_found(index, owners, next / 2 + 50);

      std::vector<int32_t> leaving;
      for (const auto& [row, owner] : owners)
        if (random() % 8 == 0) leaving.push_back(row);
      index.remove(leaving);
      index.remove({leaving[0]});  // this row no longer has an entry
      ASSERT_EQ(index.marks(), before - taken + leaving.size());
      for (const int32_t row : leaving) owners.erase(row);
      expect_found(index, owners, next / 2 + 50);
      std::shuffle(leaving.begin(), leaving.end(), random);
      free.insert(free.end(), leaving.begin(), leaving.end());
    }
    EXPECT_GT(reused, 100u);
    // Evicted rows still have keys in the arrays. Some of these keys also belong to other rows.
    std::map<int32_t, ops::RowOwner> with_old = owners;
    for (const int32_t row : free) with_old[row] = owners.begin()->second;
    index.set_owners(with_old);
    index.rebuild_without(free);
    expect_found(index, owners, next / 2 + 50);
  }
}

TEST(KeysThatGo, ListedRowsGetTheInitialValuesOfTheirKeys) {
  constexpr int64_t kRows = 200;
  for (const Device device : devices())
    for (const auto& row_of : {std::pair(int64_t{6}, DType::f32), {16, DType::bf16}}) {
      const int64_t dim = row_of.first;
      const DType storage = row_of.second;
      SCOPED_TRACE(cat(to_string(device), ", ", dim));
      Runtime& runtime = runtime_of(device);
      Context ctx(runtime, runtime.compute_stream());
      const size_t bytes = static_cast<size_t>((kRows + 1) * dim) * size_of(storage);
      std::vector<int64_t> keys;
      for (int64_t row = 0; row <= kRows; ++row) keys.push_back(going_key(row));
      const Buffer keys_(device, keys.size() * sizeof(int64_t)), all(device, bytes), listed(device, bytes),
          state_of_all(device, bytes), state_of_listed(device, bytes), state(device, sizeof(ops::IndexState)),
          list(device, kRows * sizeof(int32_t));
      copy_bytes(ctx.stream(), keys_.data(), keys.data(), keys_.bytes());
      for (const Buffer* each : {&all, &listed, &state_of_all, &state_of_listed})
        zero_bytes(ctx.stream(), each->data(), bytes);
      const ops::IndexState counts{
          .mask = 0, .row_capacity = kRows, .rows = kRows, .ready = 0, .finished = 0, .batches = 0, .marks = 0};
      copy_bytes(ctx.stream(), state.data(), &counts, sizeof counts);
      ops::HashIndex index;
      index.state = reinterpret_cast<ops::IndexState*>(state.data());
      const auto data = [&](const Buffer& vectors, const Buffer& of_state) {
        ops::RowData rows;
        rows.dim = rows.state_dim = dim;
        rows.vectors = {vectors.data(), storage};
        rows.states[0] = {of_state.data(), storage};
        rows.identity.keys = reinterpret_cast<const int64_t*>(keys_.data());
        return rows;
      };
      ops::RowInit init;
      init.key = 77;
      init.state_start[0] = 0.5f;
      ops::init_new_rows(ctx, index, init, data(all, state_of_all));
      std::vector<int32_t> rows;
      for (int32_t row = 1; row <= kRows; ++row)
        if (row % 3 != 0) rows.push_back(row);
      std::shuffle(rows.begin(), rows.end(), std::mt19937_64(3));
      copy_bytes(ctx.stream(), list.data(), rows.data(), rows.size() * sizeof(int32_t));
      const auto* const numbers = reinterpret_cast<const int32_t*>(list.data());
      ops::init_rows(ctx, numbers, static_cast<int64_t>(rows.size()), init, data(listed, state_of_listed));
      const auto read = [&](const Buffer& buffer) {
        std::vector<std::byte> values(bytes);
        copy_bytes(ctx.stream(), values.data(), buffer.data(), bytes);
        ctx.stream().synchronize();
        return values;
      };
      const auto row_bytes = static_cast<int64_t>(bytes) / (kRows + 1);
      for (const auto& [of_all, of_listed] : {std::pair(&all, &listed), {&state_of_all, &state_of_listed}}) {
        const std::vector<std::byte> expected = read(*of_all), values = read(*of_listed);
        for (int64_t row = 0; row <= kRows; ++row)
          for (int64_t b = row * row_bytes; b < (row + 1) * row_bytes; ++b)
            ASSERT_EQ(values[static_cast<size_t>(b)], row % 3 != 0 ? expected[static_cast<size_t>(b)] : std::byte{0})
                << "row " << row;
        EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](std::byte b) { return b != std::byte{0}; }));
      }
      // Sets the rows to zero again.
      ops::zero_rows(ctx, numbers, static_cast<int64_t>(rows.size()), listed.data(), row_bytes);
      const std::vector<std::byte> none = read(listed);
      EXPECT_TRUE(std::all_of(none.begin(), none.end(), [](std::byte b) { return b == std::byte{0}; }));
    }
}

}  // namespace
}  // namespace hctr::test
