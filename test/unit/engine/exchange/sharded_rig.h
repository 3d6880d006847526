// Trains an embedding on given batches, on one rank or on several ranks that are threads, and collects all results by
// global sample index.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <tuple>

#include "core/comm/host_comm.h"
#include "core/comm/peer_exchange.h"
#include "core/comm/self_comm.h"
#include "engine/exchange/hybrid_embedding.h"
#include "engine/exchange/mixed_embedding.h"
#include "engine/exchange/replicated_embedding.h"
#include "engine/table/gather_rows.h"
#include "ops/common/rounding.h"
#include "support/distance.h"
#include "support/run_ranks.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {

/// How ranks exchange vectors and gradients. straight: ranks write directly to the final memory, if possible. to_parts:
/// ranks write to a buffer with one part per sender, and the parts are combined afterwards. sent: by all_to_all.
/// to_hosts: packed, as between hosts with two ranks each. to_ranks: packed, with every rank as a host.
/// to_uneven_hosts: packed, with ranks 1 to 3 as one host and every other rank as a separate host.
enum class VectorsGo { straight, to_parts, sent, to_hosts, to_ranks, to_uneven_hosts };

/// Modifies the data that `rank` received in all_to_all call number `call`.
using Damage = std::function<void(int rank, int call, Tensor received)>;

/// The communicator of ranks that are threads. It can also exchange like ranks of different hosts. Ranks may share a
/// GPU; then all_to_all, the only exchange between hosts, copies through host memory.
class ThreadComm : public HostComm {
 public:
  ThreadComm(RankGroup& group, int rank, VectorsGo go, Damage damage = {})
      : HostComm(group, rank), go_(go), damage_(std::move(damage)) {}
  void all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) override {
    if (!ctx.device().is_cuda()) {
      HostComm::all_to_all(ctx, in, send, out, receive);
      if (damage_) damage_(rank(), ++calls_, out);
      return;
    }
    std::vector<std::byte> from(in.spec().bytes()), to(out.spec().bytes());
    copy_bytes(ctx.stream(), from.data(), in.bytes(), from.size());
    copy_bytes(ctx.stream(), to.data(), out.bytes(), to.size());
    ctx.stream().synchronize();
    const Tensor received(to.data(), out.spec(), kCpu);
    HostComm::all_to_all(ctx, Tensor(from.data(), in.spec(), kCpu), send, received, receive);
    if (damage_) damage_(rank(), ++calls_, received);
    copy_bytes(ctx.stream(), out.bytes(), to.data(), to.size());
    ctx.stream().synchronize();
  }
  int host_of(int rank) const override {
    if (go_ == VectorsGo::to_uneven_hosts) return rank == 0 ? 0 : std::max(1, rank - 2);
    return go_ == VectorsGo::to_hosts ? rank / 2 : go_ == VectorsGo::to_ranks ? rank : 0;
  }
  std::unique_ptr<PeerExchange> make_peer_exchange(const PeerExchangeSpec& spec) override {
    auto exchange = go_ == VectorsGo::sent ? make_all_to_all_exchange(*this, spec) : HostComm::make_peer_exchange(spec);
    if (exchange && exchange->direct()) written_.push_back(spec.receive_buffer.bytes());
    return exchange;
  }
  /// Whether other ranks write directly to `memory`.
  bool is_written(const Tensor& memory) const {
    return std::find(written_.begin(), written_.end(), memory.bytes()) != written_.end();
  }

 private:
  VectorsGo go_;
  Damage damage_;
  int calls_ = 0;
  std::vector<const std::byte*> written_;
};

/// The input of a training run on any number of ranks. `spec` describes the table on a single rank: spec.samples is the
/// number of samples of all ranks.
struct ShardedRun {
  PlacementRule kind = PlacementRule::localized;
  TableSpec spec;
  int most_keys = 3;                  ///< maximum number of keys per bag
  std::vector<int64_t> slot_sizes{};  ///< sizes of slots with direct keys
  std::vector<Bags> batches{};
  /// Gradients [step] of [samples, columns, dim]. If empty, gradients are computed from the vectors, so that a
  /// difference between runs persists in later steps.
  std::vector<std::vector<float>> dys{};
  Bags evaluated{};
  float loss_scale = 1;
  int64_t skipped = -1;  ///< the step whose update is skipped
  VectorsGo go = VectorsGo::straight;
  std::function<Placement(int64_t ranks)> planned{};  ///< returns a plan's placement; empty: the default placement
  Device device = kCpu;                               ///< the device of all ranks
  Damage damage{};                                    ///< modifies messages between ranks

