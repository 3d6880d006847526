// Access statistics of rows next to model files: counts and file contents. A loaded table resumes as if training had
// not stopped.
#include "formats/model/access_stats_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "formats/model/access_stats_summary.h"
#include "formats/model/sparse_file.h"
#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "unit/engine/exchange/sharded_rig.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {
namespace {

TableSpec spec_with(const RowPolicy& policy, bool by_slot = true, int64_t row_limit = 0) {
  TableSpec spec = small_spec(3, 3, 8, 8 * 3 * 3);
  spec.name = "marked";
  spec.identity_by_slot = by_slot;
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  spec.row_limit = row_limit;
  spec.policy = policy;
  return spec;
}

struct Batches {
  std::vector<Bags> bags;
  std::vector<std::vector<float>> dys;
  Batches(const TableSpec& spec, int count, int64_t vocabulary = 40) {
    std::mt19937_64 random(31);
    for (int64_t t = 0; t < count; ++t) {
      bags.push_back(random_bags(spec, spec.samples, 3, vocabulary, random));
      for (auto& slot : bags.back())
        for (auto& bag : slot)
          for (int64_t& key : bag) key += t;  // keys grow with t, so old keys do not occur again
      dys.push_back(random_floats(spec.samples * spec.slots * spec.dim, random));
    }
  }
  void train(TableRig& rig, size_t from, size_t to) const {
    for (size_t t = from; t < to; ++t) rig.step(bags[t], dys[t]);
  }
  /// The expected statistics of the keys in the first `steps` batches.
  std::map<std::pair<int32_t, int64_t>, formats::RowAccess> stats(bool by_slot, size_t steps) const {
    std::map<std::pair<int32_t, int64_t>, formats::RowAccess> out;
    for (size_t t = 0; t < steps; ++t)
      for (size_t s = 0; s < bags[t].size(); ++s)
        for (const auto& bag : bags[t][s])
          for (const int64_t key : bag) {
            const int32_t slot = by_slot ? static_cast<int32_t>(s) : 0;
            formats::RowAccess& row = out[{slot, key}];
            row = {key, slot, static_cast<uint32_t>(t), row.occurrences + 1};
          }
    return out;
  }
};

std::pair<AccessStatsHead, std::vector<formats::RowAccess>> read_all(const std::filesystem::path& path) {
  std::vector<formats::RowAccess> all;
  const AccessStatsHead head =
      read_access_stats(path, [&](const AccessStatsHead&, std::span<const formats::RowAccess> stats) {
        all.insert(all.end(), stats.begin(), stats.end());
      });
  return {head, all};
}

class AccessStatsFileTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(AccessStatsFileTest);

TEST_P(AccessStatsFileTest, HoldsTheLastStepAndTheOccurrencesOfEveryKey) {
  for (const bool by_slot : {true, false})
    for (const RowPolicy& policy : {RowPolicy{.expire_after = 1000, .counts_keys = true},
                                    RowPolicy{.counts_keys = true}, RowPolicy{.expire_after = 1000}}) {
      const TemporaryFolder folder;
      const TableSpec spec = spec_with(policy, by_slot);
      TableRig rig(GetParam(), spec);
      const Batches batches(spec, 20);
      batches.train(rig, 0, 20);
      save_sparse(folder / "t.model", *rig.table, 8);
      const auto [head, stats] = read_all(folder / "t.model.marks");
      EXPECT_EQ(head.steps, 20);
      EXPECT_EQ(head.rows, rig.table->rows());
      EXPECT_EQ(head.last_seen, policy.expire_after > 0);
      EXPECT_EQ(head.occurrences, policy.counts_keys);
      const auto expected = batches.stats(by_slot, 20);
      ASSERT_EQ(stats.size(), expected.size());
      size_t i = 0;
      for (const auto& [owner, row] : expected) {  // `expected` is sorted by slot and key
        EXPECT_EQ(std::pair(stats[i].slot, stats[i].key), owner);
        EXPECT_EQ(stats[i].last_seen, head.last_seen ? row.last_seen : 0);
        EXPECT_EQ(stats[i].occurrences, head.occurrences ? row.occurrences : 0) << "each time in a bag counts";
        ++i;
      }
    }
}

TEST_P(AccessStatsFileTest, ALoadedTableGoesOnAsIfItHadNotStopped) {
  constexpr size_t kStop = 37, kEnd = 90;
  const std::vector<std::pair<RowPolicy, int64_t>> policies = {
      {{.when_full = WhenFull::evict_lru}, 80},
      {{.when_full = WhenFull::evict_lfu}, 80},
      {{.expire_after = 5}, 0},
      {{.when_full = WhenFull::evict_lfu, .expire_after = 40}, 80},
      {{.counts_keys = true}, 0}};
  for (const auto& [policy, limit] : policies)
    for (const bool by_slot : {true, false}) {
      SCOPED_TRACE(cat(static_cast<int>(policy.when_full), ", ", policy.expire_after, by_slot ? " by slot" : ""));
      const TemporaryFolder folder;
      const TableSpec spec = spec_with(policy, by_slot, by_slot ? limit : limit / 8 * 5);
      const Batches batches(spec, kEnd);
      TableRig whole(GetParam(), spec), first(GetParam(), spec), second(GetParam(), spec), unmarked(GetParam(), spec);
      batches.train(whole, 0, kStop);
      const int64_t gone_before = whole.table->counts()["rows_evicted"] + whole.table->counts()["rows_expired"];
      batches.train(whole, kStop, kEnd);
      batches.train(first, 0, kStop);
      save_sparse(folder / "t.model", *first.table, 8);
      load_sparse(folder / "t.model", *second.table, 8);
      std::filesystem::copy(folder / "t.model", folder / "no_stats.model");
      load_sparse(folder / "no_stats.model", *unmarked.table, 8);
      batches.train(second, kStop, kEnd);  // `second` counts its own steps from 0
      batches.train(unmarked, kStop, kEnd);
      EXPECT_EQ(second.bytes(), whole.bytes());
      if (policy.removes_rows()) {
        EXPECT_GT(gone_before, 0);
        EXPECT_EQ(second.table->counts()["rows_evicted"] + second.table->counts()["rows_expired"] + gone_before,
                  whole.table->counts()["rows_evicted"] + whole.table->counts()["rows_expired"]);
      }
      save_sparse(folder / "whole", *whole.table, 8);
      save_sparse(folder / "second", *second.table, 8);
      save_sparse(folder / "unmarked", *unmarked.table, 8);
      EXPECT_EQ(read_file(folder / "second.marks"), read_file(folder / "whole.marks"));
      EXPECT_NE(read_file(folder / "unmarked.marks"), read_file(folder / "whole.marks"))
          << "the file made no difference";
    }
}

TEST_P(AccessStatsFileTest, ATableWithAnIndexByArithmeticCountsToo) {
  const TemporaryFolder folder;
  TableSpec spec = spec_with({.counts_keys = true});
  spec.direct = direct_keys({30, 30, 30}, true, Placement::without_plan(PlacementRule::localized, true, 3, 1), 0);
  TableRig rig(GetParam(), spec), copy(GetParam(), spec);
  rig.step({{{0, 0, 3}, {0}, {}, {}, {}, {}, {}, {}},
            {{31}, {}, {}, {}, {}, {}, {}, {}},
            {{}, {}, {}, {}, {}, {}, {}, {89}}},
           std::vector<float>(72, 1.0f));
  save_sparse(folder / "t", *rig.table, 8);
  const auto [head, stats] = read_all(folder / "t.marks");
  ASSERT_EQ(stats.size(), 90u);
  for (const formats::RowAccess& row : stats)
    EXPECT_EQ(row.occurrences, row.key == 0 ? 3 : row.key == 3 || row.key == 31 || row.key == 89) << row.key;
  load_sparse(folder / "t", *copy.table, 8);
  save_sparse(folder / "again", *copy.table, 8);
  EXPECT_EQ(read_file(folder / "again.marks"), read_file(folder / "t.marks"));
}

TEST(AccessStatsFile, IsWrittenOnlyWhereMarksAreKeptAndTheModelFileIsTheSame) {
  const TemporaryFolder folder;
  const TableSpec spec = spec_with({.counts_keys = true}), plain_spec = spec_with({});
  TableRig rig(kCpu, spec), plain(kCpu, plain_spec);
  const Batches batches(spec, 5);
  batches.train(rig, 0, 5);
  batches.train(plain, 0, 5);
  save_sparse(folder / "t", *rig.table, 8);
  const std::string model = read_file(folder / "t");
  EXPECT_TRUE(std::filesystem::exists(folder / "t.marks"));
  save_sparse(folder / "t", *plain.table, 8);
  EXPECT_EQ(read_file(folder / "t"), model);
  EXPECT_FALSE(std::filesystem::exists(folder / "t.marks")) << "those of another table";
}

TEST(AccessStatsFile, WhatIsWrittenIsKnownByteForByte) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "m");
  AccessStatsWriter writer(file, {.expire_after = 3, .counts_keys = true}, 12);
  const std::vector<int64_t> keys = {-7, 9};
  const std::vector<uint32_t> last_seen = {11, 4}, occurrences = {1, 500};
  writer.add({keys, {}, {}, {}, {}, last_seen, occurrences});
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
  writer.finish();
  file.commit();
  std::string head = R"({"schema":1,"steps":12,"rows":2,"marks":["last_seen","occurrences"]})";
  head.resize(255, ' ');
  const formats::RowAccess rows[2] = {{-7, 0, 11, 1}, {9, 0, 4, 500}};
  EXPECT_EQ(read_file(folder / "m"), head + "\n" + std::string(reinterpret_cast<const char*>(rows), sizeof rows));
}

