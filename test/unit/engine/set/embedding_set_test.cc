// Compares EmbeddingSet with a reference in double: every pair of option values, batches of different sizes, and every
// way to end a batch.
#include "hctr/embedding.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "core/base/expect.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "core/device/stream.h"
#include "support/devices.h"
#include "support/temporary_folder.h"
#include "unit/engine/set/copied.h"
#include "unit/engine/set/plain_set.h"
#include "unit/engine/set/set_cases.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {
namespace {

using SetRule = EmbeddingOptimizer::Rule;
using Formula = EmbeddingOptimizer::Formula;
using SetRows = EmbeddingOptimizer::Rows;
using SetFormat = EmbeddingTableOptions::Format;

/// The keys of one feature as a caller passes them: any key type, and offsets that start at any value.
class GivenKeys {
 public:
  GivenKeys(Device device, const PlainBags& bags, ElementType type, ElementType offsets_type, int64_t first_offset,
            bool with_offsets, bool with_weights)
      : type_(type), offsets_type_(offsets_type) {
    std::vector<int64_t> keys, offsets = {first_offset};
    std::vector<float> weights;
    for (size_t b = 0; b < bags.keys.size(); ++b) {
      keys.insert(keys.end(), bags.keys[b].begin(), bags.keys[b].end());
      for (const double weight : bags.weights[b]) weights.push_back(static_cast<float>(weight));
      offsets.push_back(first_offset + static_cast<int64_t>(keys.size()));
    }
    count_ = static_cast<int64_t>(keys.size());
    keys_.emplace(device, bytes_of(keys, type == ElementType::i32 || type == ElementType::u32));
    if (with_offsets) offsets_.emplace(device, bytes_of(offsets, offsets_type == ElementType::i32));
    if (with_weights) weights_.emplace(device, weights);
  }
  FeatureKeys view() const {
    return {keys_->data(), type_,
            count_,        offsets_ ? offsets_->data() : nullptr,
            offsets_type_, weights_ ? weights_->data() : nullptr};
  }
  int64_t count() const { return count_; }

 private:
  static std::vector<uint8_t> bytes_of(const std::vector<int64_t>& values, bool narrow) {
    std::vector<uint8_t> bytes(values.size() * (narrow ? 4 : 8));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto low = static_cast<uint32_t>(values[i]);
      if (narrow)
        std::memcpy(bytes.data() + i * 4, &low, 4);
      else
        std::memcpy(bytes.data() + i * 8, &values[i], 8);
    }
    return bytes;
  }
  ElementType type_, offsets_type_;
  int64_t count_ = 0;
  std::optional<Copied<uint8_t>> keys_, offsets_;
  std::optional<Copied<float>> weights_;
};

/// A set and a reference in double, which receive the same calls.
class Twins {
 public:
  Twins(EmbeddingOptions options, Device device, uint64_t seed)
      : options_(with_device(std::move(options), device)),
        device_(device),
        set_(options_),
        first_values_(options_),
        plain_(options_),
        random_(seed) {}

  EmbeddingSet& set() { return set_; }
  PlainSet& plain() { return plain_; }
  std::mt19937_64& random() { return random_; }

  /// The element types and memory layout of a call's arguments.
  struct Given {
    ElementType keys = ElementType::i64, offsets = ElementType::i64;
    bool side_by_side = true;  // whether the vectors of all features are in one array
    bool one_key_each = false;
  };

  /// Makes a batch with few distinct keys, some of them new.
  void make_batch(int64_t samples, const Given& given, int64_t vocabulary = 40) {
    samples_ = samples;
    bags_.clear();
    given_.clear();
    for (const EmbeddingFeature& feature : options_.features) {
      PlainBags bags;
      for (int64_t b = 0; b < samples; ++b) {
        bags.keys.emplace_back();
        bags.weights.emplace_back();
        for (auto n = given.one_key_each ? 1 : random_() % 5; n > 0; --n) {
          bags.keys.back().push_back(
              key_of(static_cast<int64_t>(random_() % static_cast<uint64_t>(vocabulary)), feature.table, given.keys));
          bags.weights.back().push_back(feature.weighted ? 0.25 + 0.25 * static_cast<double>(random_() % 8) : 1.0);
        }
      }
      given_.emplace_back(device_, bags, given.keys, given.offsets, given_.empty() ? 0 : 7, !given.one_key_each,
                          feature.weighted);
      bags_.push_back(std::move(bags));
    }
  }
  std::vector<FeatureKeys> keys() const {
    std::vector<FeatureKeys> views;
    for (const GivenKeys& one : given_) views.push_back(one.view());
    return views;
  }
  /// Adds missing rows to the reference, with the initial values that an equal EmbeddingSet gives to new keys.
  void learn_new_rows() {
    for (size_t f = 0; f < bags_.size(); ++f) {
      const std::string& table = options_.features[f].table;
      std::set<int64_t> fresh;
      for (const auto& bag : bags_[f].keys)
        for (const int64_t key : bag)
          if (!plain_.table(table).contains(key)) fresh.insert(key);
      // in tables indexed by row number every row exists from the start
      for (const EmbeddingTableOptions& of : options_.tables)
        for (int64_t row = 0; of.name == table && row < of.rows; ++row)
          if (!plain_.table(table).contains(row)) fresh.insert(row);
      if (fresh.empty()) continue;
      import_nothing(table, {fresh.begin(), fresh.end()});
    }
  }