  Placement placement(int64_t ranks) const {
    const bool everywhere = spec.replication.of == Replication::Of::all;
    return planned ? planned(ranks)
                   : Placement::without_plan(everywhere ? PlacementRule::data_parallel : kind, spec.identity_by_slot,
                                             spec.slots, ranks);
  }
};

struct ShardedOutcome {
  std::vector<std::vector<float>> y{};  ///< [step]
  std::vector<float> evaluated{};
  RowCopies rows{};       ///< including states
  int64_t row_count = 0;  ///< row count reported by the embedding
  std::map<std::string, int64_t> counts{};
  bool shared_row = false;
  bool straight = false;              ///< whether owners wrote vectors directly to y
  bool by_engines = false;            ///< whether copy engines of a GPU would send the gradients
  bool overflowed = false;            ///< whether a rank found a gradient beyond the f16 range
  BytesBetweenHosts between_hosts{};  ///< sum over all ranks
  std::vector<RowCopies> replicas{};  ///< replicated rows of each rank after the last step
};

inline std::vector<float> random_gradients(const TableSpec& spec, std::mt19937_64& random) {
  return random_floats(spec.samples * spec.columns() * spec.dim, random);
}

/// Returns the keys owned by `rank`. Bags keep their positions, and may become empty.
inline Bags owned_by(const Placement& placement, int rank, Bags bags) {
  for (size_t s = 0; s < bags.size(); ++s)
    for (auto& bag : bags[s])
      std::erase_if(bag, [&](int64_t key) { return placement.owner(static_cast<int64_t>(s), key) != rank; });
  return bags;
}

