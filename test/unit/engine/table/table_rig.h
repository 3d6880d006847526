// Runs a table step by step with data from the host, on any device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/platform.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "engine/table/table.h"
#include "support/devices.h"

namespace hctr::test {

/// Runs tests on each device. Without a GPU, the GPU variants are skipped with a message.
class OnDevice : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().is_cuda()) HCTR_SKIP_WITHOUT_GPU();
  }
};
inline std::string device_name(const testing::TestParamInfo<Device>& info) {
  return info.param.is_cuda() ? "cuda" : "cpu";
}
#define HCTR_ON_EACH_DEVICE(suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(Device, suite, testing::Values(::hctr::test::kCpu, ::hctr::test::kGpu), \
                           ::hctr::test::device_name)

/// The keys of a batch: bags[slot][sample].
using Bags = std::vector<std::vector<std::vector<int64_t>>>;

inline Bags empty_bags(const TableSpec& spec, int64_t samples) {
  return Bags(static_cast<size_t>(spec.slots), std::vector<std::vector<int64_t>>(static_cast<size_t>(samples)));
}

/// Random bags with up to `most` keys below `vocabulary`. Small keys are frequent.
inline Bags random_bags(const TableSpec& spec, int64_t samples, int most, int64_t vocabulary, std::mt19937_64& random) {
  Bags bags = empty_bags(spec, samples);
  for (auto& slot : bags)
    for (auto& bag : slot)
      for (auto n = random() % static_cast<uint64_t>(most + 1); n > 0; --n) {
        const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;
        bag.push_back(static_cast<int64_t>(u * u * u * static_cast<double>(vocabulary)));
      }
  return bags;
}

struct DeviceArray {
  DeviceArray(Device device, TensorSpec wanted) : buffer(device, wanted.bytes()), spec(wanted) {}
  Tensor tensor() const { return Tensor(buffer.data(), spec, buffer.device()); }
  Buffer buffer;
  TensorSpec spec;
};

