// Errors of an EmbeddingSet on several ranks: all ranks throw the error, and no rank hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "unit/engine/set/rank_runs.h"

namespace hctr::test {
namespace {

using PlaceOfRows = EmbeddingPlacement::Where;

TEST(EmbeddingRankErrors, AnErrorOfOneIsThrownByAllAndTheSetGoesOn) {
  const EmbeddingOptions options = set_of_ranks();
  const auto steps = uneven_steps(options, 3, 7);
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    const auto r = static_cast<size_t>(rank);
    RankNumbers numbers;
    RankSamples wrong = steps[0][r];
    if (rank == 2) wrong.offsets[0].back() += 1;
    RankVectors vectors(options, wrong);
    expect_error_of(Kind::usage,
                    "offsets of feature 'item' cover 8 keys, but the feature has 7\n  while using embeddings on "
                    "rank 2 of 3",
                    [&] { set.forward(wrong.samples, wrong.views(options), vectors.views); });
    RankSamples outside = steps[2][r];
    if (rank == 0) outside.keys[1][0] = 40;
    RankVectors more(options, outside);
    expect_error_of(Kind::data,
                    "feature 'day' has key 40 at position 0; table 'days' has rows 0 to 39\n  while using embeddings "
                    "on rank 0 of 3",
                    [&] { set.lookup(outside.samples, outside.views(options), more.views); });
    expect_error_of(Kind::usage, "there is no embedding table 'shoes'",
                    [&] { set.rows(rank == 1 ? "shoes" : "days"); });
    run_step(set, steps[0][r], {.learning_rate = 0.1f}, numbers);
    EXPECT_EQ(set.updates(), 1);
  });
}

TEST(EmbeddingRankErrors, AFullTableIsAnErrorOnAllRanks) {
  EmbeddingOptions options = set_of_ranks();
  options.tables[0].most_rows = 2;
  const auto steps = uneven_steps(options, 3, 8);
  on_ranks(options, kSetRanks, [&](EmbeddingSet& set, int rank) {
    const RankSamples& of = steps[2][static_cast<size_t>(rank)];
    RankVectors vectors(options, of);
    for (int i = 0; i < 2; ++i)
      expect_error_of(Kind::data, "most_rows", [&] { set.forward(of.samples, of.views(options), vectors.views); });
    const auto batch = set.forward(0, std::vector<FeatureKeys>(3, FeatureKeys{.offsets = of.offsets[0].data()}),
                                   RankVectors(options, of).views);
    set.release(batch);
  });
}

TEST(EmbeddingRankErrors, ARankThatEndsWakesTheOthers) {
  const EmbeddingOptions options = set_of_ranks();
  const auto steps = uneven_steps(options, 1, 9);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> woken{0};
  EXPECT_THROW(on_ranks(options, kSetRanks,
                        [&](EmbeddingSet& set, int rank) {
                          if (rank == 1) throw std::runtime_error("of the caller");
                          RankNumbers numbers;
                          expect_error_of(Kind::comm, "rank 1 failed: the rank", [&] {
                            run_step(set, steps[0][static_cast<size_t>(rank)], {.learning_rate = 0.1f}, numbers);
                          });
                          ++woken;
                        }),
               std::runtime_error);
  EXPECT_EQ(woken, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(EmbeddingRankErrors, OptionsThatDifferAreRefusedOnAllRanks) {
  std::vector<EmbeddingRank> ranks = EmbeddingRank::of_threads(2);
  run_ranks(2, [&](int rank) {
    EmbeddingOptions options = set_of_ranks();
    options.rank = ranks[static_cast<size_t>(rank)];
    if (rank == 1) options.tables[1].dim = 5;
    expect_error_of(Kind::usage,
                    "the embedding sets of the ranks differ: on rank 0 'dim' of table '\"days\"' is 3, but here "
                    "5\n  while using embeddings on rank 1 of 2",
                    [&] { EmbeddingSet set(options); });
    options.tables[1].dim = 3;
    options.tables[0].placement = {PlaceOfRows::replicated};
    expect_error_of(Kind::usage, "'items': a replicated table needs `rows`, the", [&] { EmbeddingSet set(options); });
    options.tables[0].placement = {PlaceOfRows::whole, 2};
    expect_error_of(Kind::usage, "expected 0 to 1", [&] { EmbeddingSet set(options); });
  });
}

TEST(EmbeddingRankErrors, OptionsOfGroupsThatDoNotFitAreRefused) {
  expect_error_of(Kind::usage, "0 ranks of a process", [] { EmbeddingRank::of_threads(0); });
  expect_error_of(Kind::usage, "process 2 of 2", [] {
    EmbeddingRank::of_processes({.address = "127.0.0.1", .port = 1, .process = 2, .processes = 2});
  });
  expect_error_of(Kind::usage, "has 5 characters; expected at least 16", [] {
    EmbeddingRank::of_processes({.address = "127.0.0.1", .port = 1, .processes = 2, .secret = "short"});
  });
  expect_error_of(Kind::usage, "need the address of process 0", [] { EmbeddingRank::of_processes({.processes = 2}); });
}

}  // namespace
}  // namespace hctr::test
