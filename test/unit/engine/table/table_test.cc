// Compares a table with a reference in double: lookups, the effect of a step, and unchanged rows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/message_of.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

class TableTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(TableTest);

TEST_P(TableTest, EveryWidthAgreesWithThePlainTable) {
  for (const int64_t dim : {1, 3, 16, 33, 128, 260, 2050}) {
    SCOPED_TRACE(cat("dim ", dim));
    compare_over_steps(GetParam(), small_spec(dim, 3, 16, 16 * 3 * 4), 4, 50, 4);
  }
}

TEST_P(TableTest, MeanAndSqrtnDivideByTheKeysOfTheBag) {
  for (const auto combiner : {ops::Combiner::mean, ops::Combiner::sqrtn}) {
    TableSpec spec = small_spec(5, 2, 16, 16 * 2 * 6);
    spec.combiner = combiner;
    compare_over_steps(GetParam(), spec, 6, 30, 5);
  }
}

TEST_P(TableTest, WithoutPoolingEveryKeyHasItsPlace) {
  for (const int64_t dim : {1, 4, 33, 260}) {
    SCOPED_TRACE(cat("dim ", dim));
    compare_over_steps(GetParam(), unpooled_spec(dim, 16, {5}), 5, 12, 4);        // keys repeat within a bag
    compare_over_steps(GetParam(), unpooled_spec(dim, 16, {7, 4, 9}), 4, 50, 4);  // some positions have no key
  }
}

TEST_P(TableTest, WithoutPoolingGradientsAreSummedInTheOrderOfKeysAsWithASum) {
  // Compares a table without pooling with a table that sums bags. Without pooling, every position of a bag gets the
  // gradient of the bag's sum. Both tables are then equal bit by bit, also for keys with many gradients and for several
  // slots.
  const TableSpec apart = unpooled_spec(5, 300, {3, 2});
  TableSpec sum = apart;
  sum.combiner = ops::Combiner::sum;
  sum.slot_keys.clear();
  TableRig one(GetParam(), apart), other(GetParam(), sum);
  std::mt19937_64 random(8);
  for (int t = 0; t < 3; ++t) {
    const Bags bags = random_bags(apart, apart.samples, 2, 6, random);
    const std::vector<float> dy = random_floats(sum.samples * sum.slots * sum.dim, random);
    std::vector<float> dy_apart;
    for (int64_t b = 0; b < apart.samples; ++b)
      for (int64_t place = 0; place < apart.columns(); ++place) {
        const auto from = dy.begin() + (b * sum.slots + (place < 3 ? 0 : 1)) * sum.dim;
        dy_apart.insert(dy_apart.end(), from, from + sum.dim);
      }
    one.step(bags, dy_apart);
    other.step(bags, dy);
  }
  EXPECT_EQ(one.bytes(), other.bytes());
}

TEST_P(TableTest, OneKeyPerBag) {
  TableSpec spec = small_spec(16, 26, 32, 26 * 32);
  spec.identity_by_slot = true;
  compare_over_steps(GetParam(), spec, 1, 200, 5);
}

TEST_P(TableTest, TheHostLearnsWhichKeysHaveRows) {
  for (const bool by_slot : {false, true}) {
    SCOPED_TRACE(by_slot);
    TableSpec spec = small_spec(5, 3, 16, 16 * 3 * 4);
    spec.identity_by_slot = by_slot;
    TableRig rig(GetParam(), spec);
    Bags bags = empty_bags(spec, spec.samples);
    bags[0][3] = {7, 9};
    bags[2][5] = {8, -1};
    const std::vector<SlotKey> wanted = {{2, 8}, {0, 7}, {1, 7}, {0, 8}, {2, -1}, {0, 10}, {0, 9}};
    EXPECT_EQ(rig.table->have_rows(wanted), std::vector<uint8_t>(wanted.size(), 0)) << "before the first step";
    rig.step(bags, std::vector<float>(static_cast<size_t>(spec.samples * spec.slots * spec.dim), 1.0f));
    const std::vector<uint8_t> of_slots = {1, 1, 0, 0, 1, 0, 1}, of_keys = {1, 1, 1, 1, 1, 0, 1};
    EXPECT_EQ(rig.table->have_rows(wanted), by_slot ? of_slots : of_keys);
    EXPECT_TRUE(rig.table->have_rows({}).empty());
  }
}

