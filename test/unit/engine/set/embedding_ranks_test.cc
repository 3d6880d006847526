// An EmbeddingSet on several ranks gives the same results as on one rank with all samples.
#include <gtest/gtest.h>

#include <array>

#include "engine/set/set_placement.h"
#include "support/joined.h"
#include "support/temporary_folder.h"
#include "unit/engine/set/rank_runs.h"
#include "unit/engine/set/set_cases.h"

namespace hctr::test {
namespace {

using PlaceWhere = EmbeddingPlacement::Where;

RanksResult run_on_ranks(const EmbeddingOptions& options, const std::vector<std::vector<RankSamples>>& steps) {
  std::vector<RankNumbers> numbers(kSetRanks);
  RanksResult result;
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    const auto r = static_cast<size_t>(rank);
    for (size_t i = 0; i < steps.size(); ++i) run_step(set, steps[i][r], step_number(i), numbers[r]);
    AllRows rows = all_rows(set);
    if (rank > 0) {
      EXPECT_TRUE(rows.empty());
      return;
    }
    result.rows = std::move(rows);
    result.updates = set.updates();
  });
  result.numbers = joined(numbers);
  return result;
}

void expect_same_as_one(const EmbeddingOptions& options, const std::vector<std::vector<RankSamples>>& steps) {
  const RanksResult one = run_on_one(options, steps), several = run_on_ranks(options, steps);
  EXPECT_EQ(one.numbers, several.numbers);
  EXPECT_EQ(one.rows, several.rows);
  EXPECT_EQ(one.updates, several.updates);
}

TEST(EmbeddingRanks, EveryPairOfOptionsGivesTheBitsOfOneRank) {
  const std::vector<EmbeddingOptimizer> optimizers = every_optimizer();
  const std::vector<Pooling> poolings = {Pooling::sum, Pooling::mean, Pooling::sqrtn, Pooling::max, Pooling::none};
  enum { optimizer, first, second, weighted, format, numbers, updates, where, dim };
  const std::vector<std::vector<int>> cases =
      all_pairs({static_cast<int>(optimizers.size()), 5, 5, 2, 3, 2, 2, 4, 3}, 17);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    SCOPED_TRACE(cat("case ", i, " of ", cases.size(), ": optimizer ", c[optimizer], ", poolings ", c[first], " ",
                     c[second], ", weighted ", c[weighted], ", format ", c[format], ", row numbers ", c[numbers],
                     ", global ", c[updates], ", placement ", c[where], ", dim ", c[dim]));
    EmbeddingTableOptions table{.name = "items", .dim = std::array{1, 5, 64}[static_cast<size_t>(c[dim])]};
    table.optimizer = optimizers[static_cast<size_t>(c[optimizer])];
    if (c[updates] == 1 && table.optimizer.rows == EmbeddingOptimizer::Rows::local)
      table.optimizer.rows = EmbeddingOptimizer::Rows::global;
    table.format = static_cast<EmbeddingTableOptions::Format>(c[format]);
    table.rows = c[numbers] == 1 ? 40 : 0;
    table.placement.where = static_cast<PlaceWhere>(c[where]);
    if (table.placement.where == PlaceWhere::replicated) table.rows = 40;
    EmbeddingTableOptions other{.name = "users", .dim = 3};
    other.optimizer = example(EmbeddingOptimizer::Rule::sgd, EmbeddingOptimizer::Formula::config);
    const auto may_weigh = [](Pooling pooling) { return pooling != Pooling::max && pooling != Pooling::none; };
    const Pooling a = poolings[static_cast<size_t>(c[first])], b = poolings[static_cast<size_t>(c[second])];
    const EmbeddingOptions options{.tables = {table, other},
                                   .features = {{"item", "items", a, c[weighted] == 1 && may_weigh(a)},
                                                {"user", "users", Pooling::sum, false},
                                                {"seen", "items", b, false}},
                                   .seed = 5};
    expect_same_as_one(options, uneven_steps(options, 3, 100 + i));
    if (HasFailure()) return;
  }
}