  /// Output memory for the vectors of each feature: [samples or keys, dim].
  struct Vectors {
    std::vector<std::unique_ptr<Copied<float>>> memory;
    std::vector<FeatureVectors<float>> views;
    std::vector<size_t> memory_of, first;
  };
  Vectors memory_for(bool side_by_side, const std::vector<PlainSet::Vectors>* values = nullptr) {
    Vectors out;
    int64_t width = 0;
    for (const EmbeddingFeature& feature : options_.features)
      if (feature.pooling != Pooling::none) width += dim_of(feature);
    if (side_by_side) {
      std::vector<float> all(static_cast<size_t>(samples_ * width + 1), -7.0f);
      int64_t column = 0;
      for (size_t f = 0; f < options_.features.size(); ++f) {
        if (options_.features[f].pooling == Pooling::none) continue;
        for (int64_t b = 0; values && b < samples_; ++b)
          for (int64_t e = 0; e < dim_of(options_.features[f]); ++e)
            all[static_cast<size_t>(b * width + column + e)] =
                static_cast<float>((*values)[f][static_cast<size_t>(b)][static_cast<size_t>(e)]);
        column += dim_of(options_.features[f]);
      }
      out.memory.push_back(std::make_unique<Copied<float>>(device_, all));
    }
    int64_t column = 0;
    for (size_t f = 0; f < options_.features.size(); ++f) {
      const EmbeddingFeature& feature = options_.features[f];
      const int64_t dim = dim_of(feature);
      if (side_by_side && feature.pooling != Pooling::none) {
        out.views.push_back({out.memory[0]->data() + column, width});
        out.memory_of.push_back(0);
        out.first.push_back(static_cast<size_t>(column));
        column += dim;
        continue;
      }
      const int64_t rows = feature.pooling == Pooling::none ? given_[f].count() : samples_, stride = dim + 3;
      std::vector<float> own(static_cast<size_t>(rows * stride + 1), -7.0f);
      for (int64_t r = 0; values && r < rows; ++r)
        for (int64_t e = 0; e < dim; ++e)
          own[static_cast<size_t>(r * stride + e)] =
              static_cast<float>((*values)[f][static_cast<size_t>(r)][static_cast<size_t>(e)]);
      out.memory.push_back(std::make_unique<Copied<float>>(device_, own));
      out.views.push_back({out.memory.back()->data(), stride});
      out.memory_of.push_back(out.memory.size() - 1);
      out.first.push_back(0);
    }
    return out;
  }
  void expect_vectors(const Vectors& vectors, double tolerance) {
    std::vector<std::vector<float>> memory;
    for (const auto& one : vectors.memory) memory.push_back(one->values());
    for (size_t f = 0; f < options_.features.size(); ++f) {
      const PlainSet::Vectors expected = plain_.pool(f, bags_[f]);
      const std::vector<float>& have = memory[vectors.memory_of[f]];
      for (size_t r = 0; r < expected.size(); ++r)
        for (size_t e = 0; e < expected[r].size(); ++e) {
          const size_t at = vectors.first[f] + r * static_cast<size_t>(vectors.views[f].stride) + e;
          ASSERT_NEAR(static_cast<double>(have[at]), expected[r][e], tolerance * (1 + std::abs(expected[r][e])))
              << options_.features[f].name << ", vector " << r << ", element " << e;
        }
    }
  }

  /// Random gradients for all vectors, exact in f32.
  std::vector<PlainSet::Vectors> random_gradients() {
    std::vector<PlainSet::Vectors> all;
    for (size_t f = 0; f < options_.features.size(); ++f) {
      const EmbeddingFeature& feature = options_.features[f];
      const int64_t rows = feature.pooling == Pooling::none ? given_[f].count() : samples_;
      all.emplace_back(static_cast<size_t>(rows));
      for (auto& row : all.back())
        for (int64_t e = 0; e < dim_of(feature); ++e) row.push_back((static_cast<double>(random_() % 17) - 8.0) / 8.0);
    }
    return all;
  }
  static std::vector<FeatureVectors<const float>> as_const(const Vectors& vectors) {
    std::vector<FeatureVectors<const float>> views;
    for (const auto& view : vectors.views) views.push_back({view.data, view.stride});
    return views;
  }
  PlainSet::Gradients row_gradients(const std::string& table, const std::vector<PlainSet::Vectors>& dy) {
    PlainSet::Gradients sums;
    for (size_t f = 0; f < options_.features.size(); ++f)
      if (options_.features[f].table == table) plain_.add_gradients(f, bags_[f], dy[f], sums);
    return sums;
  }
  void update_plain(const std::vector<PlainSet::Vectors>& dy, double rate, int64_t t) {
    std::vector<PlainSet::Gradients> sums;
    for (const EmbeddingTableOptions& table : options_.tables) sums.push_back(row_gradients(table.name, dy));
    for (size_t i = 0; i < sums.size(); ++i) plain_.update(options_.tables[i].name, sums[i], rate, t);
  }
  void expect_weight_gradients(EmbeddingSet::Batch batch, const std::vector<PlainSet::Vectors>& dy,
                               const Vectors& gradients) {
    std::vector<std::unique_ptr<Copied<float>>> memory;
    std::vector<float*> pointers;
    for (size_t f = 0; f < options_.features.size(); ++f) {
      memory.push_back(std::make_unique<Copied<float>>(
          device_, std::vector<float>(static_cast<size_t>(given_[f].count() + 1), 0.0f)));
      pointers.push_back(options_.features[f].weighted ? memory.back()->data() : nullptr);
    }
    set_.weight_gradients(batch, as_const(gradients), pointers);
    for (size_t f = 0; f < options_.features.size(); ++f) {
      if (!options_.features[f].weighted) continue;
      const std::vector<double> expected = plain_.weight_gradients(f, bags_[f], dy[f]);
      const std::vector<float> have = memory[f]->values();
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(static_cast<double>(have[i]), expected[i], 1e-4 * (1 + std::abs(expected[i])));
    }
  }
  void expect_tables(double tolerance) {
    for (const EmbeddingTableOptions& table : options_.tables) {
      size_t rows = 0;
      set_.export_rows(table.name, false, [&](const TableRows& block) {
        for (size_t i = 0; i < block.keys.size(); ++i, ++rows) {
          const auto row = plain_.table(table.name).find(block.keys[i]);
          ASSERT_NE(row, plain_.table(table.name).end()) << table.name << ": key " << block.keys[i];
          for (size_t e = 0; e < row->second.elements.size(); ++e) {
            const double expected = row->second.elements[e].w;
            ASSERT_NEAR(static_cast<double>(block.vectors[i * row->second.elements.size() + e]), expected,
                        tolerance * (1 + std::abs(expected)))
                << table.name << ": key " << block.keys[i] << ", element " << e;
          }
        }
      });
      EXPECT_EQ(rows, plain_.table(table.name).size());
    }
  }
  const std::vector<PlainBags>& bags() const { return bags_; }
  int64_t dim_of(const EmbeddingFeature& feature) const {
    for (const EmbeddingTableOptions& table : options_.tables)
      if (table.name == feature.table) return table.dim;
    return 0;
  }
  const EmbeddingOptions& options() const { return options_; }

