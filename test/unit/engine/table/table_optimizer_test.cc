// Optimizers on tables: every rule with every update type, initial states, and skipped steps.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/optimizer/optimizer.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

using ops::Optimizer;
using Rule = Optimizer::Kind;

/// The rules that support an update type: all elementwise rules, and row-wise AdaGrad. Lazy updates support only Adam.
std::vector<Optimizer> rules_of(UpdateType update) {
  if (update == UpdateType::lazy_global) return {{.kind = Rule::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f}};
  std::vector<Optimizer> rules = every_rule();
  rules.push_back({.kind = Rule::adagrad, .epsilon = 1e-3f, .initial = 0.25f, .row_wise = true});
  return rules;
}

void for_all(const TableSpec& base, const std::function<void(const TableSpec&)>& body) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global})
    for (const Optimizer& optimizer : rules_of(update)) {
      SCOPED_TRACE(cat(name_of_rule(optimizer), ", update ", static_cast<int>(update)));
      TableSpec spec = base;
      spec.optimizer = optimizer;
      spec.update = update;
      body(spec);
      if (testing::Test::HasFatalFailure()) return;
    }
}

class TableOptimizer : public OnDevice {};
HCTR_ON_EACH_DEVICE(TableOptimizer);

TEST_P(TableOptimizer, EveryRuleOfEveryUpdateTypeAgreesWithDenseFormulas) {
  TableSpec base = small_spec(6, 2, 8, 8 * 2 * 3);
  base.identity_by_slot = true;
  for_all(base, [](const TableSpec& spec) { compare_over_steps(GetParam(), spec, 3, 40, 40, 1e-4); });
}

TEST_P(TableOptimizer, EveryRuleUpdatesKeysThatAreNotPooled) {
  for (const bool by_slot : {false, true}) {
    TableSpec base = unpooled_spec(6, 8, {3, 4});
    base.identity_by_slot = by_slot;
    for_all(base, [](const TableSpec& spec) { compare_over_steps(GetParam(), spec, 3, 20, 20, 1e-4); });
  }
}

