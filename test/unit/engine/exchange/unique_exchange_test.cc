// Ranks on several hosts exchange only unique keys and their vectors between hosts. The byte counts equal those
// computed from the data. Vectors, rows and counts equal those of ranks on one host, bit by bit.
#include "engine/exchange/unique_exchange.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/platform.h"
#include "unit/engine/exchange/sharded_rig.h"

namespace hctr::test {
namespace {

constexpr int kManyRanks = 6;
constexpr int64_t kSamplesOfRank = 96;

/// A run whose key frequencies follow a power law, about 1 / key. `least`: minimum number of keys per bag.
ShardedRun power_law_run(PlacementRule kind, int least, int most, int64_t vocabulary, int64_t dim = 16) {
  ShardedRun run{.kind = kind, .spec = small_spec(dim, 7, kManyRanks * kSamplesOfRank), .most_keys = most};
  run.spec.identity_by_slot = kind == PlacementRule::localized;
  run.spec.optimizer = {.kind = ops::Optimizer::Kind::adagrad, .epsilon = 1e-2f};
  std::mt19937_64 random(23);
  const auto bags_of_a_step = [&] {
    Bags bags = empty_bags(run.spec, run.spec.samples);
    for (auto& slot : bags)
      for (auto& bag : slot)
        for (auto n = least + static_cast<int>(random() % static_cast<uint64_t>(most - least + 1)); n > 0; --n) {
          const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;
          bag.push_back(static_cast<int64_t>(std::pow(static_cast<double>(vocabulary), u)));
        }
    return bags;
  };
  for (int t = 0; t < 3; ++t) {
    run.batches.push_back(bags_of_a_step());
    run.dys.push_back(random_gradients(run.spec, random));
  }
  run.evaluated = bags_of_a_step();
  return run;
}

/// Runs tests on each device. On a GPU all ranks share the device.
using UniqueExchangeOnDevice = OnDevice;

struct ExpectedBytes {
  int64_t unique = 0;       // bytes of unique keys and their vectors
  int64_t occurrences = 0;  // bytes if every occurrence of a key were sent, and a vector per bag
};

/// Computes the bytes from the data. `per_host`: ranks per host. `sums`: hosts sum gradients by key before sending.
ExpectedBytes expected_bytes(const ShardedRun& run, int per_host, bool sums = false) {
  ExpectedBytes bytes;
  const Placement placement = run.placement(kManyRanks);
  const int most = run.most_keys;
  const int64_t vector = run.spec.dim * static_cast<int64_t>(size_of(run.spec.exchange)),
                bags = per_host * kSamplesOfRank;
  const auto add = [&](const Bags& batch, bool gradients) {
    for (int host = 0; host < kManyRanks / per_host; ++host)
      for (int owner = 0; owner < kManyRanks; ++owner) {
        if (owner / per_host == host) continue;
        int64_t words = 0, message_bytes = 0;
        bytes.occurrences += 8 * per_host;
        for (size_t s = 0; s < batch.size(); ++s) {
          if (!placement.holds(owner, static_cast<int64_t>(s))) continue;
          std::set<int64_t> unique;
          int64_t keys = 0, with_key = 0;
          for (int64_t b = host * bags; b < (host + 1) * bags; ++b) {
            const int64_t before = keys;
            for (const int64_t key : batch[s][static_cast<size_t>(b)])
              if (placement.owner(static_cast<int64_t>(s), key) == owner) {
                ++keys;
                unique.insert(key);
              }
            with_key += keys > before;
          }
          const auto different = static_cast<int64_t>(unique.size());
          const auto vectors = [&](int64_t sent) { return vector * std::min(sent, with_key); };
          const auto places = [&](int64_t sent) { return sent == keys ? 0 : keys * (sent <= 256 ? 1 : 2); };
          const int64_t ways = sums && gradients ? 2 : 1;
          const auto of_all = [&](int64_t sent) { return 8 * sent + ways * vectors(sent) + places(sent); };
          const int64_t sent = of_all(different) < of_all(keys) ? different : keys;
          const int64_t lengths = most > 1 ? bags : keys == bags ? 0 : bags / 8;
          words += 1 + sent;
          message_bytes += std::min(lengths, 2 * keys) + places(sent);
          const int64_t of_gradients = sums ? vectors(sent) : vector * with_key;
          bytes.unique += vectors(sent) + (gradients ? of_gradients : 0);
          bytes.occurrences += 12 * keys + vector * with_key * (gradients ? 2 : 1);
        }
        bytes.unique += 16 + 8 * (words + (message_bytes + 7) / 8);  // 16 bytes of counts, then the message
      }
  };
  for (const Bags& batch : run.batches) add(batch, true);
  add(run.evaluated, false);
  return bytes;
}

TEST(UniqueExchange, SendsUniqueKeysAndTheirVectorsByteByByte) {
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const int most : {1, 3})
      for (const auto& [go, per_host] : {std::pair{VectorsGo::to_hosts, 2}, {VectorsGo::to_ranks, 1}}) {
        SCOPED_TRACE(cat(kind == PlacementRule::localized ? "localized" : "distributed", ", ", most, " keys, hosts of ",
                         per_host, " ranks"));
        ShardedRun run = power_law_run(kind, 1, most, most == 1 ? 300 : 80);
        const ShardedOutcome one_host = run_sharded(kManyRanks, run);
        run.go = go;
        const ShardedOutcome outcome = run_sharded(kManyRanks, run);
        expect_equal(one_host, outcome);
        const ExpectedBytes expected = expected_bytes(run, per_host);
        EXPECT_EQ(outcome.between_hosts.sent, expected.unique);
        EXPECT_LT(10 * outcome.between_hosts.sent, 9 * expected.occurrences);
        RecordProperty(cat("bytes_", name_of(DType::f32), "_", static_cast<int>(kind), "_", most, "_", per_host),
                       cat(expected.unique, " of ", expected.occurrences));
      }
}

TEST(UniqueExchange, RanksReceiveTheSameBitsInEveryPrecision) {
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const auto& [storage, exchange] : {std::pair{DType::f32, DType::f16},
                                            {DType::f32, DType::bf16},
                                            {DType::bf16, DType::bf16},
                                            {DType::bf16, DType::f32},
                                            {DType::f16, DType::bf16}}) {
      SCOPED_TRACE(cat(kind == PlacementRule::localized ? "localized, " : "distributed, ", name_of(storage), " in ",
                       name_of(exchange)));
      ShardedRun run = power_law_run(kind, 0, 4, 30, 5);
      run.spec.combiner = ops::Combiner::mean;
      run.spec.storage = storage;
      run.spec.exchange = exchange;
      const ShardedOutcome one_host = run_sharded(kManyRanks, run);
      for (const VectorsGo go : {VectorsGo::to_hosts, VectorsGo::to_ranks}) {
        run.go = go;
        expect_equal(one_host, run_sharded(kManyRanks, run));
      }
    }
}