 private:
  static EmbeddingOptions with_device(EmbeddingOptions options, Device device) {
    options.gpu = device.is_cuda() ? device.index : -1;
    return options;
  }
  int64_t key_of(int64_t number, const std::string& table, ElementType type) const {
    for (const EmbeddingTableOptions& of : options_.tables)
      if (of.name == table && of.rows > 0) return number % of.rows;
    switch (type) {
      case ElementType::i32:
        return static_cast<int32_t>(number * 97'003'171) - 5;  // some keys are negative
      case ElementType::u32:
        return static_cast<uint32_t>(number * 97'003'171);
      default:
        return number * 1'234'567'890'123 - 77;
    }
  }
  void import_nothing(const std::string& table, const std::vector<int64_t>& keys) {
    if (const auto& of = *std::find_if(options_.tables.begin(), options_.tables.end(),
                                       [&](const EmbeddingTableOptions& one) { return one.name == table; });
        of.rows == 0)
      first_values_.import_rows(table, {keys, {}});  // keys imported without vectors get initial values
    const std::set<int64_t> wanted(keys.begin(), keys.end());
    first_values_.export_rows(table, false, [&](const TableRows& rows) {
      const size_t dim = rows.vectors.size() / std::max<size_t>(1, rows.keys.size());
      for (size_t i = 0; i < rows.keys.size(); ++i)
        if (wanted.contains(rows.keys[i]) && !plain_.table(table).contains(rows.keys[i]))
          plain_.add_row(table, rows.keys[i], rows.vectors.subspan(i * dim, dim));
    });
  }

  EmbeddingOptions options_;
  Device device_;
  EmbeddingSet set_, first_values_;
  PlainSet plain_;
  std::mt19937_64 random_;
  int64_t samples_ = 0;
  std::vector<PlainBags> bags_;
  std::vector<GivenKeys> given_;
};

void expect_error(Kind kind, const std::string& text, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

class EmbeddingSetTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(EmbeddingSetTest);

// Two tables. The first table has two features, whose pooling may differ. Batches differ in samples and keys. Compares
// vectors, wgrads and all rows over four steps.
TEST_P(EmbeddingSetTest, EveryPairOfOptionsGivesWhatItsDocumentsSay) {
  const std::vector<EmbeddingOptimizer> optimizers = every_optimizer();
  const std::vector<Pooling> poolings = {Pooling::sum, Pooling::mean, Pooling::sqrtn, Pooling::max, Pooling::none};
  const std::vector<ElementType> key_types = {ElementType::i32, ElementType::u32, ElementType::i64, ElementType::u64};
  enum { optimizer, first, second, weighted, keys, offsets, format, numbers, updates, initial, layout, dim, threads };
  const std::vector<std::vector<int>> cases =
      all_pairs({static_cast<int>(optimizers.size()), 5, 5, 2, 4, 3, 3, 2, 2, 4, 2, 4, 2}, 11);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    SCOPED_TRACE(cat("case ", i, " of ", cases.size(), ": optimizer ", c[optimizer], ", poolings ", c[first], " ",
                     c[second], ", weighted ", c[weighted], ", keys ", c[keys], ", offsets ", c[offsets], ", format ",
                     c[format], ", row numbers ", c[numbers], ", global ", c[updates], ", initial ", c[initial],
                     ", side by side ", c[layout], ", dim ", c[dim], ", threads ", c[threads]));
    EmbeddingTableOptions table{.name = "items", .dim = std::array{1, 4, 5, 64}[static_cast<size_t>(c[dim])]};
    table.optimizer = optimizers[static_cast<size_t>(c[optimizer])];
    if (c[updates] == 1 && table.optimizer.rows == SetRows::local) table.optimizer.rows = SetRows::global;
    table.format = static_cast<SetFormat>(c[format]);
    table.rows = c[numbers] == 1 ? 40 : 0;
    table.initial = {static_cast<EmbeddingStart::Kind>(c[initial]), 0.3f};
    if (table.initial.kind == EmbeddingStart::Kind::by_rows && table.rows == 0)
      table.initial.kind = EmbeddingStart::Kind::uniform;
    EmbeddingTableOptions other{.name = "users", .dim = 3};
    other.optimizer = example(SetRule::sgd, Formula::config);
    const auto may_weigh = [](Pooling pooling) { return pooling != Pooling::max && pooling != Pooling::none; };
    const Pooling a = poolings[static_cast<size_t>(c[first])], b = poolings[static_cast<size_t>(c[second])];
    const EmbeddingOptions options{.tables = {table, other},
                                   .features = {{"item", "items", a, c[weighted] == 1 && may_weigh(a)},
                                                {"seen", "items", b, false},
                                                {"user", "users", Pooling::sum, false}},
                                   .threads = 1 + 2 * c[threads],
                                   .seed = 5};
    Twins twins(options, GetParam(), 100 + i);
    // Stochastic rounding moves an element by up to one representable value per step.
    const double tolerance = table.format == SetFormat::f32 ? 2e-4 : table.format == SetFormat::f16 ? 8e-3 : 6e-2;
    // If rows differ by less than the tolerance, rounding decides which row has the largest element. In this case only
    // one step is compared.
    const bool any_max = a == Pooling::max || b == Pooling::max;
    const bool alike = table.format != SetFormat::f32 || table.initial.kind == EmbeddingStart::Kind::constant;
    const int64_t steps = any_max && alike ? 1 : 4;
    for (int64_t t = 1; t <= steps; ++t) {
      Twins::Given given{.keys = key_types[static_cast<size_t>(c[keys])],
                         .offsets = c[offsets] == 1 ? ElementType::i32 : ElementType::i64,
                         .side_by_side = c[layout] == 1,
                         .one_key_each = c[offsets] == 2};
      twins.make_batch(t == 3 ? 50 : 3 * t, given);
      twins.learn_new_rows();
      const auto outputs = twins.memory_for(given.side_by_side);
      const EmbeddingSet::Batch batch =
          twins.set().forward(static_cast<int64_t>(twins.bags()[0].keys.size()), twins.keys(), outputs.views);
      twins.expect_vectors(outputs, tolerance);
      const auto dy = twins.random_gradients();
      const auto gradients = twins.memory_for(given.side_by_side, &dy);
      if (table.format == SetFormat::f32) twins.expect_weight_gradients(batch, dy, gradients);
      const double rate = t == 2 ? 0.02 : 0.05;
      twins.set().update(batch, Twins::as_const(gradients), {.learning_rate = static_cast<float>(rate)});
      twins.update_plain(dy, rate, t);
      if (HasFatalFailure()) return;
    }
    twins.expect_tables(tolerance);
    EXPECT_EQ(twins.set().updates(), steps);
    if (HasFatalFailure()) return;
  }
}

