// Operators that keep replicated rows equal on all ranks, compared with plain loops and with the operators for one
// rank, on every device.
#include "ops/embedding/mark_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <tuple>

#include "core/device/arena.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/common/copy.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/key_split.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

/// An array in device memory.
template <class T>
struct Array {
  Array(Device device, const std::vector<T>& values)
      : buffer(device, std::max<size_t>(1, values.size()) * sizeof(T)), count(values.size()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    copy_bytes(stream, buffer.data(), values.data(), count * sizeof(T));
    stream.synchronize();
  }
  Array(Device device, int64_t values) : Array(device, std::vector<T>(static_cast<size_t>(values))) {}
  T* data() const { return reinterpret_cast<T*>(buffer.data()); }
  Tensor tensor(Shape shape) const { return Tensor(buffer.data(), TensorSpec(kDTypeOf<T>, shape), buffer.device()); }
  Tensor tensor() const { return tensor({static_cast<int64_t>(count)}); }
  std::vector<T> host() const {
    std::vector<T> out(count);
    const StreamRef stream = runtime_of(buffer.device()).compute_stream();
    copy_bytes(stream, out.data(), buffer.data(), count * sizeof(T));
    stream.synchronize();
    return out;
  }
  Buffer buffer;
  size_t count;
};

constexpr int64_t kSlots = 3, kSamples = 40, kDim = 12, kRows = 30, kMostKeys = 4,
                  kCapacity = kSlots * kSamples * kMostKeys;

struct BatchSizes {
  int64_t samples = kSamples, rows = kRows, dim = kDim;
  int64_t capacity() const { return kSlots * samples * kMostKeys; }
};

/// A batch in which each key equals its row number. One row occurs more often than a segment is long, some rows do not
/// occur, and some keys have no row.
struct TestBatch {
  explicit TestBatch(Device on, BatchSizes of = {})
      : device(on),
        sizes(of),
        keys(on, make_keys()),
        offsets(on, host_offsets),
        rows(on, host_rows),
        sorted(on, of.capacity()),
        bags(on, of.capacity()),
        run_begin(on, of.capacity()),
        long_runs(on, 3 * ops::RowGroups::most_long_runs(of.capacity())),
        pieces(on, 2 * ops::RowGroups::most_pieces(of.capacity())),
        counts(on, 3),
        sums_of_pieces(on, ops::RowGroups::most_pieces(of.capacity()) * of.dim),
        scratch(on, static_cast<int64_t>(ops::group_scratch_bytes(on, of.capacity()))) {
    batch = {keys.data(), offsets.data(), kSlots, sizes.samples, sizes.capacity(), kSlots, {}};
    groups = {sorted.data(),
              bags.data(),
              run_begin.data(),
              reinterpret_cast<ops::LongRun*>(long_runs.data()),
              reinterpret_cast<ops::Piece*>(pieces.data()),
              reinterpret_cast<ops::GroupCounts*>(counts.data())};
    Context ctx(runtime_of(on), runtime_of(on).compute_stream());
    const int row_bits = std::bit_width(static_cast<uint64_t>(sizes.rows)) + 1;
    ops::group_by_row(ctx, batch, rows.data(), row_bits, groups, scratch.data());
  }
  std::vector<int64_t> make_keys() {
    std::mt19937_64 random(5);
    host_offsets = {0};
    const auto most = static_cast<uint64_t>(sizes.rows - 4);
    for (int64_t bag = 0; bag < kSlots * sizes.samples; ++bag) {
      for (auto n = random() % (kMostKeys + 1); n > 0; --n)
        host_rows.push_back(random() % 3 == 0 ? 7 : static_cast<int32_t>(random() % most));
      host_offsets.push_back(static_cast<int32_t>(host_rows.size()));
    }
    std::vector<int64_t> all(host_rows.begin(), host_rows.end());
    all.resize(static_cast<size_t>(sizes.capacity()));
    host_rows.resize(all.size());
    return all;
  }
  bool has(int32_t row) const {
    return row != 0 && std::find(host_rows.begin(), host_rows.end(), row) != host_rows.end();
  }

  Device device;
  BatchSizes sizes;
  std::vector<int32_t> host_offsets, host_rows;
  Array<int64_t> keys;
  Array<int32_t> offsets, rows, sorted, bags, run_begin, long_runs, pieces, counts;
  Array<float> sums_of_pieces;
  Array<std::byte> scratch;
  ops::KeyBatch batch;
  ops::RowGroups groups;
};

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<float>(random() % 1000) / 64 - 7);
  return out;
}