/// Trains one rank. `start`: rows to import before training.
inline void train_sharded(const ShardedRun& run, Communicator& comm, const RowCopies* start, ShardedOutcome& outcome,
                          std::mutex& mutex) {
  const int64_t batch = run.spec.samples, ranks = comm.size(), samples = (batch + ranks - 1) / ranks;
  const int64_t begin = batch * comm.rank() / ranks, end = batch * (comm.rank() + 1) / ranks;
  const Placement placement = run.placement(ranks);
  TableSpec spec = run.spec;
  spec.rank = comm.rank();
  spec.batch = batch;
  spec.slot_keys.assign(static_cast<size_t>(spec.slots), run.most_keys);
  spec.samples = spec.eval_samples = samples;
  spec.key_capacity = spec.eval_key_capacity = samples * spec.slots * run.most_keys;
  if (!run.slot_sizes.empty()) spec.direct = direct_keys(run.slot_sizes, spec.identity_by_slot, placement, comm.rank());
  Runtime runtime(run.device, {.threads = 2, .seed = 7});
  const StreamRef stream = runtime.compute_stream();
  const int64_t width = spec.columns() * spec.dim;
  DeviceArray keys(run.device, TensorSpec(DType::i64, {spec.key_capacity})),
      offsets(run.device, TensorSpec(DType::i32, {spec.slots * samples + 1})),
      y(run.device, TensorSpec(DType::f32, {samples, spec.columns(), spec.dim})), dy(run.device, y.spec);
  std::vector<int64_t> host_keys(static_cast<size_t>(spec.key_capacity), 0);
  std::vector<int32_t> host_offsets(static_cast<size_t>(spec.slots * samples + 1));
  std::vector<float> vectors, gradients(static_cast<size_t>(samples * width));
  const EmbeddingOutputs outputs =
      run.go == VectorsGo::straight ? EmbeddingOutputs{y.tensor(), y.tensor()} : EmbeddingOutputs{};
  const auto embedding = make_embedding(runtime, comm, placement, spec, 1, outputs);
  if (start) embedding->import_rows(start->block());
  const auto fill = [&](const Bags& bags) {
    int32_t at = 0, *offset = host_offsets.data();
    for (const auto& slot : bags)
      for (int64_t b = begin; b < begin + samples; ++b) {
        *offset++ = at;
        if (b < end)  // later samples are padding
          for (const int64_t key : slot[static_cast<size_t>(b)]) host_keys[static_cast<size_t>(at++)] = key;
      }
    *offset = at;
    from_host(stream, keys.tensor(), host_keys);
    from_host(stream, offsets.tensor(), host_offsets);
  };
  const auto take_in = [&](std::vector<float>& all) {
    vectors = to_host<float>(stream, y.tensor());
    const std::lock_guard lock(mutex);
    all.resize(static_cast<size_t>(batch * width));
    std::copy_n(vectors.begin(), (end - begin) * width, all.begin() + begin * width);
  };
  const auto gradient = [&](size_t t, int64_t i) {
    if (!run.dys.empty()) return run.dys[t][static_cast<size_t>(begin * width + i)];
    return std::sin(static_cast<float>(i + begin * width + 1000 * static_cast<int64_t>(t))) +
           vectors[static_cast<size_t>(i)];
  };
  const DeviceArray overflow(run.device, TensorSpec(DType::f32, {1}));
  const ops::OverflowSearch search{ops::kLargest<Half>, overflow.tensor().data<float>()};
  const Buffer device_state(run.device, sizeof(StepState));
  const auto at_step = [&](const StepState& state) {
    copy_bytes(stream, device_state.data(), &state, sizeof state);
    stream.synchronize();
    return Context(runtime, stream, reinterpret_cast<StepState*>(device_state.data()));
  };
  if (comm.rank() == 0) {
    outcome.y.resize(run.batches.size());
    outcome.replicas.resize(static_cast<size_t>(ranks));
  }
  comm.barrier();
  for (size_t t = 0; t < run.batches.size(); ++t) {
    fill(run.batches[t]);
    const auto step = static_cast<int64_t>(t);
    StepState state{.step = step,
                    .updates = step,
                    .first_sample = step * batch + begin,
                    .valid_samples = static_cast<int32_t>(end - begin),
                    .global_samples = static_cast<int32_t>(batch),
                    .learning_rate = 0.05f,
                    .loss_scale = run.loss_scale,
                    .skip = step == run.skipped};
    Context ctx = at_step(state);
    embedding->reserve_rows(step);
    embedding->send_keys(ctx, nullptr, 0, keys.tensor(), offsets.tensor());
    embedding->gather_keys(ctx, nullptr, 0);
    embedding->receive_keys(ctx, nullptr, 0);
    embedding->bring_rows(ctx, 0, keys.tensor(), offsets.tensor());
    embedding->prepare(ctx, 0, keys.tensor(), offsets.tensor());
    embedding->confirm_capacity(0);
    embedding->enforce_limit(0);
    // NaN reveals elements that are not written
    from_host(stream, y.tensor(), std::vector<float>(gradients.size(), NAN));
    embedding->send_vectors(ctx, 0);
    embedding->fill_local_vectors(ctx, 0, y.tensor());
    embedding->forward(ctx, 0, y.tensor());
    take_in(outcome.y[t]);
    for (int64_t i = (end - begin) * width; i < samples * width; ++i)
      EXPECT_EQ(vectors[static_cast<size_t>(i)], 0) << "padding";
    for (int64_t i = 0; i < samples * width; ++i)
      gradients[static_cast<size_t>(i)] = i < (end - begin) * width ? gradient(t, i) : 0;
    from_host(stream, dy.tensor(), gradients);
    embedding->sum_gradients(ctx, 0, dy.tensor());
    embedding->expect_gradients(ctx);
    embedding->send_gradients(ctx, 0, dy.tensor(), search);
    embedding->receive_gradients(ctx, 0, dy.tensor());
    embedding->update(ctx, 0, dy.tensor());
  }
  fill(run.evaluated);
  Context ctx = at_step({});
  embedding->lookup(ctx, keys.tensor(), offsets.tensor(), y.tensor());
  take_in(outcome.evaluated);
  const auto into = [&](RowCopies& rows) {
    return [&](const RowBlock& block) {
      for (size_t i = 0; i < block.keys.size(); ++i) rows.add(block, i, spec);
    };
  };
  RowCopies replica;
  if (auto* hybrid = dynamic_cast<HybridEmbedding*>(embedding.get())) hybrid->export_replica(into(replica));
  if (auto* mixed = dynamic_cast<MixedEmbedding*>(embedding.get())) mixed->export_replica(into(replica));
  if (auto* whole = dynamic_cast<ReplicatedEmbedding*>(embedding.get()))
    whole->table().export_rows(true, into(replica));
  const auto* threads = dynamic_cast<const ThreadComm*>(&comm);
  const bool straight = threads && threads->is_written(y.tensor());
  const int64_t rows = embedding->rows();
  const auto counts = embedding->counts();
  const bool shared_row = embedding->uses_shared_row();
  embedding->export_rows(true, into(outcome.rows));  // collects all rows on rank 0
  const bool overflowed = to_host<float>(stream, overflow.tensor())[0] > 0;
  const std::lock_guard lock(mutex);
  outcome.overflowed = outcome.overflowed || overflowed;
  outcome.between_hosts += embedding->bytes_between_hosts();
  outcome.replicas[static_cast<size_t>(comm.rank())] = std::move(replica);
  if (comm.rank() != 0) return;
  outcome.row_count = rows;
  outcome.counts = counts;
  outcome.shared_row = shared_row;
  outcome.straight = straight;
  outcome.by_engines = embedding->sends_gradients_by_engines();
}

