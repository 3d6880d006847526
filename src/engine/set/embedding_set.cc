// The steps of an EmbeddingSet.
#include "hctr/embedding.h"

#include <algorithm>
#include <exception>

#include "core/comm/host_comm.h"
#include "engine/set/set_batches.h"

namespace hctr {

namespace {

/// Checks options on all ranks before any rank waits for other ranks on its device.
void check_on_all_ranks(const EmbeddingOptions& options) {
  const auto check = [&] {
    check_options(options);
    device_of(options);
    places_of(options, options.rank.size());
  };
  if (options.rank.size() == 1) return check();
  HostComm host(options.rank.state()->group->ranks, options.rank.rank());
  run_on_all_ranks(host, check, kUsingEmbeddings);
  expect_alike_on_all_ranks(host, options);
}

}  // namespace

EmbeddingSet::EmbeddingSet(const EmbeddingOptions& options) {
  check_on_all_ranks(options);
  const CurrentDevice keep(options.gpu >= 0);
  auto allocator = allocator_of(options);
  const AllocatorScope memory(allocator);
  state_ = std::make_unique<State>(options, std::move(allocator));
}
EmbeddingSet::~EmbeddingSet() {
  if (!state_) return;
  const CurrentDevice keep(state_->options.gpu >= 0);
  // An exception ends only this rank. Abort the other ranks, because they wait for this rank, or would do so in a later
  // call.
  if (state_->on_several() && !state_->all_threw && std::uncaught_exceptions() > 0)
    state_->comms.device->abort(Error(Kind::comm,
                                      "the rank ended with an error, and its embedding set was "
                                      "destroyed"));
  if (state_->allocator && state_->options.gpu >= 0) try {
      state_->join_prefetched();
      state_->runtime.compute_stream().synchronize();  // wait for work that uses the memory
      // ignore the error, because the results of the work are discarded
    } catch (const Error&) {
    }
  state_.reset();
}
EmbeddingSet::EmbeddingSet(EmbeddingSet&&) noexcept = default;
EmbeddingSet& EmbeddingSet::operator=(EmbeddingSet&&) noexcept = default;

const EmbeddingOptions& EmbeddingSet::options() const { return state_->options; }

void EmbeddingSet::set_stream(void* stream) {
  const State::Call call(*state_);
  state_->runtime.adopt_stream(stream);
  if (state_->allocator) state_->allocator->stream = stream;
}

EmbeddingSet::Batch EmbeddingSet::forward(int64_t samples, std::span<const FeatureKeys> keys,
                                          std::span<const FeatureVectors<float>> outputs) {
  const State::Call call(*state_);
  std::vector<ops::FeatureBags> bags;
  state_->agreed([&] {
    std::vector<int64_t> counts;
    for (const FeatureKeys& of : keys) counts.push_back(of.count);
    if (keys.size() == state_->options.features.size())
      check_vectors(state_->options, state_->table_of, samples, counts, placed(outputs));
    bags = state_->checked_batch(samples, keys);
  });
  const Batch batch = state_->begin(samples, bags);
  try {
    state_->write_vectors(batch, outputs);
  } catch (...) {
    state_->abandon(batch);
    throw;
  }
  return batch;
}

EmbeddingSet::Batch EmbeddingSet::prefetch(int64_t samples, std::span<const FeatureKeys> keys) {
  const State::Call call(*state_);
  std::vector<ops::FeatureBags> bags;
  state_->agreed([&] { bags = state_->checked_batch(samples, keys); });
  return state_->begin(samples, bags, true);
}

int64_t EmbeddingSet::row_numbers(Batch batch, std::span<int32_t* const> to) {
  const State::Call call(*state_);
  const State::Under& one = state_->at(batch);
  state_->check_row_numbers("row_numbers()", one.counts, std::vector<const int32_t*>(to.begin(), to.end()));
  state_->join_prefetched();
  if (!one.empty)
    state_->each_table(
        [&](Context& ctx, SetTable& table) { table.read_rows(ctx, one.buffer, state_->of_table(table, to)); });
  return state_->removals;
}

EmbeddingSet::Batch EmbeddingSet::prefetch(int64_t samples, std::span<const FeatureKeys> keys,
                                           std::span<const int32_t* const> rows, int64_t removals) {
  const State::Call call(*state_);
  std::vector<int64_t> counts;
  for (const FeatureKeys& of : keys) counts.push_back(of.count);
  if (keys.size() == state_->options.features.size()) state_->check_row_numbers("prefetch()", counts, rows);
  if (removals != state_->removals)
    refuse_call("prefetch(): rows have been removed since row_numbers(), so the row numbers are not valid any more");
  const std::vector<ops::FeatureBags> bags = state_->checked_batch(samples, keys);
  return state_->begin(samples, bags, false, rows);
}

void EmbeddingSet::forward(Batch batch, std::span<const FeatureVectors<float>> outputs) {
  const State::Call call(*state_);
  state_->agreed([&] {
    State::Under& one = state_->at(batch);
    if (one.forwarded) refuse_call(cat("forward() of batch ", batch, " a second time"));
    if (&one != &state_->under_way.front())
      refuse_call(cat("forward() of batch ", batch, " before batch ", state_->under_way.front().number, " has ended"));
    check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(outputs));
  });
  state_->write_vectors(batch, outputs);
}

