// An embedding with rows that every rank has, trained on one rank or on several as threads: everything it gives, by global sample.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/host_comm.h"
#include "comm/self_comm.h"
#include "embedding/gather_rows.h"
#include "embedding/hybrid_embedding.h"
#include "embedding/replicated_embedding.h"
#include "plain_table.h"
#include "support/run_ranks.h"

namespace hctr::test {

struct ReplicatedCase {
  PlacementRule kind = PlacementRule::localized;
  ops::Combiner combiner = ops::Combiner::sum;
  int64_t slots = 4;
  int most_keys = 3;
  ops::Optimizer optimizer{.kind = ops::Optimizer::Kind::sgd};
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;
  Replication replication{};
  bool direct = false;

  static constexpr int64_t kBatch = 13;      // samples of all ranks: their shares differ, and some are padded
  static constexpr int64_t kVocabulary = 40; // of a slot, or of all

  Placement placement(int64_t ranks) const {
    return Placement::without_plan(replication.of == Replication::Of::all ? PlacementRule::data_parallel : kind, by_slot(), slots, ranks);
  }
  bool by_slot() const { return kind == PlacementRule::localized; }
  TableSpec spec(int64_t samples, const Communicator& comm) const {
    TableSpec spec = small_spec(6, slots, samples);
    spec.rank = comm.rank();
    spec.identity_by_slot = by_slot();
    spec.combiner = combiner;
    if (combiner == ops::Combiner::none) spec.slot_places.assign(static_cast<size_t>(slots), most_keys);
    spec.optimizer = optimizer;
    spec.update = update;
    spec.storage = storage;
    spec.key_capacity = spec.eval_key_capacity = samples * slots * most_keys;
    spec.replication = replication;
    const bool whole = replication.of == Replication::Of::all;
    if (direct || whole)
      spec.direct = direct_keys(std::vector<int64_t>(static_cast<size_t>(slots), kVocabulary), by_slot(), placement(comm.size()),
                                whole ? 0 : comm.rank());
    return spec;
  }
};

struct ReplicatedOutcome {
  std::vector<std::vector<float>> y;  // [step], rows of all samples
  std::vector<float> evaluated;
  RowCopies rows;
  int64_t row_count = 0;
  std::vector<RowCopies> replicas;  // of each rank, at the end
};

/// One rank's way through the steps. `start`: rows to begin with.
inline void train_replicated(const ReplicatedCase& one_case, Communicator& comm, int steps, ReplicatedOutcome& outcome, std::mutex& mutex,
                             const ReplicatedOutcome* start) {
  constexpr int64_t kBatch = ReplicatedCase::kBatch;
  const int64_t samples = (kBatch + comm.size() - 1) / comm.size(), begin = kBatch * comm.rank() / comm.size(), end = kBatch * (comm.rank() + 1) / comm.size();
  const TableSpec spec = one_case.spec(samples, comm);
  Runtime runtime(kCpu, {.threads = 2, .seed = 7});
  const auto embedding = make_embedding(runtime, comm, one_case.placement(comm.size()), spec, std::vector<int64_t>(static_cast<size_t>(one_case.slots), one_case.most_keys), 1);
  if (start) embedding->import_rows(start->rows.block());
  const int64_t width = spec.places() * spec.dim;
  std::mt19937_64 random(11);
  DeviceArray keys(kCpu, TensorSpec(DType::i64, {spec.key_capacity})), offsets(kCpu, TensorSpec(DType::i32, {one_case.slots * samples + 1})),
      y(kCpu, TensorSpec(DType::f32, {samples, spec.places(), spec.dim})), dy(kCpu, y.spec);
  const auto fill = [&](int64_t vocabulary) {
    const Bags bags = random_bags(spec, kBatch, one_case.most_keys, vocabulary, random);
    int32_t at = 0, *offset = offsets.tensor().data<int32_t>();
    for (size_t s = 0; s < bags.size(); ++s)
      for (int64_t b = begin; b < begin + samples; ++b) {
        *offset++ = at;
        if (b >= end) continue;  // padding
        const int64_t first = !spec.direct.empty() && one_case.by_slot() ? static_cast<int64_t>(s) * ReplicatedCase::kVocabulary : 0;
        for (const int64_t key : bags[s][static_cast<size_t>(b)]) keys.tensor().data<int64_t>()[at++] = first + key;
      }
    *offset = at;
  };
  const auto take_in = [&](std::vector<float>& all) {
    const std::lock_guard lock(mutex);
    all.resize(static_cast<size_t>(kBatch * width));
    std::copy_n(y.tensor().data<float>(), (end - begin) * width, all.begin() + begin * width);
  };
  if (comm.rank() == 0) {
    outcome.y.resize(static_cast<size_t>(steps));
    outcome.replicas.resize(static_cast<size_t>(comm.size()));
  }
  comm.barrier();
  for (int t = 0; t < steps; ++t) {
    fill(ReplicatedCase::kVocabulary - 5);
    StepState state{.step = t, .updates = t, .learning_rate = 0.05f, .loss_scale = 4, .skip = t == 3};
    Context ctx(runtime, runtime.compute_stream(), &state);
    embedding->ensure_room(t);
    embedding->prepare(ctx, 0, keys.tensor(), offsets.tensor());
    embedding->confirm_room(0);
    embedding->forward(ctx, 0, y.tensor());
    take_in(outcome.y[static_cast<size_t>(t)]);
    for (int64_t i = 0; i < samples * width; ++i) {
      const float near = std::sin(static_cast<float>(i + begin * width + 1000 * t)) + y.tensor().data<float>()[i];
      dy.tensor().data<float>()[i] = i < (end - begin) * width ? near : 0;
    }
    embedding->backward_and_update(ctx, 0, dy.tensor());
  }
  fill(ReplicatedCase::kVocabulary);  // some keys are unknown
  StepState state;
  Context ctx(runtime, runtime.compute_stream(), &state);
  embedding->lookup(ctx, keys.tensor(), offsets.tensor(), y.tensor());
  take_in(outcome.evaluated);
  const auto into = [&](RowCopies& rows) {
    return [&](const RowBlock& block) {
      for (size_t i = 0; i < block.keys.size(); ++i) rows.add(block, i, spec);
    };
  };
  RowCopies replica;
  if (auto* hybrid = dynamic_cast<HybridEmbedding*>(embedding.get())) hybrid->export_replica(into(replica));
  if (auto* whole = dynamic_cast<ReplicatedEmbedding*>(embedding.get())) whole->table().export_rows(true, into(replica));
  const int64_t rows = embedding->rows();
  embedding->export_rows(true, into(outcome.rows));
  const std::lock_guard lock(mutex);
  outcome.replicas[static_cast<size_t>(comm.rank())] = std::move(replica);
  if (comm.rank() == 0) outcome.row_count = rows;
}

inline ReplicatedOutcome outcome_of(int ranks, const ReplicatedCase& one_case, int steps = 20, const ReplicatedOutcome* start = nullptr) {
  ReplicatedOutcome outcome;
  std::mutex mutex;
  if (ranks == 1) {
    SelfComm comm;
    train_replicated(one_case, comm, steps, outcome, mutex, start);
    return outcome;
  }
  RankGroup group(ranks, nullptr, std::chrono::seconds(60));
  run_ranks(ranks, [&](int rank) {
    HostComm comm(group, rank);
    try {
      train_replicated(one_case, comm, steps, outcome, mutex, start);
    } catch (const Error& error) {
      comm.abort(error);
      throw;
    }
  });
  return outcome;
}

inline double distance_of(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

inline void expect_equal_bits(const RowCopies& a, const RowCopies& b, const std::string& what) {
  EXPECT_EQ(a.keys, b.keys) << what;
  EXPECT_EQ(a.slots, b.slots) << what;
  EXPECT_EQ(a.last_steps, b.last_steps) << what;
  EXPECT_EQ(a.vectors, b.vectors) << what;
  for (size_t s = 0; s < std::size(a.states); ++s) EXPECT_EQ(a.states[s], b.states[s]) << what << ", state " << s;
}

/// Vectors, rows and states as on one rank; all ranks' replicas equal bit by bit.
inline void expect_as_on_one_rank(const ReplicatedOutcome& one, const ReplicatedOutcome& many, double tolerance) {
  EXPECT_EQ(many.rows.keys, one.rows.keys);
  EXPECT_EQ(many.rows.slots, one.rows.slots);
  EXPECT_EQ(many.rows.last_steps, one.rows.last_steps);
  EXPECT_EQ(many.row_count, one.row_count);
  EXPECT_EQ(many.row_count, static_cast<int64_t>(one.rows.keys.size()));
  for (size_t t = 0; t < one.y.size(); ++t) EXPECT_LT(distance_of(one.y[t], many.y[t]), tolerance) << "step " << t;
  EXPECT_LT(distance_of(one.evaluated, many.evaluated), tolerance);
  EXPECT_LT(distance_of(one.rows.vectors, many.rows.vectors), tolerance);
  for (size_t s = 0; s < std::size(one.rows.states); ++s) EXPECT_LT(distance_of(one.rows.states[s], many.rows.states[s]), tolerance) << "state " << s;
  EXPECT_FALSE(many.replicas[0].empty());
  for (size_t r = 1; r < many.replicas.size(); ++r) expect_equal_bits(many.replicas[0], many.replicas[r], "rank " + std::to_string(r));
}

}  // namespace hctr::test