class ReplicatedRowsOp : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
};
INSTANTIATE_TEST_SUITE_P(Device, ReplicatedRowsOp, testing::Values(kCpu, kGpu),
                         [](const auto& row) { return row.param.is_cuda() ? "cuda" : "cpu"; });

TEST_P(ReplicatedRowsOp, MarksOfABatchBecomeGroupsOfOneOccurrence) {
  const TestBatch t(GetParam());
  Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream());
  const Array<int32_t> marks(t.device, std::vector<int32_t>(kRows + 1, 9)), rows(t.device, kRows),
      bags(t.device, kRows), run_begin(t.device, kRows), counts(t.device, 3);
  const Array<std::byte> scratch(t.device, static_cast<int64_t>(ops::group_marked_scratch_bytes(t.device, kRows)));
  ops::mark_batch(ctx, t.groups, kCapacity, marks.tensor());
  std::vector<int32_t> expected_stats, expected_rows;
  for (int32_t row = 0; row <= kRows; ++row) {
    expected_stats.push_back(t.has(row));
    if (t.has(row)) expected_rows.push_back(row);
  }
  ASSERT_EQ(marks.host(), expected_stats);
  ASSERT_LT(expected_rows.size(), static_cast<size_t>(kRows - 3));
  const ops::RowGroups groups{.rows = rows.data(),
                              .bags = bags.data(),
                              .run_begin = run_begin.data(),
                              .counts = reinterpret_cast<ops::GroupCounts*>(counts.data())};
  ops::group_marked(ctx, marks.tensor(), groups, scratch.data());
  const auto marked = static_cast<int32_t>(expected_rows.size()), padding = static_cast<int32_t>(kRows) - marked;
  EXPECT_EQ(counts.host(), (std::vector<int32_t>{marked, 0, 0}));
  std::vector<int32_t> begins = run_begin.host();
  begins.resize(expected_rows.size());
  for (int32_t run = 0; run < marked; ++run) EXPECT_EQ(begins[static_cast<size_t>(run)], padding + run);
  expected_rows.insert(expected_rows.begin(), static_cast<size_t>(padding), 0);
  EXPECT_EQ(rows.host(), expected_rows);
  EXPECT_EQ(bags.host(), expected_rows);
}

TEST_P(ReplicatedRowsOp, SumsByRowAreTheGradientsThatAnUpdateTakes) {
  const TestBatch t(GetParam());
  for (const ops::Combiner combiner : {ops::Combiner::sum, ops::Combiner::mean})
    for (const int32_t skip : {0, 1}) {
      const Array<StepState> state(t.device,
                                   std::vector<StepState>{{.learning_rate = -1, .loss_scale = 1, .skip = skip}});
      Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream(), state.data());
      const Array<float> dy(t.device, numbers(kSamples * kSlots * kDim, 3)),
          untouched(t.device, numbers((kRows + 1) * kDim, 4)), sums(t.device, untouched.host()),
          table(t.device, (kRows + 1) * kDim);
      const Tensor gradients = dy.tensor({kSamples, kSlots, kDim});
      ops::sum_long_runs(ctx, t.batch, t.groups, combiner, gradients, t.sums_of_pieces.data());
      ops::sum_row_gradients(ctx, t.batch, t.groups, combiner, gradients, t.sums_of_pieces.data(),
                             sums.tensor({kRows + 1, kDim}));
      // Gradient descent from 0 with rate -1 returns the gradient.
      ops::RowData data;
      data.dim = kDim;
      data.vectors = {table.data(), DType::f32};
      ops::update_rows(ctx, {.kind = ops::Optimizer::Kind::sgd}, t.batch, t.groups, combiner, gradients,
                       t.sums_of_pieces.data(), data);
      const std::vector<float> got = sums.host(), taken = table.host(), before = untouched.host();
      for (int32_t row = 0; row <= kRows; ++row)
        for (int64_t e = 0; e < kDim; ++e) {
          const auto at = static_cast<size_t>(row * kDim + e);
          ASSERT_EQ(got[at], t.has(row) && !skip ? taken[at] : before[at]) << "row " << row;
        }
    }
}