TEST(EmbeddingRanks, PoliciesCountTheKeysOfAllRanks) {
  EmbeddingOptions options = set_of_ranks(Pooling::max);
  options.features.pop_back();
  options.tables[0].min_count = 3;
  expect_same_as_one(options, uneven_steps(options, 6, 1));
  options.tables[0].min_count = 1;
  options.tables[0].admit_probability = 0.5;
  expect_same_as_one(options, uneven_steps(options, 6, 2));
  options.tables[0].admit_probability = 1;
  options.tables[0].expire_after = 2;
  expect_same_as_one(options, uneven_steps(options, 6, 3));
  options.tables[0].expire_after = 0;
  options.tables[0].most_rows = 20;  // limit of one rank, which owns the whole table
  options.tables[0].when_full = EmbeddingTableOptions::WhenFull::evict_lru;
  expect_same_as_one(options, uneven_steps(options, 6, 4));
}

// A thousand gradients of one key are summed in segments whose boundaries do not depend on the number of ranks.
TEST(EmbeddingRanks, SumsOfManyGradientsKeepTheirOrder) {
  EmbeddingOptions options = set_of_ranks();
  std::mt19937_64 random(4);
  std::vector<std::vector<RankSamples>> steps(2);
  for (auto& step : steps)
    for (const int64_t samples : {400, 10, 700}) step.push_back(random_samples(options, samples, random, 3));
  expect_same_as_one(options, steps);
}

TEST(EmbeddingRanks, BatchesGivenEarlyLookUpsAndReleasedOnesAreThoseOfOneRank) {
  const EmbeddingOptions options = set_of_ranks(Pooling::max);
  const auto steps = uneven_steps(options, 4, 5);
  const auto run = [&](EmbeddingSet& set, const std::function<RankSamples(size_t)>& samples, RankNumbers& numbers) {
    RankVectors first(options, samples(0)), second(options, samples(2)), looked(options, samples(1));
    const auto batch = set.forward(samples(0).samples, samples(0).views(options), first.views);
    const auto next = set.prefetch(samples(2).samples, samples(2).views(options));
    set.update(batch, gradients_of(options, samples(0)), {.learning_rate = 0.1f});
    set.forward(next, second.views);
    set.release(next);
    set.lookup(samples(1).samples, samples(1).views(options), looked.views);
    numbers = {first.values, second.values, looked.values};
  };
  RankNumbers one;
  EmbeddingSet alone(options);
  run(alone, [&](size_t i) { return joined(steps[i]); }, one);
  std::vector<RankNumbers> several(kSetRanks);
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    const auto r = static_cast<size_t>(rank);
    run(set, [&](size_t i) { return steps[i][r]; }, several[r]);
  });
  EXPECT_EQ(one, joined(several));
}

TEST(EmbeddingRanks, GradientsOfRowsAreOfTheRowsOfEachRank) {
  EmbeddingOptions options = set_of_ranks();
  for (EmbeddingTableOptions& table : options.tables) table.optimizer.rule = EmbeddingOptimizer::Rule::none;
  const auto steps = uneven_steps(options, 1, 6);
  using Sums = std::vector<std::map<int64_t, std::vector<float>>>;
  const auto run = [&](EmbeddingSet& set, const RankSamples& of) {
    RankVectors vectors(options, of);
    const auto batch = set.forward(of.samples, of.views(options), vectors.views);
    const std::vector<int64_t> most = set.keys_of_batch(batch);
    std::vector<std::vector<int64_t>> keys;
    std::vector<std::vector<float>> values;
    std::vector<RowGradients> to;
    for (size_t t = 0; t < most.size(); ++t) {
      keys.emplace_back(static_cast<size_t>(most[t]));
      values.emplace_back(static_cast<size_t>(most[t] * options.tables[t].dim));
    }
    for (size_t t = 0; t < most.size(); ++t) to.push_back({keys[t].data(), values[t].data()});
    const std::vector<int64_t> rows = set.row_gradients(batch, gradients_of(options, of), to);
    Sums sums(rows.size());
    for (size_t t = 0; t < rows.size(); ++t)
      for (int64_t i = 0; i < rows[t]; ++i) {
        const auto first = values[t].begin() + i * options.tables[t].dim;
        sums[t][keys[t][static_cast<size_t>(i)]].assign(first, first + options.tables[t].dim);
      }
    return sums;
  };
  EmbeddingSet alone(options);
  const Sums one = run(alone, joined(steps[0]));
  std::vector<Sums> several(kSetRanks);
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    several[static_cast<size_t>(rank)] = run(set, steps[0][static_cast<size_t>(rank)]);
  });
  Sums all(one.size());
  size_t rows = 0;
  for (const Sums& of : several)
    for (size_t t = 0; t < of.size(); ++t) {
      all[t].insert(of[t].begin(), of[t].end());
      rows += of[t].size();
    }
  EXPECT_EQ(one, all);
  EXPECT_EQ(rows, one[0].size() + one[1].size());  // each row has exactly one owner rank
}

