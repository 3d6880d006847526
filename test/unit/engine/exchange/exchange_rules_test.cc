// The rules of an exchange change which copies and kernels move vectors and gradients, but no bit of the results.
#include "engine/exchange/exchange_rules.h"

#include <gtest/gtest.h>

#include "core/device/device.h"
#include "engine/exchange/vector_copies.h"
#include "launch/job.h"
#include "unit/engine/exchange/sharded_rig.h"

namespace hctr::test {
namespace {

constexpr int64_t kRuleBatch = 26;  // does not divide by four ranks, so some ranks have padding

enum class OwnersOfSlots { in_turn, adjacent, uneven, spread, in_pieces, some_replicated };

Placement owners_of(OwnersOfSlots owners, int64_t slots, int64_t ranks) {
  Placement placement{ranks, {}, owners == OwnersOfSlots::in_pieces ? 2 : 1};
  for (int64_t s = 0; s < slots * placement.pieces; ++s)
    placement.owners.push_back(static_cast<int32_t>(owners == OwnersOfSlots::adjacent ? s * ranks / slots
                                                    : owners == OwnersOfSlots::uneven
                                                        ? (s % 6 == 0 || s % 6 == 2 || s % 6 == 3 ? 0 : ranks - 1)
                                                        : s % ranks));
  if (owners == OwnersOfSlots::spread) placement.owners[0] = Placement::kSpread;
  if (owners == OwnersOfSlots::some_replicated) placement.owners[1] = Placement::kReplicated;
  return placement;
}

struct RuleCase {
  OwnersOfSlots owners = OwnersOfSlots::in_turn;
  ops::Combiner combiner = ops::Combiner::sum;
  int most_keys = 1;
  bool is_long = false;