TEST(AccessStatsFile, DamagedFilesAndThoseOfAnotherModelAreNamed) {
  const TemporaryFolder folder;
  const TableSpec spec = spec_with({.counts_keys = true}, false);
  TableRig rig(kCpu, spec);
  const Batches batches(spec, 5);
  batches.train(rig, 0, 3);
  save_sparse(folder / "t", *rig.table, 8);
  const std::string stats = read_file(folder / "t.marks");
  const auto loading = [&](const std::string& bytes) {
    std::ofstream(folder / "t.marks", std::ios::binary) << bytes;
    TableRig copy(kCpu, spec);
    return message_of(Kind::data, [&] { load_sparse(folder / "t", *copy.table, 8); });
  };
  const std::string path = (folder / "t.marks").string(), at = cat("file of access statistics '", path, "' ");
  EXPECT_NE(loading("").find(at + "does not begin with a line of JSON"), std::string::npos);
  EXPECT_NE(loading(stats.substr(0, stats.size() - 1)).find("rows: the file is damaged"), std::string::npos);
  std::string later = stats;
  later.replace(later.find("\"schema\":1"), 10, "\"schema\":2");
  EXPECT_NE(loading(later).find(at + "has schema 2; this version reads 1"), std::string::npos);
  batches.train(rig, 3, 5);
  save_sparse(folder / "later", *rig.table, 8);
  EXPECT_NE(loading(read_file(folder / "later.marks")).find("rows: the statistics belong to another model"),
            std::string::npos);
  std::string other_key = stats;
  other_key[256] = static_cast<char>(other_key[256] ^ 0x40);  // changes a byte of the first row's key
  EXPECT_NE(loading(other_key).find("keys without a row: the statistics do not belong to the model file next to "
                                    "them"),
            std::string::npos);
  std::string too_often = stats;
  too_often.back() = static_cast<char>(0xff);  // changes the highest byte of the last row's use count
  EXPECT_NE(loading(too_often).find("times: the file is damaged"), std::string::npos);
}