inline ShardedOutcome run_sharded(int ranks, const ShardedRun& run, const RowCopies* start = nullptr) {
  ShardedOutcome outcome;
  std::mutex mutex;
  if (ranks == 1) {
    SelfComm comm;
    train_sharded(run, comm, start, outcome, mutex);
    return outcome;
  }
  RankGroup group(ranks, nullptr, std::chrono::seconds(60));
  try {
    run_ranks(ranks, [&](int rank) {
      ThreadComm comm(group, rank, run.go, run.damage);
      try {
        train_sharded(run, comm, start, outcome, mutex);
      } catch (const Error& error) {
        comm.abort(error);
        throw;
      }
    });
  } catch (const Error&) {  // may be a follow-up error of another rank, so throw the original error
    throw Error(group.failure()->error);
  }
  return outcome;
}

/// Trains one table per rank, on the keys that this rank would own. Adds the vectors in rank order.
inline ShardedOutcome run_owners_apart(int ranks, const ShardedRun& run) {
  ShardedOutcome all;
  std::vector<RowCopies> rows;
  std::vector<std::tuple<int32_t, int64_t, size_t, size_t>> order;  // slot, key, rank, index of the row on that rank
  for (int r = 0; r < ranks; ++r) {
    const Placement placement = run.placement(ranks);
    ShardedRun apart = run;
    for (Bags& bags : apart.batches) bags = owned_by(placement, r, bags);
    apart.evaluated = owned_by(placement, r, apart.evaluated);
    ShardedOutcome one = run_sharded(1, apart);
    const RowCopies& mine = rows.emplace_back(std::move(one.rows));
    for (size_t i = 0; i < mine.keys.size(); ++i)
      order.emplace_back(mine.slots.empty() ? 0 : mine.slots[i], mine.keys[i], rows.size() - 1, i);
    all.row_count += one.row_count;
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
  std::sort(order.begin(), order.end());
  for (const auto& [slot, key, rank, i] : order) all.rows.add(rows[rank].block(), i, run.spec);
  return all;
}

inline void expect_equal_rows(const RowCopies& a, const RowCopies& b, const std::string& what = "") {
  EXPECT_EQ(a.keys, b.keys) << what;
  EXPECT_EQ(a.slots, b.slots) << what;
  EXPECT_EQ(a.last_steps, b.last_steps) << what;
  EXPECT_EQ(a.vectors, b.vectors) << what;
  for (size_t s = 0; s < std::size(a.states); ++s) EXPECT_EQ(a.states[s], b.states[s]) << what << ", state " << s;
}

/// Expects equal outcomes, bit by bit.
inline void expect_equal(const ShardedOutcome& a, const ShardedOutcome& b) {
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.shared_row, b.shared_row);
  EXPECT_EQ(a.row_count, b.row_count);
  expect_equal_rows(a.rows, b.rows);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.evaluated, b.evaluated);
}

/// Expects equal counts, an equal set of rows, and values within the tolerance.
inline void expect_near(const ShardedOutcome& one, const ShardedOutcome& many, double tolerance) {
  EXPECT_EQ(many.counts, one.counts);
  EXPECT_EQ(many.row_count, one.row_count);
  EXPECT_EQ(many.rows.keys, one.rows.keys);
  EXPECT_EQ(many.rows.slots, one.rows.slots);
  EXPECT_EQ(many.rows.last_steps, one.rows.last_steps);
  for (size_t t = 0; t < one.y.size(); ++t) EXPECT_LT(distance_of(one.y[t], many.y[t]), tolerance) << "step " << t;
  EXPECT_LT(distance_of(one.evaluated, many.evaluated), tolerance);
  EXPECT_LT(distance_of(one.rows.vectors, many.rows.vectors), tolerance);
  for (size_t s = 0; s < std::size(one.rows.states); ++s)
    EXPECT_LT(distance_of(one.rows.states[s], many.rows.states[s]), tolerance) << "state " << s;
}

}  // namespace hctr::test