EmbeddingOptions small_set(Pooling pooling = Pooling::mean) {
  EmbeddingTableOptions table{.name = "items", .dim = 8};
  table.optimizer = example(SetRule::adam, Formula::torch);
  return {.tables = {table}, .features = {{"item", "items", pooling, false}}, .seed = 3};
}

// row_gradients() returns the gradients that update() applies. Applying them with the same formula gives the same rows.
TEST_P(EmbeddingSetTest, GradientsOfRowsAreThoseThatUpdateApplies) {
  EmbeddingOptions options = small_set(Pooling::mean);
  options.features.push_back({"seen", "items", Pooling::max, false});
  options.tables[0].optimizer.rule = SetRule::none;
  Twins twins(options, GetParam(), 1);
  for (const int64_t samples : {5, 300, 1}) {
    twins.make_batch(samples, {});
    twins.learn_new_rows();
    const auto outputs = twins.memory_for(true);
    const auto batch = twins.set().forward(samples, twins.keys(), outputs.views);
    const auto dy = twins.random_gradients();
    const auto gradients = twins.memory_for(true, &dy);
    int64_t most = 0;
    for (const FeatureKeys& keys : twins.keys()) most += keys.count;
    const Copied<int64_t> keys(GetParam(), std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(1, most)), -1));
    const Copied<float> values(GetParam(),
                               std::vector<float>(static_cast<size_t>(std::max<int64_t>(1, most) * 8), 9.0f));
    const RowGradients to{keys.data(), values.data()};
    const std::vector<int64_t> rows = twins.set().row_gradients(batch, Twins::as_const(gradients), {&to, 1});
    const PlainSet::Gradients expected = twins.row_gradients("items", dy);
    ASSERT_EQ(rows, std::vector<int64_t>{static_cast<int64_t>(expected.size())});
    const std::vector<int64_t> have_keys = keys.values();
    const std::vector<float> have = values.values();
    std::set<int64_t> seen;
    for (size_t r = 0; r < expected.size(); ++r) {
      ASSERT_TRUE(expected.contains(have_keys[r])) << have_keys[r];
      EXPECT_TRUE(seen.insert(have_keys[r]).second);
      for (size_t e = 0; e < 8; ++e)
        EXPECT_NEAR(static_cast<double>(have[r * 8 + e]), expected.at(have_keys[r])[e], 1e-4);
    }
    twins.expect_tables(0);  // reading gradients changes no row
  }
}

// The keys of a batch may be passed before earlier batches are updated. The batch's vectors still include these
// updates.
TEST_P(EmbeddingSetTest, ABatchGivenEarlyHasTheVectorsOfItsTurn) {
  const EmbeddingOptions options = small_set();
  const auto run = [&](bool early) {
    Twins twins(options, GetParam(), 9);
    std::vector<float> all;
    twins.make_batch(20, {});
    const auto outputs = twins.memory_for(true);
    auto batch = twins.set().forward(20, twins.keys(), outputs.views);
    for (int i = 0; i < 5; ++i) {
      const auto dy = twins.random_gradients();
      const auto gradients = twins.memory_for(true, &dy);
      const auto values = outputs.memory[0]->values();
      all.insert(all.end(), values.begin(), values.end());
      const auto before = batch;
      twins.make_batch(20, {});
      if (early) batch = twins.set().prefetch(20, twins.keys());
      twins.set().update(before, Twins::as_const(gradients), {.learning_rate = 0.1f});
      if (!early) batch = twins.set().prefetch(20, twins.keys());
      twins.set().forward(batch, outputs.views);
    }
    twins.set().release(batch);
    return all;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(EmbeddingSetTest, ASkippedStepChangesNothingAndIsNotCounted) {
  Twins twins(small_set(), GetParam(), 2);
  const Copied<float> yes(GetParam(), {1.0f}), no(GetParam(), {0.0f}), rate(GetParam(), {0.25f});
  int64_t t = 0;
  for (const bool skip : {false, true, false, true, true, false}) {
    twins.make_batch(12, {});
    twins.learn_new_rows();
    const auto outputs = twins.memory_for(true);
    const auto batch = twins.set().forward(12, twins.keys(), outputs.views);
    const auto dy = twins.random_gradients();
    const auto gradients = twins.memory_for(true, &dy);
    twins.set().update(batch, Twins::as_const(gradients),
                       {.rate_on_device = rate.data(), .loss_scale = 4, .skip = skip ? yes.data() : no.data()});
    if (skip) continue;
    auto unscaled = dy;
    for (auto& row : unscaled[0])
      for (double& element : row) element /= 4;
    twins.update_plain(unscaled, 0.25, ++t);
  }
  twins.expect_tables(1e-5);
  EXPECT_EQ(twins.set().updates(), t);
}

// A lookup adds no row. A key without a row has the vector 0. A lookup reads the rows as of the last ended batch.
TEST_P(EmbeddingSetTest, LookUpsAddNoRows) {
  for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::max, Pooling::none}) {
    Twins twins(small_set(pooling), GetParam(), 4);
    twins.make_batch(6, {}, 5);
    twins.learn_new_rows();
    auto outputs = twins.memory_for(true);
    const auto batch = twins.set().forward(6, twins.keys(), outputs.views);
    const auto dy = twins.random_gradients();
    const auto gradients = twins.memory_for(true, &dy);
    twins.set().update(batch, Twins::as_const(gradients), {.learning_rate = 0.1f});
    twins.update_plain(dy, 0.1, 1);
    const int64_t rows = twins.set().rows("items");
    for (const int64_t samples : {9, 5000}) {
      twins.make_batch(samples, {}, 400);
      outputs = twins.memory_for(true);
      twins.set().lookup(samples, twins.keys(), outputs.views);
      twins.expect_vectors(outputs, 1e-5);
    }
    EXPECT_EQ(twins.set().rows("items"), rows);
  }
}

