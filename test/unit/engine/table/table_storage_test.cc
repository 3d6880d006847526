// Tables with two-byte values: all widths and rules, global updates, rounding statistics, and equal rounding on every
// device.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/model/sparse_file.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

using ops::Optimizer;
using Rule = Optimizer::Kind;

struct Storage {
  DType vectors, states;
};
constexpr Storage kStorages[] = {{DType::f32, DType::f32}, {DType::f16, DType::f32},   {DType::bf16, DType::f32},
                                 {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::bf16}};

std::string name_of_storage(const Storage& s) {
  return cat("vectors ", hctr::name_of(s.vectors), ", states ", hctr::name_of(s.states));
}

TableSpec stored(TableSpec spec, const Storage& s) {
  spec.storage = s.vectors;
  spec.state_storage = s.states;
  return spec;
}

/// Calls body(spec) for every combination of storage types.
template <class Body>
void for_storages(const TableSpec& base, Body&& body) {
  for (const Storage& s : kStorages) {
    SCOPED_TRACE(name_of_storage(s));
    body(stored(base, s));
    if (testing::Test::HasFatalFailure()) return;
  }
}

class TableStorage : public OnDevice {};
HCTR_ON_EACH_DEVICE(TableStorage);

TEST_P(TableStorage, EveryWidthAgreesWithThePlainTable) {
  for (const int64_t dim : {1, 2, 3, 8, 17, 100, 429, 2048}) {
    SCOPED_TRACE(cat("dim ", dim));
    TableSpec base = small_spec(dim, 3, 16, 16 * 3 * 4);
    base.optimizer = {.kind = Rule::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
    for_storages(base, [](const TableSpec& spec) { compare_over_steps(GetParam(), spec, 4, 50, 3); });
    if (HasFatalFailure()) return;
    base = unpooled_spec(dim, 16, {3, 2});
    base.optimizer.kind = Rule::sgd;
    for_storages(base, [](const TableSpec& spec) { compare_over_steps(GetParam(), spec, 2, 12, 2); });
  }
}

TEST_P(TableStorage, EveryRuleOfEveryUpdateTypeAgreesWithDenseFormulas) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
    std::vector<Optimizer> rules = every_rule();
    rules.push_back({.kind = Rule::adagrad, .epsilon = 1e-3f, .initial = 0.25f, .row_wise = true});
    if (update == UpdateType::lazy_global)
      rules = {{.kind = Rule::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f}};
    for (const Optimizer& optimizer : rules) {
      SCOPED_TRACE(cat(name_of_rule(optimizer), ", update ", static_cast<int>(update)));
      TableSpec base = small_spec(6, 2, 8, 8 * 2 * 3);
      base.identity_by_slot = true;
      base.optimizer = optimizer;
      base.update = update;
      for_storages(base, [](const TableSpec& spec) { compare_over_steps(GetParam(), spec, 3, 20, 12, 1e-4); });
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(TableStorage, ActivationsOfEveryTypeAreRoundedFromSumsInF32) {
  for (const int64_t dim : {1, 2, 6, 8, 12, 16, 33, 136})  // widths for vectorized reads of 1, 2, 4 and 8 elements
    for (const DType storage : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat("dim ", dim, ", vectors ", hctr::name_of(storage)));
      expect_activations_of_two_bytes_are_rounded(
          GetParam(), stored(small_spec(dim, 3, 20, 20 * 3 * 5), {storage, DType::f32}), 5, 2);
    }
}

TEST_P(TableStorage, AKeyThatFillsTheBatchIsRoundedOnce) {
  for (const Storage& s : kStorages) {
    SCOPED_TRACE(name_of_storage(s));
    TableSpec spec = stored(small_spec(70, 1, 4000, 4016), s);  // the row has more gradients than fit into one segment
    spec.optimizer = {.kind = Rule::adagrad, .epsilon = 1e-2f};
    PlainTable plain(spec);
    TableRig rig(GetParam(), spec);
    Bags bags = empty_bags(spec, spec.samples);
    for (size_t b = 0; b < bags[0].size(); ++b) bags[0][b] = {b % 100 == 0 ? int64_t{5} : int64_t{-1}};
    std::mt19937_64 random(3);
    const std::vector<float> dy = random_floats(spec.samples * spec.dim, random);
    plain.insert(bags);
    rig.step(bags, dy, 0.01f);
    plain.update(bags, dy, static_cast<double>(0.01f), 1, 1);
    compare_rows(rig, plain, 1e-4);
  }
}

/// Runs steps whose sums and products are exact in f32, so that only rounding to the storage type can differ.
void train_exactly(TableRig& rig, int steps) {
  std::mt19937_64 random(6);
  const TableSpec& spec = rig.spec();
  for (int t = 0; t < steps; ++t) {
    const Bags bags = random_bags(spec, spec.samples, 3, 40, random);
    std::vector<float> dy(static_cast<size_t>(spec.samples * spec.columns() * spec.dim));
    for (float& each : dy) each = static_cast<float>(static_cast<int>(random() % 64) - 32) / 64;
    rig.step(bags, dy, 1.0f / 1024);
  }
}

TEST_P(TableStorage, DevicesThreadsAndRecordingRoundAlike) {
  for (const int64_t dim : {4, 7}) {
    TableSpec base = small_spec(dim, 3, 60, 60 * 3 * 3);
    base.optimizer.kind = Rule::sgd;
    for_storages(base, [](const TableSpec& spec) {
      TableRig one(GetParam(), spec, 1), other(GetParam(), spec, 4, 3, false), reference(kCpu, spec, 2);
      for (TableRig* rig : {&one, &other, &reference}) train_exactly(*rig, 6);
      EXPECT_EQ(one.bytes(), other.bytes());
      EXPECT_EQ(one.bytes(), reference.bytes()) << "another device rounds otherwise";
    });
  }
}

TEST_P(TableStorage, TwoRunsAreEqualBitByBit) {
  for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
    TableSpec base = small_spec(9, 4, 60, 60 * 4 * 3);
    base.update = update;
    for_storages(base, [](const TableSpec& spec) {
      TableRig one(GetParam(), spec, 1), other(GetParam(), spec, 4, 3, false);
      for (TableRig* rig : {&one, &other}) {
        std::mt19937_64 random(5);
        for (int t = 0; t < 5; ++t)
          rig->step(random_bags(spec, spec.samples, 3, 400, random),
                    random_floats(spec.samples * spec.slots * spec.dim, random));
      }
      EXPECT_EQ(one.bytes(), other.bytes());
    });
  }
}