TEST(AccessStatsFile, RowsWhoseLastStepNobodyNotedDoNotExpireAtOnce) {
  const TemporaryFolder folder;
  const TableSpec counting = spec_with({.counts_keys = true}, false), expiring = spec_with({.expire_after = 5}, false);
  TableRig first(kCpu, counting), next(kCpu, expiring);
  const Batches batches(counting, 40);
  batches.train(first, 0, 30);
  save_sparse(folder / "t", *first.table, 8);
  load_sparse(folder / "t", *next.table, 8);
  const int64_t rows = next.table->rows();
  batches.train(next, 30, 32);
  EXPECT_GE(next.table->rows(), rows) << "loaded rows left after two steps";
  batches.train(next, 32, 40);
  EXPECT_GT(next.table->counts()["rows_expired"], 0);
}

TEST(AccessStatsSummaryTest, CountsKeysByHowOftenAndWhenTheyCame) {
  AccessStatsSummary summary(2);
  const AccessStatsHead head{.steps = 10, .rows = 5, .last_seen = true, .occurrences = true};
  summary.add(head,
              std::vector<formats::RowAccess>{{4, 0, 9, 1}, {5, 0, 8, 7}, {6, 1, 2, 0}, {1, 1, 9, 7}, {3, 0, 5, 2}});
  EXPECT_EQ(summary.occurrences(), 17);
  EXPECT_EQ(summary.most_occurrences(), 7);
  const auto text = [](const std::vector<AccessStatsSummary::Bin>& bins) {
    std::string out;
    for (const auto& bin : bins) out += cat(bin.from, "-", bin.to - 1, ":", bin.rows, " ");
    return out;
  };
  EXPECT_EQ(text(summary.by_occurrences()), "0-0:1 1-1:1 2-3:1 4-7:2 ");
  EXPECT_EQ(text(summary.by_steps_unseen()), "0-0:2 1-1:1 2-3:0 4-7:2 ");
  ASSERT_EQ(summary.hottest().size(), 2u);
  EXPECT_EQ(summary.hottest()[0].key, 5) << "among equals by slot and key";
  EXPECT_EQ(summary.hottest()[1].key, 1);
}