// A saved and loaded set resumes bit for bit, with every optimizer.
TEST_P(EmbeddingSetTest, ALoadedSetGoesOnAsTheSavedOneWould) {
  const TemporaryFolder folder;
  for (const SetRule rule : {SetRule::adam, SetRule::adagrad, SetRule::sgd}) {
    EmbeddingOptions options = small_set();
    options.tables[0].optimizer = example(rule, Formula::config);
    options.tables.push_back({.name = "direct", .dim = 3, .rows = 40});
    options.features.push_back({"number", "direct", Pooling::none, false});
    options.tables[0].most_rows = 30;
    options.tables[0].when_full = EmbeddingTableOptions::WhenFull::evict_lfu;
    const auto steps = [](Twins& twins, int count) {
      for (int i = 0; i < count; ++i) {
        twins.make_batch(15, {}, 60);
        const auto outputs = twins.memory_for(true);
        const auto batch = twins.set().forward(15, twins.keys(), outputs.views);
        const auto dy = twins.random_gradients();
        const auto gradients = twins.memory_for(true, &dy);
        twins.set().update(batch, Twins::as_const(gradients), {.learning_rate = 0.1f});
      }
    };
    const auto rows_of = [](EmbeddingSet& set, const std::string& table) {
      std::map<int64_t, std::vector<float>> rows;
      set.export_rows(table, true, [&](const TableRows& block) {
        for (size_t i = 0; i < block.keys.size(); ++i) {
          auto& row = rows[block.keys[i]];
          const auto add = [&](std::span<const float> values) {
            const size_t each = values.size() / block.keys.size();
            row.insert(row.end(), values.begin() + static_cast<ptrdiff_t>(i * each),
                       values.begin() + static_cast<ptrdiff_t>((i + 1) * each));
          };
          add(block.vectors);
          for (const auto state : block.states) add(state);
        }
      });
      return rows;
    };
    Twins first(options, GetParam(), 21);
    steps(first, 6);
    first.set().save(folder / "set");
    first.set().save(folder / "set");  // overwrites the files of the first save
    steps(first, 6);
    Twins second(options, GetParam(), 21);
    second.random().discard(0);
    {
      Twins same(options, GetParam(), 21);  // its random numbers advance by six steps, like those of `first`
      steps(same, 6);
      second.random() = same.random();
    }
    second.set().load(folder / "set");
    EXPECT_EQ(second.set().updates(), 6);
    steps(second, 6);
    for (const char* table : {"items", "direct"}) EXPECT_EQ(rows_of(first.set(), table), rows_of(second.set(), table));

    EmbeddingOptions others = options;
    others.tables[0].dim = 9;
    EmbeddingSet another([&] {
      others.gpu = GetParam().is_cuda() ? 0 : -1;
      return others;
    }());
    expect_error(Kind::data, "'dim' of table", [&] { another.load(folder / "set"); });
  }
}

// With more keys, samples and rows than reserved, results equal those of a set with enough memory from the start.
TEST_P(EmbeddingSetTest, BatchesOfAnySizeFollowEachOther) {
  for (const Pooling pooling : {Pooling::mean, Pooling::max, Pooling::none}) {
    Twins twins(small_set(pooling), GetParam(), 8);
    int64_t t = 0;
    for (const int64_t samples : {1, 0, 3000, 2, 9000, 1}) {
      twins.make_batch(samples, {}, 20000);
      twins.learn_new_rows();
      const auto outputs = twins.memory_for(true);
      const auto batch = twins.set().forward(samples, twins.keys(), outputs.views);
      twins.expect_vectors(outputs, 1e-4);
      const auto dy = twins.random_gradients();
      const auto gradients = twins.memory_for(true, &dy);
      twins.set().update(batch, Twins::as_const(gradients), {.learning_rate = 0.1f});
      twins.update_plain(dy, 0.1, ++t);
      if (HasFatalFailure()) return;
    }
    twins.expect_tables(1e-4);
  }
}

/// Returns all rows of a table, with states, after some steps on random batches.
std::map<int64_t, std::vector<float>> rows_after_steps(const EmbeddingOptions& options, Device device, int steps,
                                                       EmbeddingMemory* memory = nullptr) {
  Twins twins(options, device, 33);
  for (int i = 0; i < steps; ++i) {
    twins.make_batch(40, {}, 3000);
    const auto outputs = twins.memory_for(true);
    const auto batch = twins.set().forward(40, twins.keys(), outputs.views);
    const auto dy = twins.random_gradients();
    const auto gradients = twins.memory_for(true, &dy);
    twins.set().update(batch, Twins::as_const(gradients), {.learning_rate = 0.1f});
    if (i % 4 == 3) {  // some of the keys that are looked up here have evicted rows
      twins.make_batch(60, {}, 3000);
      const auto found = twins.memory_for(true);
      twins.set().lookup(60, twins.keys(), found.views);
    }
  }
  if (memory) *memory = twins.set().memory(options.tables[0].name);
  std::map<int64_t, std::vector<float>> rows;
  twins.set().export_rows(options.tables[0].name, true, [&](const TableRows& block) {
    const size_t dim = block.vectors.size() / block.keys.size();
    for (size_t i = 0; i < block.keys.size(); ++i)
      for (const auto values : {block.vectors, block.states[0], block.states[1]})
        rows[block.keys[i]].insert(rows[block.keys[i]].end(), values.begin() + static_cast<ptrdiff_t>(i * dim),
                                   values.begin() + static_cast<ptrdiff_t>((i + 1) * dim));
  });
  return rows;
}