std::vector<int64_t> EmbeddingSet::vectors_of_batch(Batch batch) const {
  const State::Under& one = state_->at(batch);
  std::vector<int64_t> counts = one.counts;
  for (size_t f = 0; f < counts.size(); ++f)
    if (state_->options.features[f].pooling != Pooling::none) counts[f] = one.samples;
  return counts;
}

std::vector<int64_t> EmbeddingSet::keys_of_batch(Batch batch) const {
  const State::Under& one = state_->at(batch);
  std::vector<int64_t> keys(state_->options.tables.size(), 0);
  if (one.empty) return keys;
  if (state_->shared) return state_->shared->keys_received(one.buffer);
  for (size_t f = 0; f < one.counts.size(); ++f) keys[state_->table_of[f]] += one.counts[f];
  return keys;
}

void EmbeddingSet::reserve(int64_t samples, std::span<const int64_t> keys_of_features) {
  const State::Call call(*state_);
  if (state_->on_several())
    refuse_call(
        "reserve() needs a set on one rank: steps of several ranks wait for each other on the host, which a CUDA "
        "graph cannot record");
  if (keys_of_features.size() != state_->options.features.size() || samples < 1)
    refuse_call(
        cat("reserve() needs at least one sample and a number of keys for each feature, "
            "found ",
            samples, " samples and numbers of keys for ", keys_of_features.size(), " features"));
  state_->join_prefetched();
  // If recorded work may be replayed, use the buffer that the recording uses.
  state_->reserved_buffer = state_->recorded_buffer ? *state_->recorded_buffer : state_->free_buffer();
  state_->reserve_batch(*state_->reserved_buffer, samples, keys_of_features);
}

void EmbeddingSet::reserve_lookup(int64_t samples, std::span<const int64_t> keys_of_features) {
  const State::Call call(*state_);
  if (state_->on_several())
    refuse_call(
        "reserve_lookup() needs a set on one rank: several ranks wait for each other in a look-up, which a "
        "CUDA graph cannot record");
  if (keys_of_features.size() != state_->options.features.size() || samples < 1)
    refuse_call(
        cat("reserve_lookup() needs at least one sample and a number of keys for each feature, "
            "found ",
            samples, " samples and numbers of keys for ", keys_of_features.size(), " features"));
  state_->join_prefetched();
  state_->reserve_lookup(samples, keys_of_features);
}

int64_t EmbeddingSet::allocated_bytes() const { return state_->allocator ? state_->allocator->bytes : 0; }

void EmbeddingSet::weight_gradients(Batch batch, std::span<const FeatureVectors<const float>> gradients,
                                    std::span<float* const> dw) {
  const State::Call call(*state_);
  State::Under& one = state_->at(batch);
  check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
  if (dw.size() != state_->options.features.size())
    refuse_call(cat("weight gradients of ", dw.size(), " features, but the set has ", state_->options.features.size()));
  if (one.empty) return;
  if (state_->shared) {
    Context ctx = state_->context();
    if (one.samples > 0) state_->shared->weight_gradients(ctx, one.buffer, gradients, dw);
    return;
  }
  state_->each_table([&](Context& ctx, SetTable& table) {
    std::vector<float*> some;
    for (const TableFeature& feature : table.features()) some.push_back(dw[feature.number]);
    table.weight_gradients(ctx, one.buffer, state_->of_table(table, gradients), some);
  });
}