TEST_P(TableTest, AKeyThatFillsTheBatchIsSummedRight) {
  // With 20000 occurrences of one key, the reduction has three levels.
  TableSpec spec = small_spec(7, 1, 20000, 20016);
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  TableRig rig(GetParam(), spec);
  PlainTable plain(spec);
  Bags bags = empty_bags(spec, spec.samples);
  for (size_t b = 0; b < bags[0].size(); ++b) bags[0][b] = {b % 100 == 0 ? int64_t{5} : int64_t{-1}};
  std::mt19937_64 random(3);
  const std::vector<float> dy = random_floats(spec.samples * spec.dim, random);
  plain.insert(bags);
  rig.step(bags, dy, 0.01f);
  plain.update(bags, dy, static_cast<double>(0.01f), 1, 1);
  expect_near(rig.lookup(bags), plain.forward(bags), 1e-4, "after the step");
}

TEST_P(TableTest, IdentityIsTheKeyOrSlotAndKey) {
  TableSpec spec = small_spec(2, 3, 1, 3);
  const Bags bags = {{{9}}, {{9}}, {{9}}};
  const std::vector<float> dy(6, 1.0f);
  TableRig shared(GetParam(), spec);
  shared.step(bags, dy);
  EXPECT_EQ(shared.table->rows(), 1);
  spec.identity_by_slot = true;
  TableRig apart(GetParam(), spec);
  const std::vector<float> y = apart.step(bags, dy);
  EXPECT_EQ(apart.table->rows(), 3);
  EXPECT_NE(y[0], y[2]) << "rows of one key in two slots start alike";
}

TEST_P(TableTest, InitialValuesDoNotDependOnArrival) {
  TableSpec spec = small_spec(5, 2, 4, 8);
  spec.identity_by_slot = true;
  spec.slot_bounds = {0.5f, 0.01f};
  const Bags first = {{{1}, {2}, {3}, {4}}, {{1}, {2}, {3}, {4}}},
             second = {{{4}, {9}, {2}, {8}}, {{3}, {1}, {7}, {7}}};
  const std::vector<float> none(40, 0.0f);
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  TableRig one(GetParam(), spec), other(GetParam(), spec);
  one.step(first, none);
  one.step(second, none);
  other.step(second, none);
  other.step(first, none);
  EXPECT_EQ(one.bytes(), other.bytes());
  one.table->export_rows(false, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i)
      for (size_t e = 0; e < 5; ++e)
        EXPECT_LE(std::abs(block.vectors[i * 5 + e]), spec.slot_bounds[static_cast<size_t>(block.slots[i])]);
  });
  TableRig plain_cpu(kCpu, spec);
  plain_cpu.step(first, none);
  plain_cpu.step(second, none);
  EXPECT_EQ(one.bytes(), plain_cpu.bytes()) << "initial values differ between devices";
}

/// Trains some steps, and returns the bytes of the whole table.
std::string train(TableRig& rig, int steps, uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  for (int t = 0; t < steps; ++t) {
    const Bags bags = random_bags(rig.spec(), rig.spec().samples, 3, 3000, random);
    rig.step(bags, random_floats(rig.spec().samples * rig.spec().columns() * rig.spec().dim, random));
  }
  return rig.bytes();
}

TEST_P(TableTest, PiecesOfRowsAreThePartsOfWholeOnes) {
  TableSpec whole = small_spec(16, 3, 12, 12 * 3 * 3), pieces = small_spec(8, 6, 12, 12 * 6 * 3);
  pieces.pieces = 2;
  whole.slot_bounds = {0.3f, 1.0f, 0.2f};
  pieces.slot_bounds = {0.3f, 0.3f, 1.0f, 1.0f, 0.2f, 0.2f};
  for (TableSpec* spec : {&whole, &pieces}) {
    spec->identity_by_slot = true;
    spec->optimizer = {.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
  }
  TableRig one(GetParam(), whole), cut(GetParam(), pieces);
  std::mt19937_64 random(5);
  for (int t = 0; t < 3; ++t) {
    const Bags bags = random_bags(whole, whole.samples, 3, 40, random);
    Bags twice;
    for (const auto& slot : bags) twice.insert(twice.end(), 2, slot);
    const std::vector<float> dy = random_floats(whole.samples * whole.slots * whole.dim,
                                                random);  // both tables read the same memory, in different shapes
    ASSERT_EQ(cut.step(twice, dy), one.step(bags, dy)) << "step " << t;
  }
  std::vector<std::pair<int32_t, int64_t>> rows, of_pieces;
  std::vector<float> vectors, joined;
  one.table->export_rows(false, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) rows.insert(rows.end(), 2, {block.slots[i], block.keys[i]});
    vectors.insert(vectors.end(), block.vectors.begin(), block.vectors.end());
  });
  cut.table->export_rows(false, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) of_pieces.emplace_back(block.slots[i] / 2, block.keys[i]);
    joined.insert(joined.end(), block.vectors.begin(), block.vectors.end());
  });
  EXPECT_EQ(of_pieces, rows) << "the pieces of a row leave side by side";
  EXPECT_EQ(joined, vectors);
}

