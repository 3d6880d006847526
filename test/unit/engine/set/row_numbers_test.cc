// A step may use the row numbers of an earlier batch instead of a look-up of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "hctr/embedding.h"
#include "unit/engine/set/copied.h"
#include "unit/engine/set/rank_runs.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {
namespace {

constexpr int64_t kStepSamples = 20, kStepKeys = 60, kStepDim = 4;

/// Two features of one table and a feature of another, each with kStepKeys keys in bags of up to 5.
EmbeddingOptions two_tables(Device device, Pooling pooling, int64_t rows) {
  EmbeddingTableOptions items{.name = "items", .dim = kStepDim, .rows = rows}, users{.name = "users", .dim = kStepDim};
  return {.tables = {items, users},
          .features = {{"item", "items", pooling}, {"seen", "items", Pooling::sum}, {"user", "users", Pooling::sqrtn}},
          .gpu = device.is_cuda() ? device.index : -1,
          .seed = 5};
}

/// A set, and the arguments for calls of its functions.
class Steps {
 public:
  Steps(Device device, const EmbeddingOptions& options) : device_(device), set_(options) {
    for (const EmbeddingFeature& feature : options.features) {
      rows_.push_back(feature.pooling == Pooling::none ? kStepKeys : kStepSamples);
      vectors_.emplace_back(device, std::vector<float>(static_cast<size_t>(rows_.back() * kStepDim)));
      numbers_.emplace_back(device, std::vector<int32_t>(static_cast<size_t>(kStepKeys), -1));
    }
  }

  EmbeddingSet& set() { return set_; }
  int64_t forward() { return set_.forward(kStepSamples, keys(), views<float>(vectors_)); }
  int64_t numbers_of(int64_t batch) {
    std::vector<int32_t*> to;
    for (const Copied<int32_t>& one : numbers_) to.push_back(one.data());
    return set_.row_numbers(batch, to);
  }
  int64_t look_up() { return set_.prefetch(kStepSamples, keys()); }
  int64_t take(int64_t removals) { return take(numbers_, removals); }
  int64_t take(const std::vector<Copied<int32_t>>& numbers, int64_t removals) {
    std::vector<const int32_t*> from;
    for (const Copied<int32_t>& one : numbers) from.push_back(one.data());
    return set_.prefetch(kStepSamples, keys(), from, removals);
  }
  const std::vector<Copied<int32_t>>& numbers() const { return numbers_; }
  void write_vectors(int64_t batch) { set_.forward(batch, views<float>(vectors_)); }
  void update(int64_t batch) {
    std::vector<Copied<float>> dy;
    for (const int64_t rows : rows_) {
      std::vector<float> values(static_cast<size_t>(rows * kStepDim));
      for (float& value : values) value = std::normal_distribution<float>()(random_);
      dy.emplace_back(device_, values);
    }
    set_.update(batch, views<const float>(dy), {.learning_rate = 0.1f});
    gradients_.push_back(std::move(dy));  // queued work still reads the gradients
  }
  /// Draws new keys and bags. All `Steps` objects draw the same sequence.
  void draw() {
    keys_.clear();
    offsets_.clear();
    for (size_t f = 0; f < rows_.size(); ++f) {
      std::vector<int64_t> keys(static_cast<size_t>(kStepKeys)), offsets = {0};
      for (int64_t& key : keys) key = static_cast<int64_t>(random_() % 40);
      for (int64_t b = 1; b < kStepSamples; ++b)
        offsets.push_back(std::min(kStepKeys, offsets.back() + static_cast<int64_t>(random_() % 6)));
      offsets.push_back(kStepKeys);
      keys_.emplace_back(device_, keys);
      offsets_.emplace_back(device_, offsets);
    }
  }
  std::map<std::pair<std::string, int64_t>, std::vector<float>> rows() {
    std::map<std::pair<std::string, int64_t>, std::vector<float>> all;
    for (const char* table : {"items", "users"})
      set_.export_rows(table, true, [&](const TableRows& block) {
        for (size_t i = 0; i < block.keys.size(); ++i) {
          std::vector<float>& row = all[{table, block.keys[i]}];
          for (size_t e = 0; e < kStepDim; ++e) {
            row.push_back(block.vectors[i * kStepDim + e]);
            for (const auto& state : block.states) row.push_back(state[i * kStepDim + e]);
          }
        }
      });
    return all;
  }