/// Converts the values to another type. Tests are built without optimization, in which a loop over vectors is slow, so
/// values of the same type are copied as bytes.
template <class To, class From>
std::vector<To> converted(const std::vector<From>& values) {
  if constexpr (std::is_same_v<To, From>) {
    return values;
  } else {
    std::vector<To> out(values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<To>(values[i]);
    return out;
  }
}

/// A table, with buffers for `ring` training batches and one evaluation batch.
class TableRig {
 public:
  TableRig(Device device, TableSpec spec, int threads = 1, int ring = 2, bool record = true,
           DType activations = DType::f32, const RowMemoryLimits& row_memory = {})
      : runtime(device, {.threads = threads, .seed = 7, .row_memory = row_memory}),
        table(std::make_unique<EmbeddingTable>(runtime, spec, ring)),
        ring_(ring),
        record_(record),
        spoiled_(device, sizeof(int32_t)) {
    zero_bytes(runtime.compute_stream(), spoiled_.data(), spoiled_.bytes());
    for (int i = 0; i < ring; ++i)
      slots_.push_back(std::make_unique<Slot>(device, spec, spec.samples, spec.key_capacity, activations));
    eval_ = std::make_unique<Slot>(device, spec, spec.eval_samples, spec.eval_key_capacity, activations);
  }

  /// Runs a training step. Returns y [samples, columns, dim].
  std::vector<float> step(const Bags& bags, const std::vector<float>& dy, float learning_rate = 0.1f) {
    prepare(bags, learning_rate);
    return compute(dy);
  }
  /// Prepares a step: looks up and inserts keys. `accepted`: false if another table or rank rejects the batch, which
  /// ends the run.
  void prepare(const Bags& bags, float learning_rate = 0.1f, bool accepted = true) {
    const int i = static_cast<int>(prepared_++ % ring_);
    Slot& slot = *slots_[static_cast<size_t>(i)];
    upload(bags, slot);
    const StepState state{.step = steps_ + prepared_ - computed_ - 1,
                          .updates = updates_,
                          .first_sample = first_sample,
                          .valid_samples = 0,
                          .global_samples = 0,
                          .learning_rate = learning_rate,
                          .loss_scale = loss_scale,
                          .skip = skip,
                          .spoiled = reinterpret_cast<int32_t*>(spoiled_.data())};
    if (!skip) ++updates_;
    copy_bytes(runtime.compute_stream(), slot.state.data(), &state, sizeof state);
    runtime.compute_stream().synchronize();
    table->reserve_rows(state.step);
    Context ctx(runtime, runtime.prepare_stream(), reinterpret_cast<const StepState*>(slot.state.data()));
    if (!slot.prepare)
      slot.prepare = std::make_unique<Program>(ctx.stream(), record_, [this, i, ctx, &slot]() mutable {
        table->prepare(ctx, i, slot.keys.tensor(), slot.offsets.tensor());
      });
    table->bring_rows(ctx, i, slot.keys.tensor(), slot.offsets.tensor());
    slot.prepare->run();
    if (!accepted) return;
    table->confirm_capacity(i);
    table->enforce_limit(i);
  }
  /// Completes the oldest prepared step: computes y and updates the rows.
  std::vector<float> compute(const std::vector<float>& dy) {
    const int i = static_cast<int>(computed_++ % ring_);
    Slot& slot = *slots_[static_cast<size_t>(i)];
    dispatch_float(slot.dy.spec.dtype,
                   [&]<class T>() { from_host(runtime.compute_stream(), slot.dy.tensor(), converted<T>(dy)); });
    runtime.prepare_stream().synchronize();
    Context ctx(runtime, runtime.compute_stream(), reinterpret_cast<const StepState*>(slot.state.data()));
    if (!slot.compute)
      slot.compute = std::make_unique<Program>(ctx.stream(), record_, [this, i, ctx, &slot]() mutable {
        table->forward(ctx, i, slot.y.tensor());
        table->sum_long_runs(ctx, i, slot.dy.tensor());
        table->update(ctx, i, slot.dy.tensor());
      });
    slot.compute->run();
    ++steps_;
    return result(slot);
  }

  std::vector<float> lookup(const Bags& bags) {
    upload(bags, *eval_);
    Context ctx(runtime, runtime.compute_stream());
    table->lookup(ctx, eval_->keys.tensor(), eval_->offsets.tensor(), eval_->y.tensor());
    return result(*eval_);
  }

  /// Returns all rows as bytes, for comparing tables bit by bit.
  std::string bytes(bool with_states = true) {
    std::string out;
    const auto add = [&](const auto& span) {
      out.append(reinterpret_cast<const char*>(span.data()), span.size_bytes());
    };
    table->export_rows(with_states, [&](const RowBlock& block) {
      add(block.keys), add(block.slots), add(block.vectors), add(block.last_steps);
      for (const auto& state : block.states) add(state);
    });
    return out;
  }

  /// Whether an update has produced a value that is not finite.
  bool spoiled() const {
    int32_t flag = 0;
    copy_bytes(runtime.compute_stream(), &flag, spoiled_.data(), sizeof flag);
    runtime.compute_stream().synchronize();
    return flag != 0;
  }

  /// Resumes with the step count of another rig.
  void continue_at(const TableRig& other) {
    steps_ = other.steps_;
    updates_ = other.updates_;
  }

  const TableSpec& spec() const { return table->spec(); }
  Runtime runtime;
  std::unique_ptr<EmbeddingTable> table;
  float loss_scale = 1;
  int32_t skip = 0;          ///< whether steps prepared after this assignment skip their updates
  int64_t first_sample = 0;  ///< index of the first sample of steps prepared after this assignment

 private:
  struct Slot {
    Slot(Device device, const TableSpec& s, int64_t samples_, int64_t key_capacity, DType activations)
        : samples(samples_),
          keys(device, TensorSpec(DType::i64, {key_capacity})),
          offsets(device, TensorSpec(DType::i32, {s.slots * samples + 1})),
          state(device, sizeof(StepState)),
          y(device, TensorSpec(activations, {samples, s.columns(), s.dim}, s.columns() * s.dim + 8)),
          dy(device, TensorSpec(activations, {samples, s.columns(), s.dim})) {}
    int64_t samples;
    DeviceArray keys, offsets;
    Buffer state;
    DeviceArray y, dy;
    std::unique_ptr<Program> prepare, compute;
  };

  std::vector<float> result(const Slot& slot) const {
    std::vector<float> y;
    dispatch_float(slot.y.spec.dtype,
                   [&]<class T>() { y = converted<float>(to_host<T>(runtime.compute_stream(), slot.y.tensor())); });
    return y;
  }

  void upload(const Bags& bags, Slot& slot) {
    std::vector<int64_t> keys;
    std::vector<int32_t> offsets{0};
    for (const auto& of_slot : bags) {
      ASSERT_EQ(static_cast<int64_t>(of_slot.size()), slot.samples);
      for (const auto& bag : of_slot) {
        keys.insert(keys.end(), bag.begin(), bag.end());
        offsets.push_back(static_cast<int32_t>(keys.size()));
      }
    }
    ASSERT_LE(static_cast<int64_t>(keys.size()), slot.keys.spec.rows());
    keys.resize(static_cast<size_t>(slot.keys.spec.rows()), int64_t{0x5a5a5a5a5a5a5a5a});
    from_host(runtime.compute_stream(), slot.keys.tensor(), keys);
    from_host(runtime.compute_stream(), slot.offsets.tensor(), offsets);
  }

  int64_t ring_;
  bool record_;
  Buffer spoiled_;  // the flag that StepState::spoiled points to
  int64_t prepared_ = 0, computed_ = 0, steps_ = 0, updates_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<Slot> eval_;
};

inline std::vector<float> random_floats(int64_t count, std::mt19937_64& random, float bound = 1) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = symmetric_float(static_cast<uint32_t>(random()), bound);
  return out;
}