/// A row has 128 elements, which one warp processes. In the first batch, runs have one or a few occurrences, and many
/// lane groups process two runs. In the second batch, runs have 32 or more occurrences.
TEST_P(ReplicatedRowsOp, DescentAddsTheSumsByRowToRowsOfAWarp) {
  for (const BatchSizes sizes : {BatchSizes{5000, 30000, 128}, BatchSizes{1000, 200, 128}}) {
    const TestBatch t(GetParam(), sizes);
    const Array<StepState> state(t.device, std::vector<StepState>{{.learning_rate = -1, .loss_scale = 1}});
    Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream(), state.data());
    const int64_t count = (sizes.rows + 1) * sizes.dim;
    const Shape shape = {sizes.samples, kSlots, sizes.dim};
    const Array<float> dy(t.device, numbers(sizes.samples * kSlots * sizes.dim, 3)), start(t.device, numbers(count, 4));
    const std::vector<float> before = start.host();
    for (const auto& [dtype, combiner] : {std::pair(DType::f32, ops::Combiner::mean),
                                          {DType::f16, ops::Combiner::sum},
                                          {DType::bf16, ops::Combiner::sum}}) {
      Arena arena;
      arena.add(TensorSpec(dtype, shape));
      arena.build(t.device);
      const Tensor gradients = arena.get(0);
      ops::copy(ctx, dy.tensor(shape), gradients);
      const Array<float> sums(t.device, count), table(t.device, before);
      ops::sum_long_runs(ctx, t.batch, t.groups, combiner, gradients, t.sums_of_pieces.data());
      ops::sum_row_gradients(ctx, t.batch, t.groups, combiner, gradients, t.sums_of_pieces.data(),
                             sums.tensor({sizes.rows + 1, sizes.dim}));
      ops::RowData data;
      data.dim = sizes.dim;
      data.vectors = {table.data(), DType::f32};
      ops::update_rows(ctx, {.kind = ops::Optimizer::Kind::sgd}, t.batch, t.groups, combiner, gradients,
                       t.sums_of_pieces.data(), data);
      const std::vector<float> g = sums.host(), got = table.host();
      for (size_t at = 0; at < got.size(); ++at)
        if (got[at] != before[at] + g[at]) FAIL() << "row " << at / static_cast<size_t>(sizes.dim);
    }
  }
}

/// The rows of a table in a storage type.
struct Rows {
  Rows(Context& ctx, DType dtype) {
    const Array<float> values(ctx.device(), numbers((kRows + 1) * kDim, 8));
    arena.add(TensorSpec(dtype, {(kRows + 1) * kDim}));
    arena.build(ctx.device());
    ops::copy(ctx, values.tensor(), arena.get(0));
    ctx.stream().synchronize();
  }
  ops::RowMemory memory() const { return {arena.get(0).bytes(), arena.get(0).dtype()}; }
  Arena arena;
};