TEST_P(TableTest, TwoRunsAreEqualBitByBit) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
    for (TableSpec spec : {small_spec(9, 4, 200, 200 * 4 * 3), unpooled_spec(9, 200, {3, 6})}) {
      spec.update = update;
      TableRig one(GetParam(), spec), other(GetParam(), spec);
      const std::string bytes = train(one, 5);
      EXPECT_FALSE(bytes.empty());
      EXPECT_EQ(bytes, train(other, 5));
    }
  }
}

TEST_P(TableTest, ActivationsOfTwoBytesAreRoundedAndNothingElse) {
  for (const int64_t dim : {3, 16})
    expect_activations_of_two_bytes_are_rounded(GetParam(), small_spec(dim, 3, 40, 40 * 3 * 3), 3, 4);
}

TEST_P(TableTest, RecordedOrNotTheNumbersAreEqual) {
  const TableSpec spec = small_spec(8, 4, 100, 100 * 4 * 3);
  TableRig recorded(GetParam(), spec), called(GetParam(), spec, 1, 2, false);
  EXPECT_EQ(train(recorded, 6), train(called, 6));
}

TEST(TableThreadsTest, FourThreadsGiveTheNumbersOfOne) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
    for (TableSpec spec : {small_spec(9, 6, 1000, 1000 * 6 * 3), unpooled_spec(9, 1000, {3, 3, 5})}) {
      spec.update = update;
      TableRig one(kCpu, spec, 1), four(kCpu, spec, 4);
      EXPECT_EQ(train(one, 4), train(four, 4));
    }
  }
}

TEST_P(TableTest, GrowingInTrainingChangesNothing) {
  TableSpec spec = small_spec(4, 2, 50, 300);
  TableRig growing(GetParam(), spec);
  spec.row_hint = 100000;
  TableRig large(GetParam(), spec);
  EXPECT_EQ(train(growing, 40), train(large, 40));
  EXPECT_GT(growing.table->rows(), 2000) << "too few rows to have grown";
}

TEST_P(TableTest, SaysWhenItHasGotMemory) {
  TableSpec spec = small_spec(4, 2, 50, 300);
  TableRig growing(GetParam(), spec);
  spec.row_hint = 100000;
  TableRig large(GetParam(), spec);
  int growths = 0;
  std::mt19937_64 random(3);
  for (int t = 0; t < 40; ++t) {
    const bool grown = growing.table->reserve_memory();
    growths += grown;
    EXPECT_FALSE(growing.table->reserve_memory()) << "there is enough for this step";
    EXPECT_FALSE(large.table->reserve_memory());
    const Bags bags = random_bags(spec, spec.samples, 3, 100000, random);
    const std::vector<float> dy(static_cast<size_t>(spec.samples * spec.columns() * spec.dim), 0);
    growing.step(bags, dy), large.step(bags, dy);
  }
  EXPECT_GT(growing.table->rows(), 2000) << "too few rows to have grown";
  EXPECT_GT(growths, 1);
  EXPECT_LT(growths, 20) << "not in every step";
}

TEST_P(TableTest, AdversarialKeysKeepTheirRows) {
  for (const bool by_slot : {false, true}) {
    TableSpec spec = small_spec(1, 2, 1, 1024);
    spec.optimizer.kind = ops::Optimizer::Kind::sgd;
    spec.identity_by_slot = by_slot;
    TableRig rig(GetParam(), spec);
    PlainTable plain(spec);
    std::vector<int64_t> all = {0,
                                -1,
                                1,
                                std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<uint32_t>::max(),
                                std::numeric_limits<int32_t>::min()};
    for (int64_t i = 0; i < 3000; ++i) all.push_back(i), all.push_back(i << 32), all.push_back(-(i << 20) - 7);
    for (size_t first = 0; first < all.size(); first += 250) {
      Bags bags = empty_bags(spec, 1);  // every key occurs twice in each slot
      for (auto& slot : bags)
        for (size_t i = first; i < std::min(first + 250, all.size()); ++i)
          slot[0].push_back(all[i]), slot[0].push_back(all[i]);
      plain.insert(bags);
      rig.step(bags, {0.0f, 0.0f});
    }
    EXPECT_EQ(rig.table->rows(), static_cast<int64_t>(plain.rows.size()));
    rig.table->export_rows(false, [&](const RowBlock& block) {
      for (size_t i = 0; i < block.keys.size(); ++i) {
        const auto found = plain.rows.find({by_slot ? block.slots[i] : 0, block.keys[i]});
        ASSERT_TRUE(found != plain.rows.end());
        ASSERT_EQ(static_cast<double>(block.vectors[i]), found->second.elements[0].w) << "key " << block.keys[i];
      }
    });
  }
}

