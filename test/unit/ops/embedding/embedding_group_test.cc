// Groups keys by row, compared with a stable sort. The batch sizes cover all three sorts: in one block, in tiles, and
// by CUB.
#include "ops/embedding/embedding_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/base/platform.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/lockstep.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using Numbers = std::vector<int32_t>;

Buffer uploaded(Device device, const Numbers& numbers) {
  Buffer buffer(device, std::max<size_t>(1, numbers.size()) * sizeof(int32_t));
  const StreamRef stream = runtime_of(device).compute_stream();
  copy_bytes(stream, buffer.data(), numbers.data(), numbers.size() * sizeof(int32_t));
  stream.synchronize();
  return buffer;
}

Numbers downloaded(const Buffer& buffer, int64_t count) {
  Numbers numbers(static_cast<size_t>(count));
  const StreamRef stream = runtime_of(buffer.device()).compute_stream();
  copy_bytes(stream, numbers.data(), buffer.data(), numbers.size() * sizeof(int32_t));
  stream.synchronize();
  return numbers;
}

/// The output of group_by_row() on the host. `long_runs` is sorted, and `pieces` has the pieces of these runs in the
/// same order.
struct Grouped {
  Numbers rows, bags, run_begin, long_runs, pieces;
  bool operator==(const Grouped&) const = default;
};

/// A batch of a few keys per bag, followed by padding. Each key is given by its row.
struct KeysOfRows {
  Numbers rows, offsets, bags;
  // Whether the batch has a list with the number of each key's gradient. The numbers are in `bags`.
  bool listed = false;
  int64_t capacity() const { return static_cast<int64_t>(rows.size()); }
};

KeysOfRows keys_of_rows(int64_t keys, int64_t capacity, int32_t rows, int most_each, uint64_t seed) {
  std::mt19937_64 random(seed);
  KeysOfRows batch{.offsets = {0}};
  while (batch.capacity() < keys) {
    const auto bag = static_cast<int32_t>(batch.offsets.size()) - 1;
    for (auto n = most_each == 1 ? 1 : random() % static_cast<uint64_t>(most_each + 1); n > 0; --n) {
      if (batch.capacity() == keys) break;
      // Every second key has one of the first 20 rows, so that there are long runs.
      const uint64_t among = random() % 2 == 0 ? static_cast<uint64_t>(rows) : std::min<uint64_t>(20, rows);
      batch.rows.push_back(static_cast<int32_t>(random() % among));
      batch.bags.push_back(bag);
    }
    batch.offsets.push_back(static_cast<int32_t>(batch.rows.size()));
  }
  batch.rows.resize(static_cast<size_t>(capacity));
  batch.bags.resize(static_cast<size_t>(capacity));
  return batch;
}

Grouped sorted_plainly(const KeysOfRows& batch) {
  Numbers order(batch.rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto row = [&](int32_t i) { return batch.rows[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return row(a) < row(b); });
  Grouped all;
  for (const int32_t i : order) {
    all.rows.push_back(row(i));
    all.bags.push_back(row(i) == 0 ? 0 : batch.bags[static_cast<size_t>(i)]);
  }
  const auto count = static_cast<int32_t>(order.size());
  for (int32_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && row(order[static_cast<size_t>(end)]) == row(order[static_cast<size_t>(begin)])) ++end;
    if (row(order[static_cast<size_t>(begin)]) == 0) continue;
    const auto run = static_cast<int32_t>(all.run_begin.size());
    all.run_begin.push_back(begin);
    if (end - begin <= ops::kPiece) continue;
    all.long_runs.push_back(run);
    for (int32_t at = begin; at < end; at += static_cast<int32_t>(ops::kPiece)) {
      all.pieces.push_back(at);
      all.pieces.push_back(std::min(at + static_cast<int32_t>(ops::kPiece), end));
    }
  }
  return all;
}

/// `several`: groups the batch as one of several tables whose launches are merged.
Grouped grouped(Device device, const KeysOfRows& batch, int row_bits, bool several = false) {
  const int64_t capacity = batch.capacity(), room = std::max<int64_t>(capacity, 1);
  const int64_t most_long = ops::RowGroups::most_long_runs(room), most_pieces = ops::RowGroups::most_pieces(room);
  const Buffer offsets = uploaded(device, batch.offsets), keys_rows = uploaded(device, batch.rows),
               gradients = uploaded(device, batch.bags);
  const auto filled = [&](int64_t count) { return uploaded(device, Numbers(static_cast<size_t>(count), -1)); };
  const Buffer rows = filled(room), bags = filled(room), run_begin = filled(room), long_runs = filled(3 * most_long),
               pieces = filled(2 * most_pieces), counts = filled(3),
               scratch(device, ops::group_scratch_bytes(device, room));
  const auto words = [](const Buffer& buffer) { return reinterpret_cast<int32_t*>(buffer.data()); };
  const ops::KeyBatch keys{.offsets = words(offsets),
                           .slots = 1,
                           .samples = static_cast<int64_t>(batch.offsets.size()) - 1,
                           .key_capacity = capacity,
                           .columns = 1,
                           .gradients = batch.listed ? words(gradients) : nullptr};
  const ops::RowGroups groups{words(rows),
                              words(bags),
                              words(run_begin),
                              reinterpret_cast<ops::LongRun*>(long_runs.data()),
                              reinterpret_cast<ops::Piece*>(pieces.data()),
                              reinterpret_cast<ops::GroupCounts*>(counts.data())};
  Lockstep launches(Context(runtime_of(device), runtime_of(device).compute_stream()));
  Context ctx = launches.next(several);
  ops::group_by_row(ctx, keys, words(keys_rows), row_bits, groups, scratch.data());
  launches.run();

  const Numbers count = downloaded(counts, 3);
  Grouped all{.rows = downloaded(rows, capacity), .bags = downloaded(bags, capacity)};
  for (size_t i = 0; i < all.rows.size(); ++i)
    if (all.rows[i] == 0) all.bags[i] = 0;  // the bag of a key without a row is never read
  all.run_begin = downloaded(run_begin, count[0]);
  const Numbers runs = downloaded(long_runs, 3 * count[1]), ends = downloaded(pieces, 2 * count[2]);
  std::vector<ops::LongRun> ordered;
  for (size_t i = 0; i < runs.size(); i += 3) ordered.push_back({runs[i], runs[i + 1], runs[i + 2]});
  std::sort(ordered.begin(), ordered.end(), [](const ops::LongRun& a, const ops::LongRun& b) { return a.run < b.run; });
  for (const ops::LongRun& run : ordered) {
    all.long_runs.push_back(run.run);
    const auto from = ends.begin() + 2 * run.first_piece;
    all.pieces.insert(all.pieces.end(), from, from + 2 * run.pieces);
  }
  return all;
}