/// Checks that the rows are the same if each batch is prepared one step ahead.
inline void expect_preparing_ahead_changes_nothing(Device device, const TableSpec& spec, size_t steps,
                                                   int64_t vocabulary) {
  TableRig ahead(device, spec), plain(device, spec);
  std::mt19937_64 random(2);
  std::vector<Bags> batches;
  std::vector<std::vector<float>> dys;
  for (size_t t = 0; t < steps; ++t) {
    batches.push_back(random_bags(spec, spec.samples, 3, vocabulary, random));
    dys.push_back(random_floats(spec.samples * spec.slots * spec.dim, random));
    plain.step(batches.back(), dys.back());
  }
  ahead.prepare(batches[0]);
  for (size_t t = 0; t < steps; ++t) {
    if (t + 1 < steps) ahead.prepare(batches[t + 1]);
    ahead.compute(dys[t]);
  }
  EXPECT_EQ(ahead.bytes(), plain.bytes());
}

/// Trains with activations in f32, f16 and bf16. Checks that the two-byte vectors y are the rounded f32 vectors. The
/// gradients are exact in all three types, so the rows must be equal.
inline void expect_activations_of_two_bytes_are_rounded(Device device, const TableSpec& spec, int most_keys,
                                                        int steps) {
  TableRig wide(device, spec), half(device, spec, 1, 2, true, DType::f16), brain(device, spec, 1, 2, true, DType::bf16);
  std::mt19937_64 random(9);
  for (int t = 0; t < steps; ++t) {
    const Bags bags = random_bags(spec, spec.samples, most_keys, 60, random);
    std::vector<float> dy;
    for (int64_t i = 0; i < spec.samples * spec.slots * spec.dim; ++i)
      dy.push_back(static_cast<float>(static_cast<int>(random() % 64) - 32) / 16);
    const std::vector<float> y = wide.step(bags, dy), y_half = half.step(bags, dy), y_brain = brain.step(bags, dy);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y_half[i], static_cast<float>(Half(y[i])));
      ASSERT_EQ(y_brain[i], static_cast<float>(BFloat16(y[i])));
    }
  }
  EXPECT_EQ(half.bytes(), wide.bytes());
  EXPECT_EQ(brain.bytes(), wide.bytes());
}

/// Returns occurrences, keys, vectors and second states of the most frequent rows, at most `most` rows.
inline std::vector<float> frequent_rows(TableRig& rig, int64_t most) {
  std::vector<float> all;
  const auto rows = rig.table->most_frequent(most);
  for (const auto& row : rows) all.push_back(static_cast<float>(row.occurrences));
  rig.table->export_rows(rows, [&](const RowBlock& block) {
    for (const int64_t key : block.keys) all.push_back(static_cast<float>(key));
    all.insert(all.end(), block.vectors.begin(), block.vectors.end());
    all.insert(all.end(), block.states[1].begin(), block.states[1].end());
  });
  return all;
}

/// The minimum budget of a table with this spec and limits. Parses the error that a smaller budget causes.
inline int64_t least_budget(Device device, const TableSpec& spec, const RowMemoryLimits& limits, int ring = 3) {
  try {
    const TableRig rig(device, spec, 1, ring, true, DType::f32, limits);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (const size_t at = message.find("must be at least "); at != message.npos)
      return std::stoll(message.substr(at + 17));
    throw;
  }
  return 1;
}
/// Returns the minimum host budget of a table. least_device() returns its minimum device budget.
inline int64_t least_host(Device device, const TableSpec& spec, RowMemoryLimits limits) {
  limits.host = 1;
  return least_budget(device, spec, limits);
}
inline int64_t least_device(Device device, const TableSpec& spec, RowMemoryLimits limits, int ring = 3) {
  limits.device = 1;
  return least_budget(device, spec, limits, ring);
}

}  // namespace hctr::test