// A set saved on three ranks resumes on any number of ranks.
TEST(EmbeddingRanks, WhatThreeHaveSavedGoesOnOnAnyNumber) {
  EmbeddingOptions options = set_of_ranks();
  options.tables.push_back({.name = "hours", .dim = 2, .rows = 24, .placement = {PlaceWhere::replicated}});
  options.tables[0].min_count = 2;
  options.features.push_back({"hour", "hours", Pooling::sum, false});
  options.tables[2].rows = 40;
  const TemporaryFolder folder;
  auto steps = uneven_steps(options, 6, 10);
  const std::vector<std::vector<RankSamples>> before(steps.begin(), steps.begin() + 3),
      after(steps.begin() + 3, steps.end());
  const RanksResult whole = run_on_one(options, steps);
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    RankNumbers numbers;
    for (size_t i = 0; i < before.size(); ++i)
      run_step(set, before[i][static_cast<size_t>(rank)], step_number(i), numbers);
    set.save(folder.path() / "saved");
    set.save(folder.path() / "saved");
  });
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    std::vector<RankNumbers> numbers(static_cast<size_t>(ranks));
    const auto go_on = [&](EmbeddingSet& set, int rank) {
      set.load(folder.path() / "saved");
      for (size_t i = 0; i < after.size(); ++i) {
        // This rank has the samples of rank `rank` of three. With fewer ranks, the last rank also has the samples of
        // the missing ranks.
        std::vector<RankSamples> own;
        for (int r = rank; r < (rank + 1 == ranks ? kSetRanks : rank + 1); ++r)
          own.push_back(after[i][static_cast<size_t>(r)]);
        run_step(set, joined(own), step_number(before.size() + i), numbers[static_cast<size_t>(rank)]);
      }
      const AllRows rows = all_rows(set);
      EXPECT_EQ(rows, rank == 0 ? whole.rows : AllRows());
      EXPECT_EQ(set.updates(), whole.updates);
    };
    if (ranks == 1) {
      EmbeddingSet set(options);
      go_on(set, 0);
    } else {
      on_ranks(options, ranks, go_on);
    }
    EXPECT_EQ(joined(numbers), RankNumbers(whole.numbers.end() - 6, whole.numbers.end()));
  }
}

