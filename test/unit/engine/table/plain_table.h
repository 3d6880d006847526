// Reference table: a map of vectors, with every formula in double.
#pragma once

#include <cmath>
#include <map>

#include "support/plain_optimizer.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {

inline TableSpec small_spec(int64_t dim = 4, int64_t slots = 3, int64_t samples = 8, int64_t capacity = 100) {
  TableSpec spec;
  spec.name = "small";
  spec.dim = dim;
  spec.slots = slots;
  spec.samples = spec.eval_samples = samples;
  spec.key_capacity = spec.eval_key_capacity = capacity;
  return spec;
}

/// A spec without pooling. `places`: positions per slot.
inline TableSpec unpooled_spec(int64_t dim, int64_t samples, std::vector<int64_t> places) {
  TableSpec spec = small_spec(dim, static_cast<int64_t>(places.size()), samples);
  spec.combiner = ops::Combiner::none;
  spec.slot_keys = std::move(places);
  spec.key_capacity = spec.eval_key_capacity = samples * spec.columns();
  return spec;
}

/// Returns an initial or imported value as rounded by `storage`.
inline double stored(DType storage, float value) {
  double out = 0;
  dispatch_float(storage,
                 [&]<class T>() { out = static_cast<double>(static_cast<float>(ops::rounded_to_nearest<T>(value))); });
  return out;
}

/// The distance between adjacent values of the type `storage` near x.
inline double quantum(DType storage, double x) {
  const double exponent = x == 0 ? -200 : std::floor(std::log2(std::abs(x)));
  if (storage == DType::f16) return std::exp2(std::max(exponent - 10, -24.0));
  return storage == DType::bf16 ? std::exp2(std::max(exponent - 7, -133.0)) : 0;
}

class PlainTable {
 public:
  explicit PlainTable(const TableSpec& spec) : spec_(spec) {}

  struct Row {
    std::vector<PlainWeight> elements;
    int64_t last = 1;                               // for lazy updates: the last step that updated the row
    double sum = 0;                                 // the state of row-wise AdaGrad
    std::vector<double> numbers(int which) const {  // `which`: 0 for the vector, 1 or 2 for a state
      std::vector<double> out;
      for (const PlainWeight& x : elements) out.push_back(which == 0 ? x.w : x.state[which - 1]);
      return out;
    }
  };
  using Identity = std::pair<int32_t, int64_t>;
  static constexpr Identity kShared{-1, 0};  // identity of the shared row, which is not stored in files
  std::map<Identity, Row> rows;

  virtual ~PlainTable() = default;
  virtual Identity identity(size_t slot, int64_t key) const {
    return {spec_.identity_by_slot ? static_cast<int32_t>(slot) : 0, key};
  }

  void insert(const Bags& bags) {
    for (size_t s = 0; s < bags.size(); ++s)
      for (const auto& bag : bags[s])
        for (const int64_t k : bag)
          if (const Identity id = identity(s, k); !rows.contains(id)) rows[id] = new_row("table:", id);
  }
  Row new_row(const std::string& stream, Identity id) const {
    const uint64_t key = random_key(7, random_stream(stream + spec_.name));
    const float bound =
        spec_.slot_bounds.empty() || id.first < 0 ? spec_.init_bound : spec_.slot_bounds[static_cast<size_t>(id.first)];
    const auto slot = static_cast<uint64_t>(std::max(id.first, 0));
    Row row;
    for (int64_t e = 0; e < spec_.dim; ++e)
      row.elements.emplace_back(
          spec_.optimizer,
          stored(spec_.storage,
                 symmetric_float(
                     philox(key, static_cast<uint64_t>(id.second), slot << 32 | static_cast<uint64_t>(e / 4)).v[e % 4],
                     bound)));
    row.sum = static_cast<double>(spec_.optimizer.initial);
    return row;
  }

  double weight(const std::vector<int64_t>& bag) const {
    const double n = std::max(1.0, static_cast<double>(bag.size()));
    if (spec_.combiner == ops::Combiner::mean) return 1.0 / n;
    return spec_.combiner == ops::Combiner::sqrtn ? 1.0 / std::sqrt(n) : 1.0;
  }

