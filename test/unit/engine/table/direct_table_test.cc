// Tables with direct keys: ownership of keys, equality with a table that has a hash index, keys outside their ranges,
// and files.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "formats/model/sparse_file.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

const std::vector<int64_t> kSizes = {7, 1, 20};

TEST(DirectKeysTest, EveryKeyHasOneRowOnOneRankAndRowsKnowTheirKeys) {
  for (const bool by_slot : {false, true})
    for (const char* kind : {"localized", "distributed", "mixed"})
      for (const auto& [ranks, first_key] :
           {std::pair<int64_t, int64_t>{1, 0}, {1, 11}, {2, 0}, {3, 5}, {8, 0}, {8, 13}}) {
        // If slots share rows, a key belongs to no single slot, so keys cannot be placed by the owner rank of their
        // slot.
        if (!by_slot && *kind != 'd' && ranks > 1) continue;
        SCOPED_TRACE(kind);
        Placement placement = Placement::without_plan(
            *kind == 'd' ? PlacementRule::distributed : PlacementRule::localized, true, 3, ranks);
        if (*kind == 'm') placement.owners = {static_cast<int32_t>(ranks - 1), 0, Placement::kSpread};
        int64_t rows = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const DirectKeys keys = direct_keys(kSizes, by_slot, placement, rank, first_key);
          const ops::DirectIndex index = keys.index();
          rows += keys.rows();
          std::vector<bool> taken(static_cast<size_t>(keys.rows() + 1));
          int64_t offset = first_key;
          for (int32_t slot = 0; slot < 3; offset += kSizes[static_cast<size_t>(slot++)])
            for (int64_t key = -3; key < 50; ++key) {
              const bool exists = by_slot ? key >= offset && key < offset + kSizes[static_cast<size_t>(slot)]
                                          : key >= first_key && key < first_key + 28;
              const int64_t row = index.row(key, slot);
              ASSERT_EQ(row != 0, exists && placement.owner(slot, key) == rank)
                  << "key " << key << ", slot " << slot << ", rank " << rank;
              if (row == 0) continue;
              ASSERT_LE(row, keys.rows());
              ASSERT_TRUE(!taken[static_cast<size_t>(row)] || !by_slot) << "two keys have row " << row;
              taken[static_cast<size_t>(row)] = true;
              const ops::RowOwner owner = index.owner(row);
              ASSERT_EQ(owner.key, key);
              ASSERT_EQ(owner.slot, by_slot ? slot : 0);
            }
          for (const int64_t far : {INT64_MIN, INT64_MAX, int64_t{1} << 40}) ASSERT_EQ(index.row(far, 1), 0);
        }
        ASSERT_EQ(rows, 28);
      }
}

TableSpec direct_spec(TableSpec spec, const std::vector<int64_t>& sizes = kSizes) {
  spec.direct = direct_keys(sizes, spec.identity_by_slot, {}, 0);
  return spec;
}

/// Random keys from the range of each slot, or from all ranges if slots share rows.
Bags bags_in_range(const TableSpec& spec, int most, std::mt19937_64& random) {
  Bags bags = random_bags(spec, spec.samples, most, 1000, random);
  int64_t offset = 0;
  for (size_t s = 0; s < bags.size(); offset += kSizes[s++])
    for (auto& bag : bags[s])
      for (int64_t& key : bag) key = spec.identity_by_slot ? offset + key % kSizes[s] : key % 28;
  return bags;
}

/// Returns all rows of the table as bytes, by slot and key.
std::map<std::pair<int32_t, int64_t>, std::string> rows_by_slot_and_key(TableRig& rig) {
  std::map<std::pair<int32_t, int64_t>, std::string> rows;
  rig.table->export_rows(true, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) {
      std::string& row = rows[{block.slots.empty() ? 0 : block.slots[i], block.keys[i]}];
      const auto add = [&](const auto& numbers) {
        const size_t width = numbers.size() / block.keys.size();
        const auto part = numbers.subspan(i * width, width);
        row.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
      };
      add(block.vectors), add(block.last_steps);
      for (const auto& state : block.states) add(state);
    }
  });
  return rows;
}