// Tables with rows in host memory or on disk give the same results as tables in device memory.
TEST_P(EmbeddingSetTest, RowsInOtherMemoryGiveTheSameNumbers) {
  const TemporaryFolder folder;
  for (const Pooling pooling : {Pooling::mean, Pooling::none}) {
    EmbeddingOptions options = small_set(pooling);
    options.tables[0].dim = 256;
    const auto expected = rows_after_steps(options, GetParam(), 24);
    EXPECT_GT(expected.size(), 1000u);
    options.most_keys = 512;  // all rows of a batch must fit in memory
    EmbeddingMemory memory;
    options.device_bytes = GetParam().is_cuda() ? 64 << 20 : 2 << 20;
    options.host_bytes = 64 << 20;
    EXPECT_TRUE(rows_after_steps(options, GetParam(), 24, &memory) == expected);
    EXPECT_EQ(memory.rows, static_cast<int64_t>(expected.size()));
    EXPECT_TRUE(GetParam().is_cuda() || memory.rows_on_host > 0);
    options.host_bytes = 2 << 20;
    options.disk = folder.path();
    options.disk_bytes = 64 << 20;
    EXPECT_TRUE(rows_after_steps(options, GetParam(), 24, &memory) == expected);
    EXPECT_EQ(memory.rows, static_cast<int64_t>(expected.size()));
    EXPECT_TRUE(GetParam().is_cuda() || memory.rows_on_disk > 0);
  }
}

/// Arrays of one feature at fixed addresses. Each step sets new values.
struct FixedArrays {
  FixedArrays(Device device, int64_t samples, int64_t most_keys, int64_t vectors, int64_t dim)
      : keys(device, static_cast<size_t>(most_keys) * sizeof(int64_t)),
        offsets(device, static_cast<size_t>(samples + 1) * sizeof(int64_t)),
        y(device, static_cast<size_t>(vectors * dim) * sizeof(float)),
        dy(device, y.bytes()) {}
  Buffer keys, offsets, y, dy;
};