TEST_P(TableStorage, UpdatesFarBelowAStepOfTheStorageAddUp) {
  // Each update is 1/50 of the distance between neighbours of 0.5. With rounding to nearest, no update would have an
  // effect.
  for (const DType storage : {DType::f16, DType::bf16}) {
    TableSpec spec = stored(small_spec(16, 1, 64, 64), {storage, DType::f32});
    spec.optimizer.kind = Rule::sgd;
    TableRig rig(GetParam(), spec);
    std::vector<int64_t> keys(64);
    Bags bags = empty_bags(spec, 64);
    for (size_t i = 0; i < keys.size(); ++i) bags[0][i] = {keys[i] = static_cast<int64_t>(i * 1000 + 7)};
    const std::vector<float> halves(64 * 16, 0.625f);
    rig.table->import_rows({keys, {}, halves, {}, {}});
    const double step = quantum(storage, 0.6);
    const auto rate = static_cast<float>(step / 50);
    constexpr int kSteps = 200;
    for (int t = 0; t < kSteps; ++t) rig.step(bags, std::vector<float>(64 * 16, -1.0f), rate);
    double moved = 0;
    rig.table->export_rows(false, [&](const RowBlock& block) {
      for (const float w : block.vectors) {
        const double steps = (static_cast<double>(w) - 0.625) / step;
        moved += steps / (64 * 16);
        ASSERT_NEAR(steps, kSteps / 50.0, 7 * 2) << "updates of one number draw alike";
      }
    });
    // The expected mean is 4 representable values. The standard deviation of one element is below sqrt(200 / 50) = 2,
    // and 1024 elements are averaged. The tolerance is five standard deviations of the mean.
    EXPECT_NEAR(moved, kSteps / 50.0, 5 * 2 / 32.0);
  }
}