TEST(UniqueExchange, PoliciesSeeEveryOccurrence) {
  const auto policies = [](auto change) {
    RowPolicy policy;
    change(policy);
    return policy;
  };
  const RowPolicy all[] = {policies([](RowPolicy& p) { p.min_count = 40; }),
                           policies([](RowPolicy& p) { p.admit_probability = 0.05; }),
                           policies([](RowPolicy& p) { p.expire_after = 1; }),
                           policies([](RowPolicy& p) { p.when_full = WhenFull::evict_lfu; }),
                           policies([](RowPolicy& p) { p.when_full = WhenFull::ignore; })};
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const RowPolicy& policy : all) {
      ShardedRun run = power_law_run(kind, 0, 3, kind == PlacementRule::localized ? 300 : 2000);
      run.spec.policy = policy;
      // The row limit of a rank must be below the number of keys, so that it takes effect. With eviction, it must also
      // exceed the number of rows of a batch.
      if (policy.when_full != WhenFull::error) run.spec.row_limit = kind == PlacementRule::localized ? 420 : 260;
      const ShardedOutcome one_host = run_sharded(kManyRanks, run);
      EXPECT_TRUE(std::any_of(one_host.counts.begin(), one_host.counts.end(),
                              [](const auto& count) { return count.first != "rows" && count.second > 0; }));
      for (const VectorsGo go : {VectorsGo::to_hosts, VectorsGo::to_ranks}) {
        run.go = go;
        expect_equal(one_host, run_sharded(kManyRanks, run));
      }
      run.spec.sums_in_hosts = true;
      expect_near(one_host, run_sharded(kManyRanks, run), 2e-5);
    }
}

TEST(UniqueExchange, HostsMayHaveAnyNumberOfRanksAndRanksNoRowAndBatchesNoKey) {
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed}) {
    ShardedRun run = power_law_run(kind, 0, 3, 40);
    run.spec.slots = 2;  // neither of the two slots is sharded, so two of four ranks own no slot
    for (Bags& bags : run.batches) bags.resize(2);
    run.batches[1] = empty_bags(run.spec, run.spec.samples);
    run.evaluated.resize(2);
    for (auto& dy : run.dys) dy.resize(static_cast<size_t>(run.spec.samples * run.spec.columns() * run.spec.dim));
    const ShardedOutcome one_host = run_sharded(kManyRanks, run), one = run_sharded(1, run);
    run.go = VectorsGo::to_uneven_hosts;
    expect_equal(one_host, run_sharded(kManyRanks, run));
    run.spec.sums_in_hosts = true;
    expect_near(one, run_sharded(kManyRanks, run), 2e-5);
  }
}