TEST(EmbeddingRanks, RowsOfAllComeToRankZeroAndImportedOnesGoToTheirRanks) {
  EmbeddingOptions options = set_of_ranks();
  options.tables[0].marks_changes = true;
  options.tables[0].placement.where = PlaceWhere::spread;
  options.tables[1].placement.where = PlaceWhere::spread;
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    const std::vector<int64_t> keys = {-9, 2, 3, 7, 1000};
    std::vector<float> vectors;
    for (size_t i = 0; i < keys.size() * 4; ++i) vectors.push_back(static_cast<float>(i));
    set.note_exported();
    set.import_rows("items", {keys, vectors});
    EXPECT_EQ(set.rows("items"), 5);
    EXPECT_EQ(set.rows("days"), 40);
    EXPECT_EQ(set.memory("items").rows, 5);
    std::vector<int64_t> have;
    std::vector<float> values;
    set.export_changed_rows("items", false, [&](const TableRows& rows) {
      have.insert(have.end(), rows.keys.begin(), rows.keys.end());
      values.insert(values.end(), rows.vectors.begin(), rows.vectors.end());
    });
    EXPECT_EQ(have, rank == 0 ? keys : std::vector<int64_t>());
    EXPECT_EQ(values, rank == 0 ? vectors : std::vector<float>());
    expect_error_of(Kind::data, "key 41", [&] {
      const int64_t outside = 41;
      set.import_rows("days", {{&outside, 1}, {}});
    });
    // If the receiver of exported rows throws, all ranks throw the error and remain usable.
    expect_error_of(Kind::interrupted, "enough", [&] {
      set.export_rows("items", false, [](const TableRows&) { throw Error(Kind::interrupted, "enough"); });
    });
    EXPECT_TRUE(set.removed_keys("items").empty());
    EXPECT_TRUE(set.counts("days").empty());
  });
}

// Two of three ranks are in one process, and the third in another. Threads act as processes.
TEST(EmbeddingRanks, ProcessesThatJoinGiveTheNumbersOfOneRank) {
  const EmbeddingOptions options = set_of_ranks(Pooling::max);
  const auto steps = uneven_steps(options, 4, 11);
  const int port = free_port();
  const auto join = [&](int process, const std::string& secret) {
    return EmbeddingRank::of_processes({.ranks = 2 - process,
                                        .address = "127.0.0.1",
                                        .port = port,
                                        .process = process,
                                        .processes = 2,
                                        .secret = secret,
                                        .waits = {.join_seconds = 20}});
  };
  std::vector<RankNumbers> numbers(kSetRanks);
  AllRows rows;
  run_ranks(2, [&](int process) {
    std::vector<EmbeddingRank> ranks = join(process, "a secret that all processes know");
    const int here = static_cast<int>(ranks.size());
    run_ranks(here, [&](int local) {
      EmbeddingOptions own = options;
      own.rank = std::move(ranks[static_cast<size_t>(local)]);
      const auto rank = static_cast<size_t>(own.rank.rank());
      EXPECT_EQ(own.rank.size(), kSetRanks);
      EmbeddingSet set(own);
      own.rank = {};
      for (size_t i = 0; i < steps.size(); ++i) run_step(set, steps[i][rank], step_number(i), numbers[rank]);
      AllRows all = all_rows(set);
      if (rank == 0) rows = std::move(all);
    });
  });
  const RanksResult one = run_on_one(options, steps);
  EXPECT_EQ(joined(numbers), one.numbers);
  EXPECT_EQ(rows, one.rows);
}

TEST(EmbeddingRanks, TablesAreBalanced) {
  EmbeddingOptions options;
  const auto add = [&](const std::string& name, int64_t rows, EmbeddingPlacement placement = {}) {
    options.tables.push_back({.name = name, .dim = 8, .rows = rows, .placement = placement});
  };
  add("hashed", 0);
  add("large", 1000);
  add("a", 300);
  add("b", 200);
  add("c", 150);
  add("stated", 300, {PlaceWhere::whole, 0});
  const std::vector<TablePlace> places = places_of(options, 3);
  EXPECT_EQ(places[0], (TablePlace{PlaceWhere::spread}));
  EXPECT_EQ(places[1], (TablePlace{PlaceWhere::spread}));  // this table has more than a third of all rows
  EXPECT_EQ(places[2], (TablePlace{PlaceWhere::whole, 1}));
  EXPECT_EQ(places[3], (TablePlace{PlaceWhere::whole, 2}));
  EXPECT_EQ(places[4], (TablePlace{PlaceWhere::whole, 2}));
  EXPECT_EQ(places[5], (TablePlace{PlaceWhere::whole, 0}));
}

}  // namespace
}  // namespace hctr::test