void EmbeddingSet::update(Batch batch, std::span<const FeatureVectors<const float>> gradients, const UpdateStep& with) {
  const State::Call call(*state_);
  state_->agreed([&] {
    const State::Under& one = state_->to_end(batch, "update()");
    check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
    for (const EmbeddingTableOptions& table : state_->options.tables)
      if (table.optimizer.rule == EmbeddingOptimizer::Rule::none)
        refuse_call(cat("update() of table '", table.name, "', which has no optimizer: use row_gradients()"));
  });
  const State::Under& one = state_->at(batch);
  Context ctx = state_->context();
  state_->set_scalars(ctx, with);
  if (state_->shared && !one.empty)
    state_->shared->update(ctx, one.buffer, gradients);
  else if (!one.empty)
    state_->each_table(
        [&](Context& of, SetTable& table) { table.update(of, one.buffer, state_->of_table(table, gradients)); });
  ops::count_step(ctx, reinterpret_cast<StepState*>(state_->step.data()));
  state_->under_way.pop_front();
}

std::vector<int64_t> EmbeddingSet::row_gradients(Batch batch, std::span<const FeatureVectors<const float>> gradients,
                                                 std::span<const RowGradients> to, bool ends) {
  const State::Call call(*state_);
  state_->agreed([&] {
    const State::Under& one = state_->to_end(batch, "row_gradients()");
    check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
    if (const size_t tables = state_->options.tables.size(); to.size() != tables)
      refuse_call(cat("row gradients of ", to.size(), " tables, but the set has ", tables));
    const std::vector<int64_t> keys = keys_of_batch(batch);
    for (size_t t = 0; t < to.size(); ++t)
      if ((!to[t].keys || !to[t].values) && (keys[t] > 0 || !state_->on_several()))
        refuse_call(cat("row gradients of table '", state_->options.tables[t].name,
                        "': keys or values is null, but the batch has keys"));
  });
  state_->join_prefetched();  // prepare() and row gradients use the same memory
  const State::Under& one = state_->at(batch);
  std::vector<int64_t> rows(to.size(), 0);
  if (state_->shared && !one.empty) {
    Context of = state_->context();
    rows = state_->shared->row_gradients(of, one.buffer, gradients, to, ends);
  } else if (!one.empty) {
    auto* const counts = reinterpret_cast<int32_t*>(state_->row_counts.data());
    size_t t = 0;
    state_->each_table([&](Context& ctx, SetTable& table) {
      table.list_row_gradients(ctx, one.buffer, state_->of_table(table, gradients), to[t]);
      table.report_rows_of_batch(ctx, one.buffer, counts + t++);
      if (ends) table.release(ctx, one.buffer);
    });
    state_->runtime.compute_stream().synchronize();
    std::copy_n(counts, rows.size(), rows.begin());
  }
  if (ends) state_->under_way.pop_front();
  return rows;
}

void EmbeddingSet::release(Batch batch) {
  const State::Call call(*state_);
  state_->leave_rows(state_->to_end(batch, "release()"));
  state_->under_way.pop_front();
}

void EmbeddingSet::lookup(int64_t samples, std::span<const FeatureKeys> keys,
                          std::span<const FeatureVectors<float>> outputs) {
  const State::Call call(*state_);
  std::vector<ops::FeatureBags> bags;
  std::vector<int64_t> counts;
  state_->agreed([&] {
    bags = checked_bags(state_->options, state_->table_of, samples, keys);
    for (const ops::FeatureBags& of : bags) counts.push_back(of.most);
    check_vectors(state_->options, state_->table_of, samples, counts, placed(outputs));
    if (state_->on_several() && state_->runtime.compute_stream().is_capturing())
      refuse_call("a look-up on several ranks cannot be recorded: the ranks wait for each other on the host");
  });
  if (state_->shared) {
    Context ctx = state_->context();
    return state_->shared->look_up(ctx, samples, bags, outputs);
  }
  if (samples == 0) return;
  state_->join_prefetched();
  if (!state_->runtime.compute_stream().is_capturing()) {
    for (const auto& table : state_->tables) report_keys_outside(table->table());
    state_->reserve_lookup(samples, counts);
  } else {
    state_->expect_lookup_reserved(samples, counts);
    for (const auto& table : state_->tables) table->keep_replaced_memory();
  }
  state_->each_table([&](Context& ctx, SetTable& table) {
    table.lookup(ctx, samples, state_->of_table(table, bags), state_->of_table(table, outputs));
  });
}

}  // namespace hctr