/// Whether a gradient of zero changes a weight that has never been updated.
bool decays_new_weights(const ops::Optimizer& optimizer) {
  PlainWeight weight(optimizer, 1);
  plain_update(optimizer, weight, 0, 0.05, 1);
  return std::abs(weight.w - 1) > 1e-6;
}

class DirectTable : public OnDevice {};
HCTR_ON_EACH_DEVICE(DirectTable);

TEST_P(DirectTable, TrainsToTheNumbersOfATableWithAnIndex) {
  std::vector<ops::Optimizer> rules = every_rule();
  rules.push_back({.kind = ops::Optimizer::Kind::adagrad, .epsilon = 1e-3f, .initial = 0.25f, .row_wise = true});
  for (const bool by_slot : {false, true})
    for (const bool pooled : {true, false})
      for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global})
        for (const ops::Optimizer& optimizer : rules)
          for (const DType storage : {DType::f32, DType::bf16}) {
            const bool adam = optimizer.kind == ops::Optimizer::Kind::adam;
            if (update == UpdateType::lazy_global && !adam) continue;
            // Global weight decay changes every row. The table with a hash index lacks rows that did not occur, so the
            // tables would differ.
            if (update == UpdateType::global && decays_new_weights(optimizer)) continue;
            SCOPED_TRACE(cat(name_of_rule(optimizer), pooled ? ", pooled" : ", apart", ", update ",
                             static_cast<int>(update), by_slot ? ", by slot, " : ", by key, ", name_of(storage)));
            TableSpec spec = pooled ? small_spec(5, 3, 12, 12 * 3 * 3) : unpooled_spec(5, 12, {3, 3, 3});
            spec.identity_by_slot = by_slot;
            if (by_slot) spec.slot_bounds = {0.3f, 1.0f, 0.2f};
            spec.optimizer = optimizer;
            spec.update = update;
            spec.storage = storage;
            TableRig hash(GetParam(), spec), direct(GetParam(), direct_spec(spec));
            std::mt19937_64 random(3);
            for (int t = 0; t < 4; ++t) {
              const Bags bags = bags_in_range(spec, 3, random);
              const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
              ASSERT_EQ(direct.step(bags, dy, 0.05f), hash.step(bags, dy, 0.05f)) << "forward of step " << t;
            }
            const auto all = rows_by_slot_and_key(direct);
            EXPECT_EQ(all.size(), 28u);
            for (const auto& [key, row] : rows_by_slot_and_key(hash))
              ASSERT_EQ(all.at(key), row) << "slot " << key.first << ", key " << key.second;
          }
}

TEST_P(DirectTable, HasAllRowsFromTheStartAndEvaluationSeesThem) {
  TableSpec spec = small_spec(6, 3, 2, 20);
  spec.identity_by_slot = true;
  spec.slot_bounds = {0.5f, 0.01f, 0.1f};
  TableRig rig(GetParam(), direct_spec(spec)), hash(GetParam(), spec);
  EXPECT_EQ(rig.table->rows(), 28);
  const Bags bags = {{{3}, {}}, {{7}, {7}}, {{8, 27}, {9}}};
  EXPECT_EQ(rig.lookup(bags), hash.step(bags, std::vector<float>(36, 0.0f)))
      << "first values are those of a table with an index";
  TableRig other(GetParam(), direct_spec(spec), 3), cpu(kCpu, direct_spec(spec));
  EXPECT_EQ(rig.bytes(), other.bytes());
  EXPECT_EQ(rig.bytes(), cpu.bytes());
  spec.combiner = ops::Combiner::mean;
  TableRig mean(GetParam(), direct_spec(spec));
  EXPECT_EQ(mean.lookup({{{}, {}}, {{}, {}}, {{}, {}}}), std::vector<float>(36, 0.0f));
}

