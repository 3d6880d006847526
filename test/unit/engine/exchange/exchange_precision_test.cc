// Vectors and gradients exchanged in two-byte types: the error relative to f32, and cases without an error.
#include <gtest/gtest.h>

#include "unit/engine/exchange/sharded_rig.h"

namespace hctr::test {
namespace {

constexpr DType kTypes[] = {DType::f16, DType::bf16};

/// A run whose gradients are multiples of 1/64 up to 1/2, which are exact in every type.
ShardedRun some_steps(PlacementRule kind, ops::Combiner combiner) {
  ShardedRun run{.kind = kind, .spec = small_spec(6, 5, 13)};
  run.spec.identity_by_slot = kind == PlacementRule::localized;
  run.spec.combiner = combiner;
  if (combiner == ops::Combiner::none) run.spec.slot_keys.assign(5, run.most_keys);
  run.spec.init_bound = 1;
  run.spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  std::mt19937_64 random(3);
  for (int t = 0; t < 8; ++t) {
    run.batches.push_back(random_bags(run.spec, run.spec.samples, run.most_keys, 30, random));
    std::vector<float>& dy =
        run.dys.emplace_back(static_cast<size_t>(run.spec.samples * run.spec.columns() * run.spec.dim));
    for (float& each : dy) each = static_cast<float>(static_cast<int>(random() % 65) - 32) / 64;
  }
  run.evaluated = random_bags(run.spec, run.spec.samples, run.most_keys, 40, random);
  return run;
}

float rounded(DType dtype, float value) {
  return dispatch_float(dtype, [&]<class T>() { return static_cast<float>(T(value)); });
}

TEST(ExchangePrecision, AVectorOfOneOwnerIsRoundedOnceAndGradientsThatFitLoseNothing) {
  ShardedRun run = some_steps(PlacementRule::localized, ops::Combiner::sum);
  const ShardedOutcome exact = run_sharded(1, run);
  for (const DType dtype : kTypes)
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(cat(name_of(dtype), " on ", ranks, " ranks"));
      run.spec.exchange = dtype;
      ShardedOutcome expected = exact;
      for (auto* y : {&expected.y[0], &expected.y[7], &expected.evaluated})
        for (float& each : *y) each = rounded(dtype, each);
      const ShardedOutcome many = run_sharded(ranks, run);
      EXPECT_EQ(many.y[0], expected.y[0]);
      EXPECT_EQ(many.y[7], expected.y[7]);
      EXPECT_EQ(many.evaluated, expected.evaluated);
      expect_equal_rows(many.rows, exact.rows);
    }
}

/// Returns the largest difference, relative to the largest value.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    size = std::max(size, std::abs(static_cast<double>(a[i])));
  }
  return difference / size;
}

TEST(ExchangePrecision, EveryPlacementAndCombinerStaysWithinTheRoundingOfTheType) {
  for (const auto kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const auto combiner : {ops::Combiner::sum, ops::Combiner::mean, ops::Combiner::sqrtn, ops::Combiner::none}) {
      ShardedRun run = some_steps(kind, combiner);
      for (const int ranks : {2, 4}) {
        run.spec.exchange = DType::f32;
        const ShardedOutcome wide = run_sharded(ranks, run);
        for (const DType dtype : kTypes) {
          SCOPED_TRACE(cat(name_of(dtype), " on ", ranks, " ranks, combiner ", static_cast<int>(combiner)));
          run.spec.exchange = dtype;
          const ShardedOutcome many = run_sharded(ranks, run);
          const double step = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;  // the relative error of one rounding
          for (size_t t = 0; t < wide.y.size(); ++t) EXPECT_LT(distance(wide.y[t], many.y[t]), 3 * step);
          EXPECT_LT(distance(wide.evaluated, many.evaluated), 3 * step);
          EXPECT_NE(wide.evaluated, many.evaluated) << "nothing was rounded";
          EXPECT_EQ(wide.rows.keys, many.rows.keys);
          EXPECT_LT(distance(wide.rows.vectors, many.rows.vectors), 3 * step);
        }
      }
    }
}

}  // namespace
}  // namespace hctr::test