class EmbeddingGroup : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
};
INSTANTIATE_TEST_SUITE_P(Device, EmbeddingGroup, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(EmbeddingGroup, IsAStableSortWithItsRuns) {
  struct Row {
    int64_t keys, capacity;
    int row_bits, most_each;
  };
  for (const Row& row :
       {Row{1, 1, 3, 1}, Row{33, 40, 6, 3}, Row{1024, 1024, 8, 1}, Row{1000, 1025, 9, 4}, Row{13312, 13312, 21, 1},
        Row{9000, 16384, 17, 5}, Row{16384, 16384, 31, 1}, Row{16385, 16385, 25, 2}, Row{20000, 33000, 5, 2},
        Row{50000, 60000, 30, 3}, Row{100000, 131072, 15, 4}, Row{131072, 131072, 22, 1}, Row{131073, 131073, 22, 1},
        Row{150000, 200000, 31, 3}, Row{60000, 60000, 12, 300}, Row{420000, 851968, 24, 1},
        Row{2000000, 2097153, 22, 1}}) {
    if (kSanitized && row.keys > 200000) continue;  // with sanitizers, one case per code path is enough
    SCOPED_TRACE(cat(row.keys, " keys in ", row.capacity, ", rows of ", row.row_bits, " bits"));
    const auto rows = static_cast<int32_t>((int64_t{1} << row.row_bits) - 1);
    const KeysOfRows batch = keys_of_rows(row.keys, row.capacity, rows, row.most_each, 11);
    const Grouped expected = sorted_plainly(batch), result = grouped(GetParam(), batch, row.row_bits);
    EXPECT_EQ(result.rows, expected.rows);
    EXPECT_EQ(result.bags, expected.bags);
    EXPECT_EQ(result.run_begin, expected.run_begin);
    EXPECT_EQ(result.long_runs, expected.long_runs);
    EXPECT_EQ(result.pieces, expected.pieces);
  }
}

TEST_P(EmbeddingGroup, SeveralTablesHaveTheGroupsOfOne) {
  struct Row {
    int64_t keys, capacity;
    int row_bits;
  };
  for (const Row& row : {Row{900, 1000, 9}, Row{30000, 30000, 17}, Row{131073, 131073, 22}, Row{163840, 163840, 21},
                         Row{150000, 262144, 31}, Row{262144, 262144, 8}, Row{262145, 262145, 20}}) {
    if (kSanitized && row.keys > 200000) continue;
    const auto rows = static_cast<int32_t>((int64_t{1} << row.row_bits) - 1);
    const KeysOfRows batch = keys_of_rows(row.keys, row.capacity, rows, 3, 11);
    EXPECT_TRUE(grouped(GetParam(), batch, row.row_bits, true) == sorted_plainly(batch)) << row.keys << " keys";
  }
}

TEST_P(EmbeddingGroup, KeysOfABagMayHaveDifferentGradients) {
  for (const int64_t keys : {900, 30000, 150000}) {
    KeysOfRows batch = keys_of_rows(keys, keys + 50, 500, 4, 11);
    std::mt19937_64 random(2);
    for (int64_t i = 0; i < keys; ++i) batch.bags[static_cast<size_t>(i)] = static_cast<int32_t>(random() % 100000);
    batch.listed = true;
    EXPECT_TRUE(grouped(GetParam(), batch, 9) == sorted_plainly(batch));
  }
}

TEST_P(EmbeddingGroup, OneRowOrNoneIsOneRunOrNone) {
  for (const int64_t keys : {1, 32, 33, 5000, 16384, 20000, 140000})
    for (const int32_t row : {0, 1, 255, 256, 1 << 20}) {
      SCOPED_TRACE(cat(keys, " keys of row ", row));
      KeysOfRows batch = keys_of_rows(keys, keys, 2, 1, 5);
      std::fill(batch.rows.begin(), batch.rows.end(), row);
      EXPECT_TRUE(grouped(GetParam(), batch, 21) == sorted_plainly(batch));
    }
}

}  // namespace
}  // namespace hctr::test
