// An embedding on several ranks that are threads, trained on given batches and gradients; everything by global sample.
#pragma once

#include <mutex>

#include "comm/host_comm.h"
#include "comm/self_comm.h"
#include "embedding/embedding.h"
#include "plain_table.h"
#include "support/run_ranks.h"

namespace hctr::test {

/// What is trained: `spec` is that of a rank that is alone, whose batches are the whole ones.
struct ShardedRun {
  PlacementRule kind = PlacementRule::localized;
  TableSpec spec;
  int most_keys = 3;  ///< of a bag
  std::vector<int64_t> slot_sizes;  ///< of a table with direct keys
  std::vector<Bags> batches;
  std::vector<std::vector<float>> dys;  ///< [step] of [samples, places, dim]
  Bags evaluated;

  Placement placement(int64_t ranks) const { return Placement::without_plan(kind, spec.identity_by_slot, spec.slots, ranks); }
};

struct ShardedOutcome {
  std::vector<std::vector<float>> y;  ///< [step]
  std::vector<float> evaluated;
  std::map<std::pair<int32_t, int64_t>, std::vector<float>> rows;  ///< by slot and key: the vector, then the states
  std::map<std::string, int64_t> counts;
  bool shared_row = false;
};

inline std::vector<float> random_gradients(const TableSpec& spec, std::mt19937_64& random) {
  return random_floats(spec.samples * spec.places() * spec.dim, random);
}

/// The keys that `rank` of `ranks` owns; bags keep their places.
inline Bags owned_by(const Placement& placement, int rank, Bags bags) {
  for (size_t s = 0; s < bags.size(); ++s)
    for (auto& bag : bags[s])
      std::erase_if(bag, [&](int64_t key) { return placement.owner(static_cast<int64_t>(s), key) != rank; });
  return bags;
}

/// One rank's way through the steps.
inline void train_sharded(const ShardedRun& run, Communicator& comm, ShardedOutcome& outcome, std::mutex& mutex) {
  const int64_t batch = run.spec.samples, ranks = comm.size(), samples = (batch + ranks - 1) / ranks;
  const int64_t begin = batch * comm.rank() / ranks, end = batch * (comm.rank() + 1) / ranks;
  TableSpec spec = run.spec;
  spec.rank = comm.rank();
  spec.batch = batch;
  spec.samples = spec.eval_samples = samples;
  spec.key_capacity = spec.eval_key_capacity = samples * spec.slots * run.most_keys;
  if (!run.slot_sizes.empty()) spec.direct = direct_keys(run.slot_sizes, spec.identity_by_slot, run.placement(ranks), comm.rank());
  Runtime runtime(kCpu, {.threads = 2, .seed = 7});
  const auto embedding = make_embedding(runtime, comm, run.placement(ranks), spec, std::vector<int64_t>(static_cast<size_t>(spec.slots), run.most_keys), 1);
  const int64_t width = spec.places() * spec.dim;
  DeviceArray keys(kCpu, TensorSpec(DType::i64, {spec.key_capacity})), offsets(kCpu, TensorSpec(DType::i32, {spec.slots * samples + 1})),
      y(kCpu, TensorSpec(DType::f32, {samples, spec.places(), spec.dim})), dy(kCpu, y.spec);
  const auto fill = [&](const Bags& bags) {
    int32_t at = 0, *offset = offsets.tensor().data<int32_t>();
    for (const auto& slot : bags)
      for (int64_t b = begin; b < begin + samples; ++b) {
        *offset++ = at;
        if (b < end)
          for (const int64_t key : slot[static_cast<size_t>(b)]) keys.tensor().data<int64_t>()[at++] = key;
      }
    *offset = at;
  };
  const auto take_in = [&](std::vector<float>& all) {
    const std::lock_guard lock(mutex);
    all.resize(static_cast<size_t>(batch * width));
    std::copy_n(y.tensor().data<float>(), (end - begin) * width, all.begin() + begin * width);
  };
  if (comm.rank() == 0) outcome.y.resize(run.batches.size());
  comm.barrier();
  for (size_t t = 0; t < run.batches.size(); ++t) {
    fill(run.batches[t]);
    const auto step = static_cast<int64_t>(t);
    StepState state{.step = step, .updates = step, .first_sample = step * batch + begin, .valid_samples = static_cast<int32_t>(end - begin),
                    .global_samples = static_cast<int32_t>(batch), .learning_rate = 0.05f, .loss_scale = 1};
    Context ctx(runtime, runtime.compute_stream(), &state);
    embedding->ensure_room(step);
    embedding->prepare(ctx, 0, keys.tensor(), offsets.tensor());
    embedding->confirm_room(0);
    embedding->enforce_limit(0);
    embedding->forward(ctx, 0, y.tensor());
    take_in(outcome.y[t]);
    std::fill_n(dy.tensor().data<float>(), samples * width, 0.0f);
    std::copy_n(run.dys[t].begin() + begin * width, (end - begin) * width, dy.tensor().data<float>());
    embedding->backward_and_update(ctx, 0, dy.tensor());
  }
  fill(run.evaluated);
  StepState state;
  Context ctx(runtime, runtime.compute_stream(), &state);
  embedding->lookup(ctx, keys.tensor(), offsets.tensor(), y.tensor());
  take_in(outcome.evaluated);
  const auto counts = embedding->counts();
  const bool shared_row = embedding->uses_shared_row();
  embedding->export_rows(true, [&](const RowBlock& block) {  // on rank 0 alone
    for (size_t i = 0; i < block.keys.size(); ++i) {
      std::vector<float>& row = outcome.rows[{block.slots.empty() ? 0 : block.slots[i], block.keys[i]}];
      const auto append = [&](std::span<const float> part) {
        const size_t n = part.size() / block.keys.size();
        row.insert(row.end(), part.begin() + static_cast<int64_t>(i * n), part.begin() + static_cast<int64_t>((i + 1) * n));
      };
      append(block.vectors);
      for (const auto& states : block.states) append(states);
    }
  });
  if (comm.rank() != 0) return;
  outcome.counts = counts;
  outcome.shared_row = shared_row;
}

inline ShardedOutcome run_sharded(int ranks, const ShardedRun& run) {
  ShardedOutcome outcome;
  std::mutex mutex;
  if (ranks == 1) {
    SelfComm comm;
    train_sharded(run, comm, outcome, mutex);
    return outcome;
  }
  RankGroup group(ranks, nullptr, std::chrono::seconds(60));
  run_ranks(ranks, [&](int rank) {
    HostComm comm(group, rank);
    try {
      train_sharded(run, comm, outcome, mutex);
    } catch (const Error& error) {
      comm.abort(error);
      throw;
    }
  });
  return outcome;
}

/// As many tables as ranks, each alone with the keys that a rank would own; their vectors are added in the order of ranks.
inline ShardedOutcome run_owners_apart(int ranks, const ShardedRun& run) {
  ShardedOutcome all;
  for (int r = 0; r < ranks; ++r) {
    const Placement placement = run.placement(ranks);
    ShardedRun apart = run;
    for (Bags& bags : apart.batches) bags = owned_by(placement, r, bags);
    apart.evaluated = owned_by(placement, r, apart.evaluated);
    ShardedOutcome one = run_sharded(1, apart);
    all.rows.merge(one.rows);
    EXPECT_TRUE(one.rows.empty()) << "two ranks own a key";
    all.shared_row = all.shared_row || one.shared_row;
    for (const auto& [name, count] : one.counts) all.counts[name] += count;
    const auto add = [&](const std::vector<float>& from, std::vector<float>& to) {
      to.resize(from.size(), 0.0f);
      for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
    };
    all.y.resize(one.y.size());
    for (size_t t = 0; t < one.y.size(); ++t) add(one.y[t], all.y[t]);
    add(one.evaluated, all.evaluated);
  }
  return all;
}

inline void expect_equal(const ShardedOutcome& a, const ShardedOutcome& b) {
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.shared_row, b.shared_row);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.evaluated, b.evaluated);
}

}  // namespace hctr::test