TEST_P(ReplicatedRowsOp, VectorsOfTheSamplesOfEachRankGoToItsShard) {
  // Destination rows have seven vectors. Columns 0, 1, 2 of the batch are columns 4, 0, 2 of the destination. `shift`:
  // offset of a shard in its memory, in elements.
  constexpr int64_t kRanks = 4, kEach = kSamples / kRanks, kStride = 7 * kDim;
  const std::vector<int32_t> columns = {4, 0, 2};
  const TestBatch t(GetParam());
  Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream());
  const Array<int32_t> listed(t.device, columns);
  const Array<float> whole(t.device, kSamples * kSlots * kDim);
  for (const DType stored : {DType::f32, DType::f16}) {
    const Rows rows(ctx, stored);
    for (const auto& [combiner, shift, first] : std::vector<std::tuple<ops::Combiner, int64_t, int64_t>>{
             {ops::Combiner::sum, 0, 3}, {ops::Combiner::mean, 1, 1}, {ops::Combiner::sum, 4, 0}}) {
      ops::pool(ctx, t.batch, t.rows.data(), rows.memory(), combiner, whole.tensor({kSamples, kSlots, kDim}));
      std::vector<Array<float>> memory;
      std::vector<std::byte*> begin;
      ops::SampleShards shards{
          .ranks = kRanks, .samples = kEach, .row_stride = kStride, .targets = listed.data(), .first = first};
      for (int64_t r = 0; r < kRanks; ++r) {
        memory.emplace_back(t.device, std::vector<float>(kEach * kStride + 8, -77));
        begin.push_back(reinterpret_cast<std::byte*>(memory.back().data() + shift));
        shards.memory.align(reinterpret_cast<uintptr_t>(begin.back()));
      }
      const Array<std::byte*> addresses(t.device, begin);
      shards.shard = addresses.data();
      ops::pool_shards(ctx, t.batch, t.rows.data(), rows.memory(), combiner, kDim, shards);
      std::vector<std::vector<float>> expected(kRanks, std::vector<float>(kEach * kStride + 8, -77));
      const std::vector<float> all = whole.host();
      for (int64_t r = 0; r < kRanks; ++r)
        for (int64_t b = 0; b < kEach; ++b)
          for (int64_t s = 0; s < kSlots; ++s) {
            const auto bag = static_cast<size_t>(s * kSamples + r * kEach + b);
            if (t.host_offsets[bag] == t.host_offsets[bag + 1]) continue;  // vectors of empty bags are not written
            std::copy_n(all.begin() + ((r * kEach + b) * kSlots + s) * kDim, kDim,
                        expected[static_cast<size_t>(r)].begin() + shift + b * kStride +
                            columns[static_cast<size_t>(s)] * kDim);
          }
      for (size_t r = 0; r < kRanks; ++r)
        EXPECT_EQ(memory[r].host(), expected[r]) << "rank " << r << ", from rank " << first << " on";

      const Array<uint32_t> aborted(t.device, std::vector<uint32_t>{1});
      shards.memory.aborted = aborted.data();
      const Array<float> elsewhere(t.device, numbers((kRows + 1) * kDim, 9));
      ops::pool_shards(ctx, t.batch, t.rows.data(), {elsewhere.data(), DType::f32}, combiner, kDim, shards);
      for (size_t r = 0; r < kRanks; ++r) EXPECT_EQ(memory[r].host(), expected[r]) << "written though aborted";
    }
  }
}

TEST_P(ReplicatedRowsOp, VectorsThatAnOwnerHasAKeyOfAreLeftAloneAndTheOthersPooledOrCleared) {
  const TestBatch t(GetParam());
  Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream());
  const Rows rows(ctx, DType::f32);
  const Shape shape = {kSamples, kSlots, kDim};
  const Array<float> whole(t.device, kSamples * kSlots * kDim);
  ops::pool(ctx, t.batch, t.rows.data(), rows.memory(), ops::Combiner::sum, whole.tensor(shape));
  const std::vector<float> all = whole.host();
  // Slot 0 has no owner, slot 1 has one, slot 2 has two. `pieces`: pieces per vector. An owner has a key for all pieces
  // of a vector or for none.
  for (const int64_t pieces : {1, 2}) {
    std::vector<int32_t> first = {0};
    std::vector<ops::RemoteColumn> columns;
    int64_t numbers_so_far = 0;
    for (int64_t c = 0; c < kSlots * pieces; ++c) {
      for (int64_t owner = 0; owner < c / pieces; ++owner, numbers_so_far += kSamples)
        columns.push_back({nullptr, 1, numbers_so_far});
      first.push_back(static_cast<int32_t>(columns.size()));
    }
    const auto there = [](int64_t slot, int64_t owner, int64_t b) {
      return owner < slot && (b + 3 * slot + 5 * owner) % 4 == 0;
    };
    std::vector<uint8_t> present;
    for (int64_t c = 0; c < kSlots * pieces; ++c)
      for (int64_t owner = 0; owner < c / pieces; ++owner)
        for (int64_t b = 0; b < kSamples; ++b) present.push_back(there(c / pieces, owner, b));
    const Array<int32_t> lists(t.device, first);
    const Array<ops::RemoteColumn> remote_columns(t.device, columns);
    const Array<uint8_t> marks(t.device, present);
    const Array<float> y(t.device, std::vector<float>(all.size(), -77));
    const ops::OwnerVectors owners{.columns = kSlots * pieces,
                                   .first = lists.data(),
                                   .remote_columns = remote_columns.data(),
                                   .pieces = pieces,
                                   .present = marks.data()};
    ops::pool_others(ctx, t.batch, t.rows.data(), rows.memory(), ops::Combiner::sum, owners, y.tensor(shape));
    const std::vector<float> got = y.host();
    ops::clear_unowned(ctx, owners, y.tensor(shape));
    const std::vector<float> cleared = y.host();
    for (int64_t i = 0; i < kSamples * kSlots * kDim; ++i) {
      const int64_t b = i / (kSlots * kDim), slot = i / kDim % kSlots;
      const bool owned = there(slot, 0, b) || there(slot, 1, b);
      ASSERT_EQ(got[static_cast<size_t>(i)], owned ? -77 : all[static_cast<size_t>(i)])
          << "sample " << b << ", slot " << slot;
      ASSERT_EQ(cleared[static_cast<size_t>(i)], owned ? -77 : 0) << "sample " << b << ", slot " << slot;
    }
  }
}