TEST(ShardedAccessStats, AreThoseOfOneRankAndGoWithTheRows) {
  for (const PlacementRule kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const bool cut : {false, true}) {
      if (cut && kind == PlacementRule::distributed) continue;
      ShardedRun run{.kind = kind, .spec = spec_with({.counts_keys = true}, kind == PlacementRule::localized)};
      run.spec.dim = 8;
      if (!cut) run.spec.policy.expire_after = 6;  // tables with expiry cannot be split
      if (cut) run.planned = [](int64_t ranks) { return Placement{ranks, {0, 1, 1, 0, 0, 1}, 2}; };
      const Batches batches(run.spec, 20);
      run.batches = batches.bags;
      run.evaluated = batches.bags[0];
      const ShardedOutcome one = run_sharded(1, run), two = run_sharded(2, run);
      ASSERT_FALSE(one.rows.occurrences.empty());
      EXPECT_EQ(two.rows.keys, one.rows.keys);
      EXPECT_EQ(two.rows.occurrences, one.rows.occurrences);
      EXPECT_EQ(two.rows.last_seen, one.rows.last_seen);
      run.batches.resize(2);
      const ShardedOutcome again_one = run_sharded(1, run, &one.rows), again_two = run_sharded(2, run, &one.rows);
      EXPECT_EQ(again_two.rows.occurrences, again_one.rows.occurrences);
      uint64_t before = 0, after = 0;
      for (const uint32_t count : one.rows.occurrences) before += count;
      for (const uint32_t count : again_two.rows.occurrences) after += count;
      EXPECT_GT(after, before);
    }
}

}  // namespace
}  // namespace hctr::test