TEST_P(TableStorage, RowsOfTwoBytesLearnWhatRowsOfFourLearn) {
  // The gradients pull every row to its own target. Checks the remaining distance after many small steps.
  const auto distance = [](const Storage& s) {
    TableSpec spec = stored(small_spec(8, 1, 50, 50), s);
    spec.optimizer = {.kind = Rule::adam};
    TableRig rig(GetParam(), spec);
    std::mt19937_64 random(1);
    const std::vector<float> target = random_floats(50 * 8, random);
    Bags bags = empty_bags(spec, 50);
    for (size_t b = 0; b < 50; ++b) bags[0][b] = {static_cast<int64_t>(b)};
    std::vector<float> y(target.size(), 0.0f), dy(target.size());
    for (int t = 0; t < 400; ++t) {
      rig.prepare(bags, 0.02f * (1 - static_cast<float>(t) / 400));
      for (size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] - target[i];
      rig.compute(dy);
      y = rig.lookup(bags);
    }
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i)
      sum += std::abs(static_cast<double>(y[i] - target[i])) / static_cast<double>(y.size());
    return sum;
  };
  const double plain = distance({DType::f32, DType::f32});
  EXPECT_LT(plain, 0.02);
  // A value near 0.5 cannot approach its target closer than a fraction of the distance between neighbours, which is
  // 2^-9 in bf16 and 2^-12 in fp16.
  EXPECT_LT(distance({DType::bf16, DType::f32}), plain + std::exp2(-7));
  EXPECT_LT(distance({DType::f16, DType::f32}), plain + std::exp2(-10));
  EXPECT_LT(distance({DType::bf16, DType::bf16}), plain + std::exp2(-6));
}

TEST_P(TableStorage, AStepTooLongStopsAtTheLargestNumber) {
  TableSpec spec = stored(small_spec(5, 1, 2, 2), {DType::f16, DType::f32});
  spec.optimizer.kind = Rule::sgd;
  TableRig rig(GetParam(), spec);
  rig.step({{{3}, {}}}, std::vector<float>(10, -1e6f), 1.0f);
  EXPECT_EQ(rig.lookup({{{3}, {}}})[0], 65504.0f);
  const std::vector<int64_t> keys = {4};
  const std::vector<float> huge(5, -1e9f);
  rig.table->import_rows({keys, {}, huge, {}, {}});
  EXPECT_EQ(rig.lookup({{{4}, {}}})[0], -65504.0f);
}

TEST_P(TableStorage, ExportImportAndFilesKeepEveryNumber) {
  const TemporaryFolder folder;
  for (const bool by_slot : {false, true}) {
    TableSpec base = small_spec(5, 3, 50, 450);
    base.identity_by_slot = by_slot;
    for_storages(base, [&](const TableSpec& spec) {
      TableRig rig(GetParam(), spec), copy(GetParam(), spec), loaded(GetParam(), spec);
      std::mt19937_64 random(5);
      for (int t = 0; t < 4; ++t)
        rig.step(random_bags(spec, spec.samples, 3, 300, random),
                 random_floats(spec.samples * spec.slots * spec.dim, random));
      rig.table->export_rows(true, [&](const RowBlock& block) { copy.table->import_rows(block); });
      EXPECT_EQ(copy.bytes(), rig.bytes());
      const auto path = folder / "a.model";
      save_sparse(path, *rig.table, 8);
      EXPECT_EQ(std::filesystem::file_size(path), static_cast<size_t>(rig.table->rows()) * (by_slot ? 16 + 20 : 8 + 20))
          << "files hold f32";
      load_sparse(path, *loaded.table, 8);
      EXPECT_EQ(loaded.bytes(false), rig.bytes(false));
    });
  }
}

}  // namespace
}  // namespace hctr::test