// A recorded step, from forward() to update(), is replayed with other keys. Tables grow between replays.
TEST_P(EmbeddingSetTest, ARecordedStepIsTheOneThatIsCalled) {
  if (!GetParam().is_cuda()) GTEST_SKIP() << "work is recorded on a GPU alone";
  constexpr int64_t kSamples = 64, kMost = 512, kDim = 8;
  for (const Pooling pooling : {Pooling::mean, Pooling::max, Pooling::none}) {
    const Stream stream(GetParam());
    EmbeddingOptions options = small_set(pooling);
    options.gpu = GetParam().index;
    options.stream = stream.ref().handle;
    EmbeddingSet called(options), recorded(options);
    const int64_t most_vectors = pooling == Pooling::none ? kMost : kSamples;
    const FixedArrays fixed(GetParam(), kSamples, kMost, most_vectors, kDim);
    const auto step = [&](EmbeddingSet& set, int64_t count) {
      const FeatureKeys keys{fixed.keys.data(), ElementType::i64, count, fixed.offsets.data()};
      const FeatureVectors<float> to{reinterpret_cast<float*>(fixed.y.data())};
      const FeatureVectors<const float> from{reinterpret_cast<const float*>(fixed.dy.data())};
      set.update(set.forward(kSamples, {&keys, 1}, {&to, 1}), {&from, 1}, {.learning_rate = 0.1f});
    };
    const auto reserve = [&] { recorded.reserve(kSamples, std::array{kMost}); };
    reserve();
    Program program(stream, true, [&] { step(recorded, kMost); });
    std::mt19937_64 random(7);
    std::vector<float> vectors[2];
    for (int i = 0; i < 100; ++i) {
      std::vector<int64_t> keys, offsets = {0};
      for (int64_t b = 0; b < kSamples; ++b) {
        for (auto n = random() % 9; n > 0; --n) keys.push_back(static_cast<int64_t>(random() % 60'000));  // mostly new
        offsets.push_back(static_cast<int64_t>(keys.size()));
      }
      std::vector<float> dy(static_cast<size_t>(most_vectors * kDim));
      for (float& element : dy) element = static_cast<float>(random() % 17) / 8 - 1;
      const auto count = static_cast<int64_t>(keys.size());
      copy_bytes(stream, fixed.keys.data(), keys.data(), keys.size() * sizeof(int64_t));
      copy_bytes(stream, fixed.offsets.data(), offsets.data(), offsets.size() * sizeof(int64_t));
      copy_bytes(stream, fixed.dy.data(), dy.data(), dy.size() * sizeof(float));
      stream.ref().synchronize();
      for (const bool replayed : {false, true}) {
        if (replayed) reserve();
        replayed ? program.run() : step(called, count);
        auto& have = vectors[replayed ? 1 : 0];
        have.resize(static_cast<size_t>((pooling == Pooling::none ? count : kSamples) * kDim));
        copy_bytes(stream, have.data(), fixed.y.data(), have.size() * sizeof(float));
        stream.ref().synchronize();
      }
      ASSERT_EQ(vectors[0], vectors[1]) << "step " << i;
    }
    EXPECT_EQ(recorded.updates(), 100);
    const auto all_rows = [](EmbeddingSet& set) {
      std::vector<float> all;
      set.export_rows("items", true, [&](const TableRows& block) {
        all.insert(all.end(), block.vectors.begin(), block.vectors.end());
        for (const auto state : block.states) all.insert(all.end(), state.begin(), state.end());
      });
      return all;
    };
    EXPECT_GT(recorded.rows("items"), 15'000);
    EXPECT_EQ(all_rows(called), all_rows(recorded));
  }
}

// PyTorch records on a stream that the set first sees during the recording.
TEST_P(EmbeddingSetTest, ARecordingMaySetTheStream) {
  if (!GetParam().is_cuda()) GTEST_SKIP() << "work is recorded on a GPU alone";
  constexpr int64_t kSamples = 64, kDim = 8;
  EmbeddingOptions options = small_set(Pooling::mean);
  options.gpu = GetParam().index;
  EmbeddingSet called(options), recorded(options);
  const FixedArrays fixed(GetParam(), kSamples, kSamples, kSamples, kDim);
  std::vector<int64_t> keys, offsets = {0};
  for (int64_t b = 0; b < kSamples; ++b) {
    keys.push_back(b % 7);
    offsets.push_back(b + 1);
  }
  const std::vector<float> dy(kSamples * kDim, 0.25f);
  const Stream stream(GetParam());
  copy_bytes(stream, fixed.keys.data(), keys.data(), keys.size() * sizeof(int64_t));
  copy_bytes(stream, fixed.offsets.data(), offsets.data(), offsets.size() * sizeof(int64_t));
  copy_bytes(stream, fixed.dy.data(), dy.data(), dy.size() * sizeof(float));
  stream.ref().synchronize();
  const auto step = [&](EmbeddingSet& set) {
    const FeatureKeys of{fixed.keys.data(), ElementType::i64, kSamples, fixed.offsets.data()};
    const FeatureVectors<float> to{reinterpret_cast<float*>(fixed.y.data())};
    const FeatureVectors<const float> from{reinterpret_cast<const float*>(fixed.dy.data())};
    set.update(set.forward(kSamples, {&of, 1}, {&to, 1}), {&from, 1}, {.learning_rate = 0.1f});
  };
  step(recorded);
  recorded.reserve(kSamples, std::array{kSamples});
  Program program(stream, true, [&] {
    recorded.set_stream(stream.ref().handle);
    step(recorded);
  });
  recorded.set_stream(nullptr);
  step(recorded);
  recorded.set_stream(stream.ref().handle);
  recorded.reserve(kSamples, std::array{kSamples});
  program.run();
  for (int i = 0; i < 3; ++i) step(called);
  std::vector<float> rows[2];
  for (EmbeddingSet* const set : {&called, &recorded})
    set->export_rows("items", true, [&](const TableRows& block) {
      auto& all = rows[set == &recorded ? 1 : 0];
      all.insert(all.end(), block.vectors.begin(), block.vectors.end());
    });
  EXPECT_EQ(recorded.updates(), 3);
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(rows[0].size(), 7u * kDim);
}

// A recorded lookup gives the vectors of a direct lookup, also after the table has changed.
TEST_P(EmbeddingSetTest, ARecordedLookUpIsTheOneThatIsCalled) {
  if (!GetParam().is_cuda()) GTEST_SKIP() << "work is recorded on a GPU alone";
  constexpr int64_t kSamples = 64, kMost = 512, kMany = 4000, kDim = 8;
  for (const Pooling pooling : {Pooling::mean, Pooling::max, Pooling::none}) {
    const Stream stream(GetParam());
    EmbeddingOptions options = small_set(pooling);
    options.gpu = GetParam().index;
    options.stream = stream.ref().handle;
    EmbeddingSet set(options);
    const int64_t most_vectors = pooling == Pooling::none ? kMost : kSamples;
    const FixedArrays fixed(GetParam(), kSamples, kMost, most_vectors, kDim);
    const FixedArrays many(GetParam(), kMany, kMany, kMany, kDim);
    std::mt19937_64 random(11);
    // Each sample has one key. Half of the keys are new.
    const auto set_keys = [&](const FixedArrays& arrays, int64_t samples) {
      std::vector<int64_t> keys, offsets = {0};
      for (int64_t b = 0; b < samples; ++b) {
        keys.push_back(static_cast<int64_t>(random() % 30'000));
        offsets.push_back(b + 1);
      }
      copy_bytes(stream, arrays.keys.data(), keys.data(), keys.size() * sizeof(int64_t));
      copy_bytes(stream, arrays.offsets.data(), offsets.data(), offsets.size() * sizeof(int64_t));
      stream.ref().synchronize();
    };
    const auto look_up = [&](const FixedArrays& arrays, int64_t samples, int64_t count) {
      const FeatureKeys keys{arrays.keys.data(), ElementType::i64, count, arrays.offsets.data()};
      const FeatureVectors<float> to{reinterpret_cast<float*>(arrays.y.data())};
      set.lookup(samples, {&keys, 1}, {&to, 1});
    };
    const auto learn = [&] {
      set_keys(many, kMany);
      const FeatureKeys keys{many.keys.data(), ElementType::i64, kMany, many.offsets.data()};
      const FeatureVectors<float> to{reinterpret_cast<float*>(many.y.data())};
      const FeatureVectors<const float> from{reinterpret_cast<const float*>(many.y.data())};
      set.update(set.forward(kMany, {&keys, 1}, {&to, 1}), {&from, 1}, {.learning_rate = 0.1f});
    };
    const auto vectors = [&] {
      std::vector<float> have(static_cast<size_t>(kSamples * kDim));
      copy_bytes(stream, have.data(), fixed.y.data(), have.size() * sizeof(float));
      stream.ref().synchronize();
      return have;
    };
    learn();
    set.reserve_lookup(kSamples, std::array{kMost});
    set_keys(fixed, kSamples);
    Program program(stream, true, [&] { look_up(fixed, kSamples, kSamples); });
    bool some = false;
    for (int i = 0; i < 20; ++i) {
      learn();
      look_up(many, kMany, kMany);  // exceeds the reserved size
      set_keys(fixed, kSamples);
      program.run();
      const std::vector<float> replayed = vectors();
      look_up(fixed, kSamples, kSamples);
      ASSERT_EQ(replayed, vectors()) << "replay " << i;
      for (const float element : replayed) some = some || element != 0;
    }
    EXPECT_TRUE(some);
    EXPECT_GT(set.rows("items"), 20'000);
  }
}

// Sets in concurrent threads do not affect each other, and free all memory.
TEST_P(EmbeddingSetTest, SetsInThreadsGiveWhatEachGivesAlone) {
  const auto alone = rows_after_steps(small_set(), GetParam(), 10);
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) equal += rows_after_steps(small_set(), GetParam(), 10) == alone;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 15);
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const auto open = count("/proc/self/fd"), running = count("/proc/self/task");
  for (int i = 0; i < 100; ++i) {
    EmbeddingOptions options = small_set();
    options.gpu = GetParam().is_cuda() ? 0 : -1;
    options.threads = 3;
    const EmbeddingSet set(options);
  }
  EXPECT_EQ(count("/proc/self/fd"), open);
  EXPECT_EQ(count("/proc/self/task"), running);
}

TEST(EmbeddingSetOnCpu, RefusesWhatDoesNotFitBeforeItChangesAnything) {
  EmbeddingOptions options = small_set(Pooling::sum);
  options.tables.push_back({.name = "direct", .dim = 2, .rows = 10});
  options.features.push_back({"number", "direct", Pooling::sum, false});
  EmbeddingSet set(options);
  const std::vector<int64_t> keys = {1, 2, 3}, outside = {1, 10, 3}, offsets = {0, 2, 3}, falling = {0, 3, 1},
                             few = {0, 1, 2};
  std::vector<float> items(16), numbers(4);
  const std::vector<FeatureVectors<float>> outputs = {{items.data()}, {numbers.data()}};
  const auto with = [&](const std::vector<int64_t>& first, const std::vector<int64_t>& first_offsets,
                        const std::vector<int64_t>& second) {
    const std::vector<FeatureKeys> both = {{first.data(), ElementType::i64, 3, first_offsets.data()},
                                           {second.data(), ElementType::i64, 3, offsets.data()}};
    return set.forward(2, both, outputs);
  };
  expect_error(Kind::usage, "decrease at sample 1", [&] { with(keys, falling, keys); });
  expect_error(Kind::usage, "cover 2 keys, but the feature has 3", [&] { with(keys, few, keys); });
  expect_error(Kind::data, "key 10 at position 1; table 'direct' has rows 0 to 9",
               [&] { with(keys, offsets, outside); });
  EXPECT_EQ(set.rows("items"), 0);
  const EmbeddingSet::Batch first = with(keys, offsets, keys), second = with(keys, offsets, keys);
  expect_error(Kind::usage, "expected at most 2", [&] { with(keys, offsets, keys); });
  expect_error(Kind::usage, "must end first", [&] { set.release(second); });
  expect_error(Kind::usage, "cannot be accessed between", [&] { (void)set.rows("items"); });
  set.release(first);
  set.release(second);
  expect_error(Kind::usage, "has ended or never existed", [&] { set.release(second); });
  EXPECT_EQ(set.rows("items"), 3);
  expect_error(Kind::usage, "no embedding table 'other'", [&] { (void)set.rows("other"); });
}

// A rejected batch counts as ended. Earlier batches remain usable.
TEST(EmbeddingSetOnCpu, ABatchThatIsRefusedLeavesTheOthers) {
  EmbeddingOptions options = small_set(Pooling::sum);
  options.tables[0].most_rows = 2;
  EmbeddingSet set(options);
  const std::vector<int64_t> keys = {1, 2, 3, 4};
  std::vector<float> vectors(2 * 8);
  const FeatureVectors<float> to{vectors.data()};
  const auto two_from = [&](size_t first) {
    const FeatureKeys given{keys.data() + first, ElementType::i64, 2};
    return set.forward(2, {&given, 1}, {&to, 1});
  };
  const EmbeddingSet::Batch first = two_from(0);
  expect_error(Kind::data, "most_rows", [&] { two_from(2); });
  const FeatureVectors<const float> dy{vectors.data()};
  set.update(first, {&dy, 1}, {.learning_rate = 0.1f});
  EXPECT_EQ(set.updates(), 1);
  (void)set.memory("items");  // requires that no batch is in progress
}

TEST(EmbeddingSetOnCpu, ListsNoGradientsWhereATableHasNoMemoryForThem) {
  EmbeddingOptions options = small_set(Pooling::sum);
  options.tables.push_back({.name = "more", .dim = 8});
  options.features.push_back({"another", "more", Pooling::sum, false});
  EmbeddingSet set(options);
  const std::vector<int64_t> keys = {1, 2};
  std::vector<float> vectors(2 * 8), sums(2 * 8);
  std::vector<int64_t> rows(2);
  const std::vector<FeatureKeys> given(2, {keys.data(), ElementType::i64, 2});
  const std::vector<FeatureVectors<float>> to(2, {vectors.data()});
  const std::vector<FeatureVectors<const float>> dy(2, {vectors.data()});
  const EmbeddingSet::Batch batch = set.forward(2, given, to);
  std::vector<RowGradients> lists = {{rows.data(), sums.data()}, {}};
  expect_error(Kind::usage, "row gradients of table 'more': keys or values is null",
               [&] { (void)set.row_gradients(batch, dy, lists); });
  lists[1] = lists[0];
  EXPECT_EQ(set.row_gradients(batch, dy, lists), (std::vector<int64_t>{2, 2}));
}

TEST(EmbeddingSetOnCpu, NamesOptionsThatDoNotFit) {
  const auto refuses = [](const std::string& text, const std::function<void(EmbeddingOptions&)>& change) {
    EmbeddingOptions options = small_set();
    change(options);
    expect_error(Kind::usage, text, [&] { const EmbeddingSet set(options); });
  };
  refuses("two embedding tables", [](auto& o) { o.tables.push_back(o.tables[0]); });
  refuses("which does not exist", [](auto& o) { o.features[0].table = "item"; });
  refuses("dim is 0", [](auto& o) { o.tables[0].dim = 0; });
  refuses("when_full needs most_rows",
          [](auto& o) { o.tables[0].when_full = EmbeddingTableOptions::WhenFull::evict_lru; });
  refuses("every row exists", [](auto& o) { o.tables[0].rows = o.tables[0].most_rows = 5; });
  refuses("lazy_global", [](auto& o) { o.tables[0].optimizer.rows = SetRows::lazy_global; });
  refuses("row_wise", [](auto& o) { o.tables[0].optimizer.row_wise = true; });
  refuses("by_rows", [](auto& o) { o.tables[0].initial.kind = EmbeddingStart::Kind::by_rows; });
  refuses("has weights", [](auto& o) { o.features[0] = {"item", "items", Pooling::max, true}; });
  refuses("has no feature", [](auto& o) { o.tables.push_back({.name = "more", .dim = 1}); });
}

}  // namespace
}  // namespace hctr::test