  /// Returns where y has the vector of key i in the bag of slot s and sample b.
  size_t place(size_t s, size_t b, size_t i) const {
    size_t at = s;
    if (spec_.combiner == ops::Combiner::none) {
      at = i;
      for (size_t before = 0; before < s; ++before) at += static_cast<size_t>(spec_.slot_keys[before]);
    }
    return (b * static_cast<size_t>(spec_.columns()) + at) * static_cast<size_t>(spec_.dim);
  }

  std::vector<double> forward(const Bags& bags) const {
    const size_t samples = bags[0].size(), dim = static_cast<size_t>(spec_.dim);
    std::vector<double> y(samples * static_cast<size_t>(spec_.columns()) * dim, 0.0);
    for (size_t s = 0; s < bags.size(); ++s)
      for (size_t b = 0; b < samples; ++b)
        for (size_t i = 0; i < bags[s][b].size(); ++i)
          if (const auto found = rows.find(identity(s, bags[s][b][i])); found != rows.end())
            for (size_t e = 0; e < dim; ++e) y[place(s, b, i) + e] += weight(bags[s][b]) * found->second.elements[e].w;
    return y;
  }

  void update(const Bags& bags, const std::vector<float>& dy, double rate, double loss_scale, int64_t t) {
    const size_t dim = static_cast<size_t>(spec_.dim);
    std::map<Identity, std::vector<double>> gradients;
    for (size_t s = 0; s < bags.size(); ++s)
      for (size_t b = 0; b < bags[s].size(); ++b)
        for (size_t i = 0; i < bags[s][b].size(); ++i) {
          auto& g = gradients[identity(s, bags[s][b][i])];
          g.resize(dim, 0.0);
          for (size_t e = 0; e < dim; ++e)
            g[e] += weight(bags[s][b]) * static_cast<double>(dy[place(s, b, i) + e]) / loss_scale;
        }
    if (spec_.update == UpdateType::global)
      for (const auto& [id, row] : rows) gradients[id].resize(dim, 0.0);
    for (const auto& [id, g] : gradients) {
      const auto found = rows.find(id);
      if (found == rows.end()) continue;  // the key has no row
      Row& row = found->second;
      if (spec_.optimizer.row_wise) {
        for (const double each : g) row.sum += each * each / static_cast<double>(dim);
        for (size_t e = 0; e < dim; ++e)
          row.elements[e].w -= rate * g[e] / (std::sqrt(row.sum) + static_cast<double>(spec_.optimizer.epsilon));
      } else if (spec_.update == UpdateType::lazy_global) {
        for (size_t e = 0; e < dim; ++e)
          lazy_update(row.elements[e], g[e], rate, static_cast<double>(t), static_cast<double>(row.last));
      } else {
        for (size_t e = 0; e < dim; ++e) plain_update(spec_.optimizer, row.elements[e], g[e], rate, t);
      }
      row.last = t;
    }
  }

 protected:
  TableSpec spec_;

 private:
  void lazy_update(PlainWeight& x, double g, double rate, double t, double last) const {
    const double b1 = static_cast<double>(spec_.optimizer.beta1), b2 = static_cast<double>(spec_.optimizer.beta2),
                 k = t - last;
    x.w -= rate / (1 - b1) * std::sqrt(1 - std::pow(b2, last)) / (1 - std::pow(b1, last)) * (1 - std::pow(b1, k)) *
           x.state[0] / (std::sqrt(x.state[1]) + static_cast<double>(spec_.optimizer.epsilon));
    x.state[0] = std::pow(b1, k) * x.state[0] + (1 - b1) * g;
    x.state[1] = std::pow(b2, k) * x.state[1] + (1 - b2) * g * g;
  }
};

/// `storage`: the type to which the values in `got` were rounded, up or down.
inline void expect_near(const std::vector<float>& got, const std::vector<double>& wanted, double tolerance,
                        const std::string& what, DType storage = DType::f32) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), wanted[i],
                tolerance * (1 + std::abs(wanted[i])) + quantum(storage, wanted[i]))
        << what << ", element " << i;
}