TEST_P(DirectTable, AKeyOutsideItsRangeDoesNothingAndIsNamed) {
  struct Case {
    bool by_slot;
    Bags bags;
    std::string what;
  };
  const std::string advice =
      ". Keys are numbered across all slots: the keys of each slot follow those of the previous slot. Correct the "
      "sizes, or use a hash index, which accepts any key: \"index\": \"hash\"";
  const Case cases[] = {
      {true,
       {{{0}, {1}}, {{7}, {}}, {{8, 28}, {6}}},
       "key 28 of slot 2 is outside the 20 keys from 8 to 27 that \"slot_size_array\" gives the slot"},
      {true,
       {{{0}, {1}}, {{8}, {}}, {{8, 9}, {-4}}},
       "key 8 of slot 1 is outside the 1 keys from 7 to 7 that \"slot_size_array\" gives the slot"},
      {false,
       {{{0}, {27}}, {{8}, {}}, {{-1, 9}, {99}}},
       "key -1 of slot 2 is outside the 28 keys from 0 to 27 that \"slot_size_array\" gives all slots together"},
  };
  for (const Case& one : cases) {
    TableSpec spec = small_spec(3, 3, 2, 12);
    spec.identity_by_slot = one.by_slot;
    spec.optimizer.kind = ops::Optimizer::Kind::sgd;
    TableRig rig(GetParam(), direct_spec(spec)), without(GetParam(), direct_spec(spec));
    Bags rest = one.bags;  // the keys of `one` that have a row, in the same bags
    for (size_t s = 0; s < 3; ++s)
      for (auto& bag : rest[s])
        std::erase_if(bag,
                      [&](int64_t key) { return rig.spec().direct.index().row(key, static_cast<int32_t>(s)) == 0; });
    const std::vector<float> dy(18, 1.0f);
    const std::vector<float> y = rig.step(one.bags, dy);
    EXPECT_EQ(y, without.step(rest, dy));
    EXPECT_EQ(rig.bytes(), without.bytes());
    const std::string wanted = cat("table 'small' on rank 0: training data: ", one.what, advice);
    EXPECT_EQ(message_of(Kind::data, [&] { rig.table->check_keys(); }), wanted);
    EXPECT_EQ(message_of(Kind::data, [&] { rig.prepare(rest); }), wanted) << "and no further step is prepared";
    without.table->check_keys();
    without.lookup(one.bags);
    without.runtime.compute_stream().synchronize();
    EXPECT_EQ(message_of(Kind::data, [&] { without.table->check_keys(); }),
              cat("table 'small' on rank 0: evaluation data: ", one.what, advice));
  }
}

TEST_P(DirectTable, ManyKeysOutsideTheirRangesNameTheFirst) {
  TableSpec spec = small_spec(1, 1, 20000, 20000);
  Bags bags = empty_bags(spec, spec.samples);
  for (size_t b = 0; b < bags[0].size(); ++b)
    bags[0][b] = {b < 9000 ? static_cast<int64_t>(b % 5) : static_cast<int64_t>(b)};
  TableRig rig(GetParam(), direct_spec(spec, {5}), 4);
  rig.step(bags, std::vector<float>(20000, 0.0f));
  EXPECT_NE(message_of(Kind::data, [&] { rig.table->check_keys(); }).find("key 9000 of slot 0"), std::string::npos);
}

TEST_P(DirectTable, RecordedAheadAndOnManyThreadsTheNumbersAreEqual) {
  TableSpec spec = small_spec(8, 3, 40, 40 * 3 * 3);
  spec.identity_by_slot = true;
  spec.update = UpdateType::global;
  TableRig one(GetParam(), direct_spec(spec), 1), other(GetParam(), direct_spec(spec), 4, 3, false),
      ahead(GetParam(), direct_spec(spec));
  std::vector<Bags> batches;
  std::vector<std::vector<float>> dys;
  std::mt19937_64 random(4);
  for (int t = 0; t < 5; ++t) {
    batches.push_back(bags_in_range(spec, 3, random));
    dys.push_back(random_floats(spec.samples * spec.slots * spec.dim, random));
    one.step(batches.back(), dys.back());
    other.step(batches.back(), dys.back());
  }
  ahead.prepare(batches[0]);
  for (size_t t = 0; t < 5; ++t) {
    if (t + 1 < 5) ahead.prepare(batches[t + 1]);
    ahead.compute(dys[t]);
  }
  EXPECT_EQ(one.bytes(), other.bytes());
  EXPECT_EQ(one.bytes(), ahead.bytes());
}

