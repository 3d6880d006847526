// An embedding on 2, 3 and 4 ranks against the same on one: vectors, rows after training, evaluation, and rows to and from files.
#include "embedding/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/host_comm.h"
#include "comm/self_comm.h"
#include "plain_table.h"
#include "support/run_ranks.h"

namespace hctr::test {
namespace {

constexpr int64_t kRange = 40;  // keys of a slot that are known
constexpr int64_t kBatch = 13;  // samples of all ranks: their shares differ, and some are padded

enum class Where { by_slot, by_key, mixed, cut };

struct Case {
  Where where = Where::by_slot;
  ops::Combiner combiner = ops::Combiner::sum;
  int64_t slots = 5;
  int most_keys = 3;
  ops::Optimizer optimizer{.kind = ops::Optimizer::Kind::sgd};
  UpdateType update = UpdateType::local;
  bool direct = false;  // keys are in known ranges, and all rows there from the start

  TableSpec spec(int64_t samples) const {
    TableSpec spec = small_spec(where == Where::cut ? 8 : 6, slots, samples);
    spec.identity_by_slot = where != Where::by_key;
    spec.combiner = combiner;
    if (combiner == ops::Combiner::none) spec.slot_places.assign(static_cast<size_t>(slots), most_keys);
    spec.optimizer = optimizer;
    spec.update = update;
    spec.key_capacity = spec.eval_key_capacity = samples * slots * most_keys;
    return spec;
  }
  Placement placement(int ranks) const {
    Placement all = Placement::without_plan(where == Where::by_key ? PlacementRule::distributed : PlacementRule::localized, true, slots, ranks);
    if (where == Where::mixed)
      for (size_t s = 0; s < all.owners.size(); ++s) all.owners[s] = s % 3 == 0 ? Placement::kSpread : s % 3 == 1 ? ranks - 1 : 0;
    if (where == Where::cut) {  // into two, of which each slot has its own mixture of owners
      all.pieces = 2;
      all.owners.clear();
      for (int s = 0; s < 2 * slots; ++s) all.owners.push_back(s % 5 == 4 ? Placement::kSpread : s % ranks);
    }
    return all;
  }
};

const std::string kPlaces[] = {"by slot", "by key", "mixed", "cut"};
std::string name_of(Where where) { return kPlaces[static_cast<size_t>(where)]; }
constexpr Where kEverywhere[] = {Where::by_slot, Where::by_key, Where::mixed, Where::cut};

/// What a few steps give: everything by global sample.
struct Outcome {
  std::vector<std::vector<float>> y;  // [step], rows of all samples
  std::vector<float> evaluated;
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
  std::vector<float> vectors;
  int64_t rows = 0;
};

Bags part_of(const Bags& bags, int64_t begin, int64_t end, int64_t samples) {
  Bags part;
  for (const auto& slot : bags) {
    part.emplace_back(slot.begin() + begin, slot.begin() + end);
    part.back().resize(static_cast<size_t>(samples));  // padding
  }
  return part;
}

/// One rank's way through the steps.
void train(const Case& one_case, Communicator& comm, int steps, Outcome& outcome, std::mutex& mutex, const Outcome* start = nullptr) {
  const int64_t samples = (kBatch + comm.size() - 1) / comm.size(), begin = kBatch * comm.rank() / comm.size(), end = kBatch * (comm.rank() + 1) / comm.size();
  TableSpec spec = one_case.spec(samples);
  const std::vector<int64_t> sizes(static_cast<size_t>(one_case.slots), kRange);
  if (one_case.direct) spec.direct = direct_keys(sizes, spec.identity_by_slot, comm.size() == 1 ? Placement{} : one_case.placement(comm.size()), comm.rank());
  Runtime runtime(kCpu, {.threads = 2, .seed = 7});
  const std::vector<int64_t> slot_keys(static_cast<size_t>(one_case.slots), one_case.most_keys);
  const auto embedding = make_embedding(runtime, comm, one_case.placement(comm.size()), spec, slot_keys, 1);
  if (start) embedding->import_rows({start->keys, start->slots, start->vectors, {}, {}});
  const int64_t width = spec.places() * spec.dim;
  std::mt19937_64 random(11);
  DeviceArray keys(kCpu, TensorSpec(DType::i64, {spec.key_capacity})), offsets(kCpu, TensorSpec(DType::i32, {one_case.slots * samples + 1})),
      y(kCpu, TensorSpec(DType::f32, {samples, spec.places(), spec.dim})), dy(kCpu, y.spec);
  const auto fill = [&](const Bags& bags) {
    const Bags mine = part_of(bags, begin, end, samples);
    int32_t at = 0, *offset = offsets.tensor().data<int32_t>();
    for (const auto& slot : mine)
      for (const auto& bag : slot) {
        *offset++ = at;
        for (const int64_t key : bag) keys.tensor().data<int64_t>()[at++] = key;
      }
    *offset = at;
  };
  const auto take_in = [&](std::vector<float>& all) {
    const std::lock_guard lock(mutex);
    all.resize(static_cast<size_t>(kBatch * width));
    std::copy_n(y.tensor().data<float>(), (end - begin) * width, all.begin() + begin * width);
  };
  if (comm.rank() == 0) outcome.y.resize(static_cast<size_t>(steps));
  comm.barrier();
  const auto bags_of = [&](int64_t vocabulary, bool training) {
    Bags bags = random_bags(spec, kBatch, one_case.most_keys, vocabulary, random);
    for (size_t s = 0; s < bags.size(); ++s)
      for (auto& bag : bags[s])
        for (int64_t& key : bag)
          if (one_case.direct) key += static_cast<int64_t>(s) * kRange;
          else if (training && key % 3 == 0) key = -key;
    return bags;
  };
  for (int t = 0; t < steps; ++t) {
    fill(bags_of(30, true));
    StepState state{.step = t, .updates = t, .learning_rate = 0.05f, .loss_scale = 4};
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
  fill(bags_of(kRange, false));  // some keys are unknown
  StepState state;
  Context ctx(runtime, runtime.compute_stream(), &state);
  embedding->lookup(ctx, keys.tensor(), offsets.tensor(), y.tensor());
  take_in(outcome.evaluated);
  const int64_t rows = embedding->rows();
  embedding->export_rows(false, [&](const RowBlock& block) {
    outcome.keys.insert(outcome.keys.end(), block.keys.begin(), block.keys.end());
    outcome.slots.insert(outcome.slots.end(), block.slots.begin(), block.slots.end());
    outcome.vectors.insert(outcome.vectors.end(), block.vectors.begin(), block.vectors.end());
  });
  if (comm.rank() == 0) outcome.rows = rows;
}

Outcome outcome_on(int ranks, const Case& one_case, int steps = 20, const Outcome* start = nullptr) {
  Outcome outcome;
  std::mutex mutex;
  if (ranks == 1) {
    SelfComm comm;
    train(one_case, comm, steps, outcome, mutex, start);
    return outcome;
  }
  RankGroup group(ranks, nullptr, std::chrono::seconds(60));
  run_ranks(ranks, [&](int rank) {
    HostComm comm(group, rank);
    try {
      train(one_case, comm, steps, outcome, mutex, start);
    } catch (const Error& error) {
      comm.abort(error);
      throw;
    }
  });
  return outcome;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

/// `exactly`: bit by bit.
void compare(const Case& one_case, bool exactly, const std::string& what) {
  const Outcome one = outcome_on(1, one_case);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(what + " on " + std::to_string(ranks) + " ranks");
    const Outcome many = outcome_on(ranks, one_case);
    EXPECT_EQ(many.keys, one.keys);
    EXPECT_EQ(many.slots, one.slots);
    EXPECT_EQ(many.rows, one.rows);
    EXPECT_EQ(many.rows, static_cast<int64_t>(one.keys.size()));
    if (exactly) {
      EXPECT_EQ(many.y, one.y);
      EXPECT_EQ(many.evaluated, one.evaluated);
      EXPECT_EQ(many.vectors, one.vectors);
      continue;
    }
    for (size_t t = 0; t < one.y.size(); ++t) EXPECT_LT(distance(many.y[t], one.y[t]), 1e-6) << "step " << t;
    EXPECT_LT(distance(many.evaluated, one.evaluated), 1e-6);
    EXPECT_LT(distance(many.vectors, one.vectors), 1e-6);
  }
}

const ops::Combiner kCombiners[] = {ops::Combiner::sum, ops::Combiner::mean, ops::Combiner::sqrtn, ops::Combiner::none};
const std::string kNames[] = {"sum", "mean", "sqrtn", "none"};

TEST(ShardedEmbedding, LocalizedPoolsAsOneRankDoesBitByBit) {
  for (size_t c = 0; c < 3; ++c) compare({.combiner = kCombiners[c]}, true, kNames[c]);
}

TEST(ShardedEmbedding, OneHotIsAsOnOneRankBitByBit) {
  for (const Where where : kEverywhere) compare({.where = where, .most_keys = 1}, true, "one-hot, " + name_of(where));
}

TEST(ShardedEmbedding, SumsPartsOfBagsInTheOrderOfRanks) {
  for (const Where where : {Where::by_key, Where::mixed, Where::cut})
    for (size_t c = 0; c < 3; ++c) compare({.where = where, .combiner = kCombiners[c]}, false, kNames[c] + ", " + name_of(where));
}

TEST(ShardedEmbedding, SequencesAreNotPooled) {
  for (const Where where : kEverywhere) compare({.where = where, .combiner = ops::Combiner::none}, false, name_of(where));
}

TEST(ShardedEmbedding, OptimizersKeepTheirStatesWithTheRows) {
  for (const Where where : kEverywhere)
    for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
      Case one_case{.where = where, .update = update};
      one_case.optimizer = {.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
      compare(one_case, where == Where::by_slot, "adam, " + name_of(where));
    }
  Case row_wise{.where = Where::mixed};
  row_wise.optimizer = {.kind = ops::Optimizer::Kind::adagrad, .epsilon = 1e-2f};
  row_wise.optimizer.row_wise = true;
  compare(row_wise, false, "row-wise adagrad");
}

TEST(ShardedEmbedding, RowsOfKnownKeysAreWhereThePlanHasThem) {
  for (const Where where : kEverywhere) {
    const Case one_case{.where = where, .most_keys = 1, .direct = true};
    compare(one_case, true, name_of(where));
    EXPECT_EQ(outcome_on(3, one_case, 1).rows, one_case.slots * kRange);
  }
}

TEST(ShardedEmbedding, RanksWithoutASlotOfTheirOwnServeTheOthers) {
  for (const Where where : kEverywhere) compare({.where = where, .slots = 1}, where == Where::by_slot, "one slot, " + name_of(where));
}

TEST(ShardedEmbedding, RowsOfOneRankAreTakenUpByMany) {
  for (const Where where : kEverywhere) {
    const Case one_case{.where = where, .most_keys = 1};
    const Outcome before = outcome_on(1, one_case, 3), one = outcome_on(1, one_case, 3, &before);
    for (const int ranks : {2, 3}) {
      const Outcome many = outcome_on(ranks, one_case, 3, &before);
      EXPECT_EQ(many.keys, one.keys);
      EXPECT_EQ(many.vectors, one.vectors) << ranks << " ranks";
    }
  }
}

TEST(ShardedEmbedding, RowsUnderOnePlanAreTakenUpUnderAnother) {
  const Case by_slot{.where = Where::by_slot, .most_keys = 1}, mixed{.where = Where::mixed, .most_keys = 1};
  const Outcome before = outcome_on(3, mixed, 3), one = outcome_on(1, by_slot, 3, &before);
  EXPECT_EQ(before.vectors, outcome_on(1, by_slot, 3).vectors);
  for (const Case& after : {by_slot, mixed}) EXPECT_EQ(outcome_on(4, after, 3, &before).vectors, one.vectors);
}

}  // namespace
}  // namespace hctr::test