/// Compares the whole table with the reference. If the table stores rounded values, copies the rounded values to the
/// reference.
inline void compare_rows(TableRig& rig, PlainTable& plain, double tolerance) {
  const TableSpec& spec = rig.spec();
  ASSERT_EQ(rig.table->rows(), static_cast<int64_t>(plain.rows.size() - plain.rows.count(PlainTable::kShared)));
  rig.table->export_rows(true, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) {
      const int32_t slot = block.slots.empty() ? 0 : block.slots[i];
      const auto found = plain.rows.find({slot, block.keys[i]});
      ASSERT_TRUE(found != plain.rows.end()) << "a row of key " << block.keys[i] << " in slot " << slot;
      const auto part = [&](std::span<const float> from, int64_t width) {
        const auto first = from.begin() + static_cast<int64_t>(i) * width;
        return std::vector<float>(first, first + width);
      };
      PlainTable::Row& row = found->second;
      const std::vector<float> vector = part(block.vectors, spec.dim);
      expect_near(vector, row.numbers(0), tolerance, cat("vector of key ", block.keys[i]), spec.storage);
      for (int s = 0; s < spec.optimizer.states(); ++s) {
        const std::vector<float> state = part(block.states[s], spec.state_dim());
        std::vector<double> wanted = spec.optimizer.row_wise ? std::vector{row.sum} : row.numbers(s + 1);
        // In FTRL the second state, z, follows from a nonzero weight, so it is compared only where the weight is 0.
        if (spec.optimizer.kind == ops::Optimizer::Kind::ftrl && s == 1)
          for (size_t e = 0; e < wanted.size(); ++e)
            if (row.elements[e].w != 0) wanted[e] = static_cast<double>(state[e]);
        expect_near(state, wanted, tolerance, cat("state ", s, " of key ", block.keys[i]), spec.stored_states());
        for (size_t e = 0; spec.stored_states() != DType::f32 && e < state.size(); ++e)
          row.elements[e].state[s] = static_cast<double>(state[e]);
      }
      for (size_t e = 0; e < vector.size(); ++e) {
        PlainWeight& x = row.elements[e];
        if (spec.storage != DType::f32) x.w = static_cast<double>(vector[e]);
        const bool says_z = spec.optimizer.kind == ops::Optimizer::Kind::ftrl && x.w != 0 &&
                            (spec.storage != DType::f32 || spec.stored_states() != DType::f32);
        if (says_z)  // FTRL with rounded weights or states: z follows from the nonzero weight.
          x.state[1] = -x.w * (x.inverse_rate + static_cast<double>(spec.optimizer.lambda2)) -
                       std::copysign(static_cast<double>(spec.optimizer.lambda1), x.w);
      }
    }
  });
}

/// Trains the table and the reference on the same batches, and compares all outputs.
inline void compare_over_steps(Device device, TableSpec spec, int most_keys, int64_t vocabulary, int steps,
                               double tolerance = 2e-5) {
  TableRig rig(device, spec);
  rig.loss_scale = 8;
  PlainTable plain(spec);
  std::mt19937_64 random(11);
  for (int t = 1; t <= steps; ++t) {
    Bags bags = random_bags(spec, spec.samples, most_keys, vocabulary, random);
    for (auto& slot : bags) slot.back().clear();  // the last sample is padding, so its bags are empty
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    const float rate = 0.01f * static_cast<float>(1 + t % 3);
    plain.insert(bags);
    expect_near(rig.step(bags, dy, rate), plain.forward(bags), tolerance, cat("forward of step ", t));
    plain.update(bags, dy, static_cast<double>(rate), 8, t);
    if (spec.storage != DType::f32 || spec.stored_states() != DType::f32) compare_rows(rig, plain, tolerance);
    if (testing::Test::HasFatalFailure()) return;
  }
  compare_rows(rig, plain, tolerance);
}

}  // namespace hctr::test