/// Global updates process rows in tiles. The widths include several that need more than one tile, and one that uses no
/// tiles.
TEST_P(TableOptimizer, RowsWithoutGradientsMoveAtEveryWidth) {
  for (const int64_t dim : {1, 2, 3, 4, 5, 7, 11, 16, 33, 130, 520, 8200}) {
    SCOPED_TRACE(cat("dim ", dim));
    const int64_t samples = dim < 4 ? 600 : dim < 1000 ? 64 : 4;
    TableSpec spec = small_spec(dim, 2, samples, samples * 2 * 4);
    spec.optimizer = {.kind = Rule::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
    spec.update = UpdateType::global;
    compare_over_steps(GetParam(), spec, 4, dim < 4 ? 1700 : dim < 1000 ? 201 : 9, 4);
    if (HasFatalFailure()) return;
  }
}

TEST_P(TableOptimizer, RowWiseSumsAreRightAtEveryWidth) {
  for (const int64_t dim : {1, 3, 16, 33, 64, 128, 260, 2050}) {
    SCOPED_TRACE(cat("dim ", dim));
    TableSpec spec = small_spec(dim, 3, 16, 16 * 3 * 4);
    spec.optimizer = {.kind = Rule::adagrad, .epsilon = 1e-3f, .row_wise = true};
    compare_over_steps(GetParam(), spec, 4, 50, 4);
    if (HasFatalFailure()) return;
  }
}

/// Returns all rows by key: the vector, followed by the states.
std::map<int64_t, std::vector<float>> rows_by_key(TableRig& rig) {
  std::map<int64_t, std::vector<float>> rows;
  rig.table->export_rows(true, [&](const RowBlock& block) {
    const auto dim = static_cast<size_t>(rig.spec().dim);
    for (size_t i = 0; i < block.keys.size(); ++i) {
      auto& row = rows[block.keys[i]];
      const auto add = [&](std::span<const float> from) {
        row.insert(row.end(), from.begin() + i * dim, from.begin() + (i + 1) * dim);
      };
      add(block.vectors);
      for (int s = 0; s < rig.spec().optimizer.states(); ++s) add(block.states[s]);
    }
  });
  return rows;
}

/// Returns a row after update_dense() with gradient g.
std::vector<float> dense_step(TableRig& rig, const StepState& state, const std::vector<float>& g,
                              const std::vector<float>& row) {
  const Device device = rig.runtime.device();
  const auto dim = static_cast<int64_t>(g.size());
  Buffer step(device, sizeof state), gradient(device, g.size() * sizeof(float));
  copy_bytes(rig.runtime.compute_stream(), step.data(), &state, sizeof state);
  const TensorSpec shape(DType::f32, {dim});
  from_host(rig.runtime.compute_stream(), Tensor(gradient.data(), shape, device), g);
  std::vector<Buffer> memory;
  std::vector<Tensor> parts;  // the weights, followed by each state
  for (auto at = row.begin(); at != row.end(); at += dim) {
    memory.emplace_back(device, g.size() * sizeof(float));
    parts.emplace_back(memory.back().data(), shape, device);
    from_host(rig.runtime.compute_stream(), parts.back(), std::vector<float>(at, at + dim));
  }
  Context ctx(rig.runtime, rig.runtime.compute_stream(), reinterpret_cast<const StepState*>(step.data()));
  ops::update_dense(ctx, rig.spec().optimizer, Tensor(gradient.data(), shape, device), parts[0],
                    {parts.begin() + 1, parts.end()}, std::nullopt);
  std::vector<float> out;
  for (const Tensor& part : parts) {
    const auto values = to_host<float>(rig.runtime.compute_stream(), part);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

TEST_P(TableOptimizer, LocalIsDenseOnTouchedRowsAndGlobalIsDenseWithGradientsOfZero) {
  constexpr int64_t kVocabulary = 30;
  for (const UpdateType update : {UpdateType::local, UpdateType::global})
    for (const Optimizer& optimizer : every_rule()) {
      SCOPED_TRACE(cat(name_of_rule(optimizer), ", update ", static_cast<int>(update)));
      TableSpec spec = small_spec(5, 2, 16, 16 * 2 * 4);
      spec.optimizer = optimizer;
      spec.update = update;
      TableRig rig(GetParam(), spec);
      std::mt19937_64 random(4);
      std::vector<float> dy(static_cast<size_t>(16 * 2 * 5));
      Bags all = empty_bags(spec, 16);
      for (int64_t key = 0; key < kVocabulary; ++key)
        all[static_cast<size_t>(key % 2)][static_cast<size_t>(key / 2)] = {key};
      rig.step(all, random_floats(16 * 2 * 5, random));
      for (int64_t t = 1; t < 6; ++t) {
        const Bags bags =
            random_bags(spec, 16, 4, kVocabulary, random);  // small keys occur in many bags, some twice in a bag
        // gradients are multiples of 1/64, so sums are exact
        for (float& each : dy) each = static_cast<float>(static_cast<int>(random() % 64) - 32) / 64;
        const auto before = rows_by_key(rig);
        rig.step(bags, dy, 0.05f);
        const auto after = rows_by_key(rig);
        std::map<int64_t, std::vector<float>> gradients;
        for (size_t s = 0; s < bags.size(); ++s)
          for (size_t b = 0; b < bags[s].size(); ++b)
            for (const int64_t key : bags[s][b]) {
              auto& g = gradients[key];
              g.resize(5, 0.0f);
              for (size_t e = 0; e < 5; ++e) g[e] += dy[(b * 2 + s) * 5 + e];
            }
        for (const auto& [key, row] : before) {
          if (update == UpdateType::local && !gradients.contains(key)) {
            ASSERT_EQ(after.at(key), row) << "key " << key << " was not in the batch";
            continue;
          }
          gradients[key].resize(5, 0.0f);
          const std::vector<float> dense = dense_step(rig, {.updates = t, .learning_rate = 0.05f}, gradients[key], row);
          for (size_t i = 0; i < dense.size(); ++i)
            ASSERT_NEAR(after.at(key)[i], dense[i], 1e-6f * (1 + std::abs(dense[i])))
                << "key " << key << ", number " << i << ", step " << t;
        }
      }
    }
}

TEST_P(TableOptimizer, RowWiseAdaGradByHand) {
  TableSpec spec = small_spec(2, 1, 3, 6);
  spec.optimizer = {.kind = Rule::adagrad, .epsilon = 1, .row_wise = true};
  TableRig rig(GetParam(), spec);
  const std::vector<int64_t> keys = {7, 8};
  const std::vector<float> vectors = {1, 2, 5, 6};
  rig.table->import_rows({keys, {}, vectors, {}, {}});
  const auto expect = [&](const std::vector<float>& wanted, float s7, float s8) {
    rig.table->export_rows(true, [&](const RowBlock& block) {
      ASSERT_EQ(block.states[0].size(), 2u) << "one for each row";
      EXPECT_EQ(block.states[0][0], s7);
      EXPECT_EQ(block.states[0][1], s8);
      for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(block.vectors[i], wanted[i]) << i;
    });
  };
  // Key 7: g = (1, 3) + (0, 4) = (1, 7), and the mean of squares is (1 + 49) / 2 = 25. Key 8 has a zero gradient.
  rig.step({{{7}, {7}, {8}}}, {1, 3, 0, 4, 0, 0}, 0.5f);
  expect({1 - 0.5f / 6, 2 - 0.5f / 6 * 7, 5, 6}, 25, 0);
  // Key 7: g = (12, 12), and 25 + 144 = 13^2. Key 8: g = (0, 4), and the mean of squares is 16 / 2.
  rig.step({{{7}, {}, {8}}}, {12, 12, 9, 9, 0, 4}, 0.5f);
  expect({1 - 0.5f / 6 - 0.5f / 14 * 12, 2 - 0.5f / 6 * 7 - 0.5f / 14 * 12, 5, 6 - 0.5f / (std::sqrt(8.0f) + 1) * 4},
         169, 8);
}

TEST_P(TableOptimizer, RowsAddedByGrowthOrImportStartWithTheStateOfTheRule) {
  for (const bool row_wise : {false, true}) {
    TableSpec spec = small_spec(6, 2, 50, 300);
    spec.optimizer = {.kind = Rule::adagrad, .initial = 0.375f, .row_wise = row_wise};
    const auto expect_start = [&](TableRig& rig, size_t least_rows) {
      size_t rows = 0;
      rig.table->export_rows(true, [&](const RowBlock& block) {
        rows += block.keys.size();
        ASSERT_EQ(block.states[0].size(), block.keys.size() * static_cast<size_t>(spec.state_dim()));
        for (const float state : block.states[0]) ASSERT_EQ(state, 0.375f);
      });
      EXPECT_GT(rows, least_rows);
    };
    TableRig rig(GetParam(), spec);
    std::mt19937_64 random(5);
    const std::vector<float> none(50 * 2 * 6, 0.0f);
    for (int t = 0; t < 40; ++t) rig.step(random_bags(spec, 50, 3, 30000, random), none);
    expect_start(rig, 2000);
    TableRig copy(GetParam(), spec);
    rig.table->export_rows(false, [&](const RowBlock& block) { copy.table->import_rows(block); });
    expect_start(copy, 2000);
    EXPECT_EQ(copy.bytes(), rig.bytes());
  }
}

/// Trains some steps on random keys below `vocabulary`.
void train_on_bags_below(TableRig& rig, int steps, uint64_t seed, int64_t vocabulary) {
  std::mt19937_64 random(seed);
  for (int t = 0; t < steps; ++t) {
    const Bags bags = random_bags(rig.spec(), rig.spec().samples, 3, vocabulary, random);
    rig.step(bags, random_floats(rig.spec().samples * rig.spec().slots * rig.spec().dim, random));
  }
}

TEST_P(TableOptimizer, ExportAndImportKeepTheStatesOfEveryRule) {
  for_all(small_spec(5, 3, 50, 450), [](const TableSpec& spec) {
    TableRig rig(GetParam(), spec), copy(GetParam(), spec);
    train_on_bags_below(rig, 4, 5, 300);
    rig.table->export_rows(true, [&](const RowBlock& block) { copy.table->import_rows(block); });
    EXPECT_EQ(copy.bytes(), rig.bytes());
  });
}

TEST_P(TableOptimizer, TwoRunsAreEqualBitByBitUnderEveryRule) {
  for_all(small_spec(9, 4, 60, 60 * 4 * 3), [](const TableSpec& spec) {
    TableRig one(GetParam(), spec, 1),
        // `other` has another number of threads and buffers, and does not record steps.
        other(GetParam(), spec, 4, 3, false);
    train_on_bags_below(one, 5, 6, 400);
    train_on_bags_below(other, 5, 6, 400);
    EXPECT_EQ(one.bytes(), other.bytes());
  });
}

TEST_P(TableOptimizer, AStepToSkipChangesNothingAndLeavesNoMark) {
  TableSpec base = small_spec(4, 2, 60, 60 * 2 * 3);
  for_all(base, [](const TableSpec& spec) {
    TableRig rig(GetParam(), spec), without(GetParam(), spec);
    for (TableRig* each : {&rig, &without}) train_on_bags_below(*each, 4, 7, 20);
    const std::string before = rig.bytes();
    const int64_t rows = rig.table->rows();
    Bags bags = empty_bags(spec, 60);
    // known keys: three rows with 60 gradients each; other rows do not occur
    for (auto& bag : bags[0]) bag = {0, 1, 2};
    bags[1][5] = {4};
    rig.skip = 1;
    rig.step(bags, std::vector<float>(60 * 2 * 4, INFINITY));
    rig.skip = 0;
    ASSERT_EQ(rig.table->rows(), rows) << "the batch was meant to hold known keys";
    EXPECT_EQ(rig.bytes(), before);
    for (TableRig* each : {&rig, &without})
      // If the skipped step had marked rows as updated, a global update would omit them.
      train_on_bags_below(*each, 2, 8, 20);
    EXPECT_EQ(rig.bytes(), without.bytes());
  });
}

/// The gradient is infinite in the first or last element of rows that occur once, and of rows whose gradients are
/// summed in segments. The lazy rule stores the gradient in its states until the row occurs again.
TEST_P(TableOptimizer, AGradientThatIsNotFiniteIsReported) {
  constexpr int64_t kSamples = 40;  // more gradients than a segment has
  for (const int64_t dim : {1, 6, 136})
    for (const DType storage : {DType::f32, DType::bf16}) {
      if (storage == DType::bf16 && dim < 136) continue;
      SCOPED_TRACE(cat("dim ", dim, ", ", hctr::name_of(storage)));
      TableSpec base = small_spec(dim, 2, kSamples, 2 * kSamples);
      base.storage = base.state_storage = storage;
      for_all(base, [&](const TableSpec& spec) {
        Bags bags = empty_bags(spec, kSamples);
        for (auto& bag : bags[0]) bag = {3};
        bags[1][5] = {4};
        const auto place = [&](int64_t sample, int64_t slot, int64_t e) {
          return static_cast<size_t>((sample * 2 + slot) * dim + e);
        };
        const std::vector<float> finite(static_cast<size_t>(kSamples * 2 * dim), 1e3f);
        for (const size_t at : {place(39, 0, dim - 1), place(0, 0, 0), place(5, 1, 0), place(5, 1, dim - 1)}) {
          std::vector<float> bad = finite;
          bad[at] = at % 2 == 0 ? INFINITY : NAN;
          TableRig rig(GetParam(), spec, 1, 2, false);
          for (int step = 0; step < 2; ++step) rig.step(bags, finite);
          EXPECT_FALSE(rig.spoiled());
          rig.skip = 1;
          rig.step(bags, bad);
          EXPECT_FALSE(rig.spoiled()) << "skipped";
          rig.skip = 0;
          rig.step(bags, bad);
          EXPECT_TRUE(rig.spoiled()) << "element " << at;
        }
      });
    }
}

/// With momentum, a row that does not occur keeps changing, until it exceeds the f32 range.
TEST_P(TableOptimizer, ARowThatOverflowsWithoutAGradientIsReported) {
  for (const int64_t dim : {1, 8}) {
    TableSpec spec = small_spec(dim, 2, 4, 8);
    spec.optimizer.kind = Rule::momentum_sgd;
    spec.update = UpdateType::global;
    TableRig rig(GetParam(), spec);
    Bags first = empty_bags(spec, 4), second = first;
    first[0][0] = {3};
    second[0][0] = {5};
    std::vector<float> dy(static_cast<size_t>(4 * 2 * dim), 0.0f);
    dy[static_cast<size_t>(dim) - 1] = -2e38f;
    rig.step(first, dy, 1.0f);
    EXPECT_FALSE(rig.spoiled());
    rig.step(second, std::vector<float>(dy.size(), 0.0f), 1.0f);  // the row is 2e38, and grows by 0.9 * 2e38
    EXPECT_TRUE(rig.spoiled());
  }
}

}  // namespace
}  // namespace hctr::test