/// On a GPU, each host sums gradients by key before sending them. On a CPU the sum is optional.
TEST_P(UniqueExchangeOnDevice, SumsGradientsInTheirHost) {
  struct Row {
    int least, most;
    int64_t vocabulary;
    ops::Combiner combiner;
    DType exchange = DType::f32;
  };
  constexpr auto kSum = ops::Combiner::sum, kMean = ops::Combiner::mean, kSqrtn = ops::Combiner::sqrtn;
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const Row& row : {Row{1, 1, 300, kSum}, Row{1, 1, 300, kSum, DType::bf16}, Row{1, 3, 80, kSum},
                           Row{0, 3, 80, kMean}, Row{1, 5, 3000, kSqrtn}, Row{0, 3, 80, kMean, DType::bf16}})
      for (const auto& [go, per_host] : {std::pair{VectorsGo::to_hosts, 2}, {VectorsGo::to_ranks, 1}}) {
        if (row.exchange != DType::f32 && per_host == 1) continue;
        SCOPED_TRACE(cat(kind == PlacementRule::localized ? "localized" : "distributed", ", ", row.most, " of ",
                         row.vocabulary, " keys, ", name_of(row.exchange), ", hosts of ", per_host, " ranks"));
        ShardedRun run = power_law_run(kind, row.least, row.most, row.vocabulary);
        run.spec.combiner = row.combiner;
        const ShardedOutcome one = run_sharded(1, run);
        run.spec.exchange = row.exchange;
        run.spec.sums_in_hosts = true;
        run.device = GetParam();
        run.go = go;
        const ShardedOutcome many = run_sharded(kManyRanks, run);
        expect_near(one, many, row.exchange == DType::f32 ? 2e-5 : 2e-2);
        EXPECT_EQ(many.between_hosts.sent, expected_bytes(run, per_host, true).unique);
        if (!kSanitized) expect_equal(many, run_sharded(kManyRanks, run));
        if (row.vocabulary > 1000) continue;
        EXPECT_LT(many.between_hosts.sent, expected_bytes(run, per_host).unique * 9 / 10);
      }
}

TEST_P(UniqueExchangeOnDevice, SearchesSumsForOverflows) {
  ShardedRun run = power_law_run(PlacementRule::localized, 1, 1, 300);
  run.batches.resize(1);
  run.dys.assign(1, std::vector<float>(run.dys[0].size(), 40000.0f));
  run.spec.exchange = DType::f16;
  run.device = GetParam();
  run.go = VectorsGo::to_hosts;
  for (const bool sums : {false, true}) {
    run.spec.sums_in_hosts = sums;
    EXPECT_EQ(run_sharded(kManyRanks, run).overflowed, sums) << "f16 holds each gradient, but not twice";
  }
}

/// Modifies messages received for the keys of the first batch. The calls of all_to_all are, in order: counts within the
/// host, keys, bags of the keys, sizes between hosts, messages between hosts.
TEST_P(UniqueExchangeOnDevice, WhatCannotBeRightIsRefusedByTheNameOfItsSender) {
  ShardedRun run = power_law_run(PlacementRule::localized, 1, 3, 80);
  run.device = GetParam();
  run.go = VectorsGo::to_hosts;
  const auto error_of = [&](int damaged_call, int64_t at, auto value) {
    run.damage = [=](int rank, int call, Tensor received) {
      if (rank == 2 && call == damaged_call) received.data<decltype(value)>()[at] = value;
    };
    try {
      run_sharded(kManyRanks, run);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const auto expect_named = [&](const std::string& error, const char* sender, const char* what) {
    EXPECT_NE(error.find(cat(sender, " has sent rank 2 of host 1 the keys of a batch")), std::string::npos) << error;
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  // The counts of rank 3 follow those of rank 2, with 2 counts for each rank. The messages of hosts 0, 1 and 2 come in
  // this order, with 4 sizes each.
  expect_named(error_of(1, 12 + 4, int32_t{-1}), "rank 3 of host 1", "-1 keys");
  expect_named(error_of(1, 12 + 5, int32_t{1 << 30}), "rank 3 of host 1", "1073741824 bags");
  expect_named(error_of(4, 0, int32_t{1 << 30}), "rank 0 of host 0", "1073741824 words");
  expect_named(error_of(4, 9, int32_t{-5}), "rank 4 of host 2", "-5 vectors");
  expect_named(error_of(4, 2, int32_t{1 << 20}), "rank 0 of host 0", "1048576 gradients");
  expect_named(error_of(4, 11, int32_t{1 << 20}), "rank 4 of host 2", "1048576 keys of vectors");
  expect_named(error_of(5, 0, int64_t{-1}), "rank 0 of host 0", "inconsistent message");
}

HCTR_ON_EACH_DEVICE(UniqueExchangeOnDevice);

}  // namespace
}  // namespace hctr::test