TEST_P(ReplicatedRowsOp, RowsAreSeenOnceTheyHaveCome) {
  const Device device = GetParam();
  const std::vector<int32_t> marks = {0, 1, 0, 1, 0, 0}, seen_before = {0, 0, 1, 1, 0, 0};
  for (const int32_t skip : {0, 1}) {
    const Array<StepState> state(device, std::vector<StepState>{{.skip = skip}});
    Context ctx(runtime_of(device), runtime_of(device).compute_stream(), state.data());
    const Array<int32_t> mark(device, marks), seen(device, seen_before),
        rows(device, std::vector<int32_t>{4, 3, 2, 1, 0, 4, 1});
    const Array<uint8_t> touched(device, std::vector<uint8_t>(6));
    const Array<uint32_t> there(device, std::vector<uint32_t>{4});
    ops::note_seen(ctx, there.data(), mark.tensor(), seen.tensor(), touched.data());
    EXPECT_EQ(seen.host(), (std::vector<int32_t>{0, 1, 1, 1, 0, 0}));
    EXPECT_EQ(touched.host(), (std::vector<uint8_t>{0, 0, 0, 0, static_cast<uint8_t>(1 - skip), 0}))
        << "a sweep leaves out what has not come; row 5 is not there";
    ops::note_seen(ctx, there.data(), mark.tensor(), seen.tensor(), nullptr);
    ops::hide_unseen(ctx, seen.tensor(), rows.data(), 7);
    EXPECT_EQ(rows.host(), (std::vector<int32_t>{0, 3, 2, 1, 0, 0, 1}));
  }
}

TEST_P(ReplicatedRowsOp, KeysWithARowHereAreSentToNobody) {
  const TestBatch t(GetParam());
  Context ctx(runtime_of(t.device), runtime_of(t.device).compute_stream());
  std::vector<ops::OwnedColumn> host_columns;
  for (int32_t s = 0; s < kSlots; ++s) host_columns.push_back({s, 0, 1});
  const int64_t words = ops::OwnerKeys::offset_words(kSlots, kSamples);
  const Array<ops::OwnedColumn> columns(t.device, host_columns);
  const Array<ops::OwnerKeys> owners(t.device, std::vector<ops::OwnerKeys>{{0, kSlots, 0, words}});
  const Array<int64_t> blocks(t.device, words + kCapacity);
  const Array<std::byte> scratch(
      t.device, static_cast<int64_t>(ops::key_split_scratch_bytes(t.device, kSlots * kSamples, 1)) + 1);
  const Array<uint8_t> present(t.device, std::vector<uint8_t>(kSlots * kSamples, 9));
  const Array<int64_t*> messages(t.device, std::vector<int64_t*>{blocks.data()});
  ops::split_keys(ctx, t.batch, {1, kSlots, columns.data(), owners.data(), t.rows.data(), messages.data()},
                  present.data(), scratch.data());
  // Each key equals its row number. Only key 0 has no row.
  const std::vector<int64_t> got = blocks.host();
  const auto* offsets = reinterpret_cast<const int32_t*>(got.data());
  int32_t at = 0;
  for (size_t bag = 0; bag < kSlots * kSamples; ++bag) {
    ASSERT_EQ(offsets[bag], at);
    EXPECT_EQ(present.host()[bag % kSamples * kSlots + bag / kSamples], offsets[bag + 1] > offsets[bag])
        << "bag " << bag;
    for (int32_t p = t.host_offsets[bag]; p < t.host_offsets[bag + 1]; ++p) {
      if (t.host_rows[static_cast<size_t>(p)] != 0) continue;
      ASSERT_EQ(got[static_cast<size_t>(words + at++)], 0);
    }
  }
  EXPECT_EQ(offsets[kSlots * kSamples], at);
  EXPECT_GT(at, 0);
}

}  // namespace
}  // namespace hctr::test