 private:
  std::vector<FeatureKeys> keys() const {
    std::vector<FeatureKeys> all;
    for (size_t f = 0; f < keys_.size(); ++f)
      all.push_back({keys_[f].data(), ElementType::i64, kStepKeys, offsets_[f].data(), ElementType::i64});
    return all;
  }
  template <class T>
  static std::vector<FeatureVectors<T>> views(const std::vector<Copied<float>>& arrays) {
    std::vector<FeatureVectors<T>> all;
    for (const Copied<float>& one : arrays) all.push_back({one.data()});
    return all;
  }

  Device device_;
  EmbeddingSet set_;
  std::mt19937_64 random_{11};
  std::vector<int64_t> rows_;  // [feature]: number of vectors per batch
  std::vector<Copied<float>> vectors_;
  std::vector<Copied<int32_t>> numbers_;
  std::vector<Copied<int64_t>> keys_, offsets_;
  std::vector<std::vector<Copied<float>>> gradients_;
};

class RowNumbersTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(RowNumbersTest);

// Max pooling records in forward() which keys have the maxima. write_vectors() calls forward(), so it records them,
// too.
TEST_P(RowNumbersTest, AStepWithRowNumbersIsTheStepWithALookUp) {
  for (const int64_t rows : {0, 40})
    for (const Pooling pooling : {Pooling::mean, Pooling::none, Pooling::max}) {
      SCOPED_TRACE(cat("rows ", rows, ", pooling ", static_cast<int>(pooling)));
      const EmbeddingOptions options = two_tables(GetParam(), pooling, rows);
      Steps looks_up(GetParam(), options), takes(GetParam(), options);
      for (int step = 0; step < 3; ++step) {
        looks_up.draw();
        takes.draw();
        int64_t batch = takes.forward();
        const int64_t removals = takes.numbers_of(batch);
        takes.set().release(batch);
        batch = takes.take(removals);
        takes.write_vectors(batch);
        takes.update(batch);

        looks_up.set().release(looks_up.forward());
        batch = looks_up.look_up();
        looks_up.write_vectors(batch);
        looks_up.update(batch);
      }
      EXPECT_EQ(takes.rows(), looks_up.rows());
      EXPECT_EQ(takes.set().updates(), 3);
    }
}

TEST_P(RowNumbersTest, NumbersOfRowsThatDoNotExistUpdateNothing) {
  Steps steps(GetParam(), two_tables(GetParam(), Pooling::sum, 0));
  steps.draw();
  const int64_t batch = steps.forward();
  const int64_t removals = steps.numbers_of(batch);
  steps.set().release(batch);
  const auto before = steps.rows();
  for (const int32_t number : {0, -1, 1000, 1 << 30}) {
    std::vector<Copied<int32_t>> wrong;
    for (int f = 0; f < 3; ++f) wrong.emplace_back(GetParam(), std::vector<int32_t>(kStepKeys, number));
    steps.update(steps.take(wrong, removals));
    EXPECT_EQ(steps.rows(), before) << number;
  }
}

TEST_P(RowNumbersTest, AreRefusedAfterARemoval) {
  Steps steps(GetParam(), two_tables(GetParam(), Pooling::sum, 0));
  steps.draw();
  const int64_t batch = steps.forward();
  const int64_t removals = steps.numbers_of(batch);
  steps.set().release(batch);
  steps.set().remove_rows("users", std::vector<int64_t>{1});
  expect_error_of(Kind::usage, "rows have been removed", [&] { steps.take(removals); });
  steps.update(steps.look_up());  // the rejected call has left no unfinished batch
}

TEST(RowNumbers, NeedRowsThatStay) {
  EmbeddingOptions options = two_tables(Device{}, Pooling::sum, 0);
  options.tables[1].most_rows = 100;
  options.tables[1].when_full = EmbeddingTableOptions::WhenFull::evict_lru;
  Steps steps(Device{}, options);
  steps.draw();
  const int64_t batch = steps.forward();
  expect_error_of(Kind::usage, "removed by a policy", [&] { steps.numbers_of(batch); });
  steps.set().release(batch);
  expect_error_of(Kind::usage, "removed by a policy", [&] { steps.take(0); });
}

}  // namespace
}  // namespace hctr::test