TEST_P(TableTest, LookupSeesFinishedStepsOnly) {
  TableSpec spec = small_spec(2, 1, 2, 4);
  spec.combiner = ops::Combiner::mean;
  TableRig rig(GetParam(), spec);
  const std::vector<float> zeros(4, 0.0f);
  EXPECT_EQ(rig.lookup({{{1}, {2}}}), zeros) << "an empty table knows nothing";
  rig.step({{{1}, {1}}}, {1, 1, 1, 1});
  const std::vector<float> one = rig.lookup({{{1}, {}}});
  EXPECT_NE(one, zeros);
  rig.prepare({{{2}, {3}}});
  rig.runtime.prepare_stream().synchronize();
  EXPECT_EQ(rig.lookup({{{2}, {3}}}), zeros) << "keys of a batch that is only prepared are seen";
  const std::vector<float> half = rig.lookup({{{1, 2}, {}}});
  EXPECT_EQ(half[0], one[0] / 2) << "an unseen key counts in the mean";
  EXPECT_EQ(rig.table->rows(), 1);
  rig.compute({0, 0, 0, 0});
  EXPECT_NE(rig.lookup({{{2}, {3}}}), zeros);
  EXPECT_EQ(rig.table->rows(), 3);
  rig.lookup({{{70, 71}, {72}}});
  EXPECT_EQ(rig.table->rows(), 3) << "a lookup adds no rows";
}

TEST_P(TableTest, PreparingAheadChangesNothing) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global}) {
    TableSpec spec = small_spec(4, 2, 20, 120);
    spec.update = update;
    expect_preparing_ahead_changes_nothing(GetParam(), spec, 6, 100);
  }
}

TEST_P(TableTest, TheRowLimitIsAnErrorThatSaysWhatToRaise) {
  TableSpec spec = small_spec(2, 1, 4, 4);
  spec.row_limit = 6;
  TableRig rig(GetParam(), spec);
  const std::vector<float> dy(8, 1.0f);
  rig.step({{{1}, {2}, {3}, {4}}}, dy);
  rig.step({{{5}, {6}, {1}, {1}}}, dy);
  EXPECT_EQ(rig.table->rows(), 6);
  const std::string before = rig.bytes();
  const std::string message = message_of(Kind::data, [&] { rig.step({{{6}, {7}, {8}, {1}}}, dy); });
  EXPECT_EQ(message,
            "table 'small' on rank 0: the data contain more keys than the 6 rows that "
            "\"max_vocabulary_size_per_gpu\" allows (8 or more); raise the limit, let the table grow (without "
            "\"grow\": false and \"when_full\"), or evict rows for new keys (\"when_full\": \"evict_lru\")");
  EXPECT_EQ(rig.table->rows(), 6);
  EXPECT_EQ(rig.bytes(), before) << "the step that did not fit changed the table";
}

TEST_P(TableTest, ExportAndImportRoundTrip) {
  TableSpec spec = small_spec(5, 3, 50, 450);
  spec.identity_by_slot = true;
  spec.update = UpdateType::lazy_global;
  TableRig rig(GetParam(), spec), copy(GetParam(), spec);
  const std::string bytes = train(rig, 6);
  rig.table->export_rows(true, [&](const RowBlock& block) { copy.table->import_rows(block); });
  EXPECT_EQ(copy.bytes(), bytes);
  EXPECT_EQ(copy.table->rows(), rig.table->rows());
  // Importing rows over existing rows leaves everything else unchanged.
  rig.table->export_rows(false, [&](const RowBlock& block) { copy.table->import_rows(block); });
  EXPECT_EQ(copy.bytes(), bytes);
}

TEST_P(TableTest, ImportNamesAKeyThatComesTwiceOrHasNoSlot) {
  TableSpec spec = small_spec(1, 2, 4, 8);
  spec.identity_by_slot = true;
  TableRig rig(GetParam(), spec);
  const auto import = [&](std::vector<int64_t> keys, std::vector<int32_t> slots) {
    const std::vector<float> vectors(keys.size(), 1.0f);
    rig.table->import_rows({keys, slots, vectors, {}, {}});
  };
  import({4, 5, 4}, {0, 0, 1});
  EXPECT_EQ(message_of(Kind::data, [&] { import({4, 5, 4}, {1, 0, 1}); }),
            "table 'small': key 4 of slot 1 occurs twice");
  EXPECT_EQ(message_of(Kind::data, [&] { import({4}, {2}); }),
            "table 'small': key 4 belongs to slot 2, but there are only 2 slots");
}

}  // namespace
}  // namespace hctr::test