TEST_P(DirectTable, FilesHoldAllRowsAndGoBothWays) {
  const TemporaryFolder folder;
  for (const bool by_slot : {false, true}) {
    TableSpec spec = small_spec(3, 3, 4, 40);
    spec.identity_by_slot = by_slot;
    spec.optimizer.kind = ops::Optimizer::Kind::sgd;
    std::mt19937_64 random(4);
    const Bags bags = bags_in_range(spec, 1, random);
    TableRig direct(GetParam(), direct_spec(spec)), hash(GetParam(), spec);
    for (TableRig* rig : {&direct, &hash}) rig->step(bags, std::vector<float>(36, 0.5f));
    const int64_t row = by_slot ? 8 + 8 + 12 : 8 + 12;
    save_sparse(folder / "direct", *direct.table, 8);
    save_sparse(folder / "hash", *hash.table, 8);
    EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(folder / "direct")), 28 * row);
    ASSERT_LT(hash.table->rows(), 28);

    TableRig from_hash(GetParam(), direct_spec(spec)), from_direct(GetParam(), direct_spec(spec)),
        into_hash(GetParam(), spec);
    load_sparse(folder / "hash", *from_hash.table, 8);
    EXPECT_EQ(from_hash.bytes(), direct.bytes()) << "rows that a file lacks stay as they started";
    load_sparse(folder / "direct", *from_direct.table, 8);
    EXPECT_EQ(from_direct.bytes(), direct.bytes());
    load_sparse(folder / "direct", *into_hash.table, 8);
    EXPECT_EQ(into_hash.bytes(), direct.bytes());
    from_direct.table->check_keys();
  }
}

TEST_P(DirectTable, AFileWithAKeyOutsideItsRangeIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  TableSpec spec = small_spec(2, 3, 4, 40);
  spec.identity_by_slot = true;
  TableRig hash(GetParam(), spec), direct(GetParam(), direct_spec(spec));
  const std::vector<float> vectors(4, 1.0f);
  const std::vector<int64_t> keys = {3, 4};
  hash.table->import_rows({keys, std::vector<int32_t>{0, 1}, vectors, {}, {}});
  save_sparse(folder / "a", *hash.table, 8);
  EXPECT_EQ(message_of(Kind::data, [&] { load_sparse(folder / "a", *direct.table, 8); }),
            cat("table 'small': key 4 of slot 1 is outside the 1 keys from 7 to 7 that \"slot_size_array\" gives the "
                "slot\n  while loading sparse model file '",
                (folder / "a").string(), "'"));
}

TEST_P(DirectTable, MoreRowsThanMemoryHoldsIsAnErrorWithTheBytes) {
  TableSpec spec = direct_spec(small_spec(1 << 20, 3, 2, 12), {1, 1, 2000000000});
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  const std::string message = message_of(Kind::device, [&] { TableRig rig(GetParam(), spec); });
  EXPECT_NE(message.find("table 'small' on rank 0: the 2000000002 rows of \"slot_size_array\" take 8388"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("GiB) are free on "), std::string::npos) << message;
  EXPECT_NE(message.find("\"index\": \"hash\""), std::string::npos) << message;
  EXPECT_EQ(message.find("placement"), std::string::npos) << message;
  spec.ranks = 2;
  EXPECT_NE(message_of(Kind::device, [&] { TableRig rig(GetParam(), spec); }).find("\"placement\": \"auto\""),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