  ShardedRun run(const ExchangeRules& rules) const {
    constexpr int64_t kSlots = 6, kKeys = 30;
    ShardedRun run{.spec = small_spec(is_long ? 64 : 8, kSlots, kRuleBatch),
                   .most_keys = most_keys,
                   .planned =
                       [*this](int64_t ranks) {
                         return ranks == 1 ? Placement::without_plan(PlacementRule::localized, true, kSlots, 1)
                                           : owners_of(owners, kSlots, ranks);
                       },
                   .rules = rules,
                   .searches = false};
    run.spec.identity_by_slot = true;
    run.spec.combiner = combiner;
    if (combiner == ops::Combiner::none) run.spec.slot_keys.assign(kSlots, most_keys);
    const bool direct = owners == OwnersOfSlots::some_replicated;
    if (direct) run.slot_sizes.assign(kSlots, kKeys);
    std::mt19937_64 random(5);
    const auto bags = [&] {
      Bags all = random_bags(run.spec, kRuleBatch, most_keys, kKeys, random);
      for (size_t s = 0; s < all.size(); ++s)
        for (auto& bag : all[s])
          for (int64_t& key : bag) key += direct ? static_cast<int64_t>(s) * kKeys : 0;
      return all;
    };
    for (int t = 0; t < 6; ++t) run.batches.push_back(bags());
    run.evaluated = bags();
    return run;
  }
};

ExchangeRules every_exchange_rule() {
  return {.packed_gradients = true,
          .least_packed_bytes = 0,
          .vectors_in_pieces = true,
          .least_piece_samples = 2,
          .own_copies = 3};
}

const ExchangeRules kNoRule{.packed_gradients = false, .vectors_in_pieces = false, .own_copies = 1};

TEST(ExchangeRules, ChangeNoBit) {
  for (const OwnersOfSlots owners : {OwnersOfSlots::in_turn, OwnersOfSlots::adjacent, OwnersOfSlots::uneven,
                                     OwnersOfSlots::in_pieces, OwnersOfSlots::spread, OwnersOfSlots::some_replicated})
    for (const bool is_long : {false, true})
      for (const auto& [combiner, most_keys] : {std::pair(ops::Combiner::sum, 1), std::pair(ops::Combiner::sum, 3),
                                                std::pair(ops::Combiner::mean, 3), std::pair(ops::Combiner::none, 2)}) {
        if (owners >= OwnersOfSlots::in_pieces && combiner == ops::Combiner::none)
          continue;  // unpooled vectors stay whole
        const RuleCase one{owners, combiner, most_keys, is_long};
        for (const int ranks : {2, 4}) {
          SCOPED_TRACE(cat("owners ", static_cast<int>(owners), ", long ", is_long, ", combiner ",
                           static_cast<int>(combiner), ", ", most_keys, " keys, ", ranks, " ranks"));
          const ShardedOutcome without = run_sharded(ranks, one.run(kNoRule)),
                               with = run_sharded(ranks, one.run(every_exchange_rule()));
          expect_equal(without, with);
          const bool whole = owners != OwnersOfSlots::spread,
                     straight = combiner != ops::Combiner::mean && with.straight;
          EXPECT_FALSE(without.vectors_by_engines);
          EXPECT_EQ(with.vectors_by_engines, is_long && whole && straight && owners != OwnersOfSlots::some_replicated);
          EXPECT_EQ(with.by_engines, whole && straight);
          EXPECT_EQ(without.by_engines, whole && straight && is_long);
        }
      }
}

/// Like run_sharded() on the devices of a job.
ShardedOutcome run_on(Job& job, const ShardedRun& run) {
  ShardedOutcome outcome;
  std::mutex mutex;
  job.run([&](Communicator& comm, Device device) {
    ShardedRun own = run;
    own.device = device;
    train_sharded(own, comm, nullptr, outcome, mutex);
  });
  return outcome;
}

void compare_on(std::vector<Device> two) {
  Job job(std::move(two), nullptr, std::chrono::seconds(60));
  for (const OwnersOfSlots owners :
       {OwnersOfSlots::in_turn, OwnersOfSlots::adjacent, OwnersOfSlots::uneven, OwnersOfSlots::in_pieces})
    for (const bool is_long : {false, true})
      for (const int most_keys : {1, 3}) {
        SCOPED_TRACE(cat("owners ", static_cast<int>(owners), ", long ", is_long, ", ", most_keys, " keys"));
        const RuleCase one{owners, ops::Combiner::sum, most_keys, is_long};
        const ShardedOutcome without = run_on(job, one.run(kNoRule)),
                             with = run_on(job, one.run(every_exchange_rule()));
        expect_equal(without, with);
        EXPECT_TRUE(with.by_engines);
        EXPECT_EQ(with.vectors_by_engines, is_long);
      }
}

TEST(ExchangeRules, ChangeNoBitInAJob) { compare_on({kCpu, kCpu}); }

TEST(ExchangeRules, ChangeNoBitOnTwoGpus) {
  if (find_gpus().count < 2) GTEST_SKIP() << "needs two GPUs";
  compare_on({Device{DeviceKind::cuda, 0}, Device{DeviceKind::cuda, 1}});
}

TEST(ExchangeRules, GradientsThatAreCheckedForOverflowArePackedToo) {
  ShardedRun run = RuleCase{}.run(every_exchange_rule());
  run.searches = true;
  const ShardedOutcome with = run_sharded(2, run);
  run.rules = kNoRule;
  expect_equal(with, run_sharded(2, run));
  EXPECT_TRUE(with.by_engines);
}

TEST(ExchangeRules, SmallMessagesAndBatchesGoByKernels) {
  ExchangeRules rules = every_exchange_rule();
  rules.least_packed_bytes = 1 << 20;
  EXPECT_FALSE(run_sharded(2, RuleCase{}.run(rules)).by_engines);
  rules = every_exchange_rule();
  rules.least_piece_samples = kRuleBatch;
  EXPECT_FALSE(run_sharded(2, RuleCase{.is_long = true}.run(rules)).vectors_by_engines);
}

TEST(ExchangeRules, PiecesCoverAllSamplesOnce) {
  for (const int64_t samples : {1, 2, 7, 8, 1000, 16384}) {
    int64_t at = 0;
    for (const VectorCopies::Piece& piece : vector_pieces(samples)) {
      EXPECT_EQ(piece.begin, at);
      EXPECT_GT(piece.count, 0);
      at += piece.count;
    }
    EXPECT_EQ(at, samples);
  }
}

}  // namespace
}  // namespace hctr::test
