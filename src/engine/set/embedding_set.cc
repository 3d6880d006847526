// The calls of a step.
#include "hctr/embedding.h"

#include "engine/set/set_batches.h"
#include "ops/optimizer/step_scalars.h"

namespace hctr {

EmbeddingSet::EmbeddingSet(const EmbeddingOptions& options) {
  check_options(options);
  const CurrentDevice keep(options.gpu >= 0);
  state_ = std::make_unique<State>(options);
}
EmbeddingSet::~EmbeddingSet() {
  if (!state_) return;
  const CurrentDevice keep(state_->options.gpu >= 0);
  state_.reset();
}
EmbeddingSet::EmbeddingSet(EmbeddingSet&&) noexcept = default;
EmbeddingSet& EmbeddingSet::operator=(EmbeddingSet&&) noexcept = default;

const EmbeddingOptions& EmbeddingSet::options() const { return state_->options; }

void EmbeddingSet::set_stream(void* stream) {
  const CurrentDevice keep(state_->runtime.device());
  state_->runtime.adopt_stream(stream);
}

EmbeddingSet::Batch EmbeddingSet::forward(int64_t samples, std::span<const FeatureKeys> keys,
                                          std::span<const FeatureVectors<float>> outputs) {
  const CurrentDevice keep(state_->runtime.device());
  std::vector<int64_t> counts;
  for (const FeatureKeys& of : keys) counts.push_back(of.count);
  if (keys.size() == state_->options.features.size())
    check_vectors(state_->options, state_->table_of, samples, counts, placed(outputs));
  const Batch batch = state_->begin(samples, keys);
  try {
    state_->write_vectors(batch, outputs);
  } catch (...) {
    state_->abandon(batch);
    throw;
  }
  return batch;
}

EmbeddingSet::Batch EmbeddingSet::prefetch(int64_t samples, std::span<const FeatureKeys> keys) {
  const CurrentDevice keep(state_->runtime.device());
  return state_->begin(samples, keys);
}

void EmbeddingSet::forward(Batch batch, std::span<const FeatureVectors<float>> outputs) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->at(batch);
  if (one.forwarded) refuse_call(cat("forward() of batch ", batch, " a second time"));
  if (&one != &state_->under_way.front())
    refuse_call(cat("forward() of batch ", batch, " before batch ", state_->under_way.front().number, " has ended"));
  state_->write_vectors(batch, outputs);
}

std::vector<int64_t> EmbeddingSet::vectors_of_batch(Batch batch) const {
  const State::Under& one = state_->at(batch);
  std::vector<int64_t> counts = one.counts;
  for (size_t f = 0; f < counts.size(); ++f)
    if (state_->options.features[f].pooling != Pooling::none) counts[f] = one.samples;
  return counts;
}

void EmbeddingSet::reserve(int64_t samples, std::span<const int64_t> keys_of_features) {
  const CurrentDevice keep(state_->runtime.device());
  if (keys_of_features.size() != state_->options.features.size() || samples < 1)
    refuse_call(cat("reserve() of ", samples, " samples and keys of ", keys_of_features.size(), " features"));
  // A replay takes the buffer of its recording.
  state_->reserved_buffer = state_->recorded_buffer ? *state_->recorded_buffer : state_->free_buffer();
  state_->reserve_batch(*state_->reserved_buffer, samples, keys_of_features);
}

void EmbeddingSet::weight_gradients(Batch batch, std::span<const FeatureVectors<const float>> gradients,
                                    std::span<float* const> dw) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->at(batch);
  check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
  if (dw.size() != state_->options.features.size())
    refuse_call(cat("gradients of weights of ", dw.size(), " features; the set has ", state_->options.features.size()));
  if (one.samples == 0) return;
  state_->each_table([&](Context& ctx, SetTable& table) {
    std::vector<float*> some;
    for (const TableFeature& feature : table.features()) some.push_back(dw[feature.number]);
    table.weight_gradients(ctx, one.buffer, state_->of_table(table, gradients), some);
  });
}

void EmbeddingSet::update(Batch batch, std::span<const FeatureVectors<const float>> gradients, const UpdateStep& with) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->to_end(batch, "update()");
  check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
  for (const EmbeddingTableOptions& table : state_->options.tables)
    if (table.optimizer.rule == EmbeddingOptimizer::Rule::none)
      refuse_call(
          cat("update() of table '", table.name, "', which has no optimizer: row_gradients() gives its gradients"));
  Context ctx = state_->context();
  auto* const step = reinterpret_cast<StepState*>(state_->step.data());
  ops::set_step(ctx, step, {with.learning_rate, with.rate_on_device, with.loss_scale, with.skip});
  if (one.samples > 0)
    state_->each_table(
        [&](Context& of, SetTable& table) { table.update(of, one.buffer, state_->of_table(table, gradients)); });
  ops::count_step(ctx, step);
  state_->under_way.pop_front();
}

std::vector<int64_t> EmbeddingSet::row_gradients(Batch batch, std::span<const FeatureVectors<const float>> gradients,
                                                 std::span<const RowGradients> to) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->to_end(batch, "row_gradients()");
  check_vectors(state_->options, state_->table_of, one.samples, one.counts, placed(gradients));
  if (to.size() != state_->tables.size())
    refuse_call(cat("gradients of the rows of ", to.size(), " tables; the set has ", state_->tables.size()));
  for (size_t t = 0; t < to.size(); ++t)
    if (!to[t].keys || !to[t].values)
      refuse_call(cat("table '", state_->options.tables[t].name, "' has no memory for gradients"));
  std::vector<int64_t> rows(to.size(), 0);
  if (one.samples > 0) {
    size_t t = 0;
    state_->each_table([&](Context& ctx, SetTable& table) {
      table.list_row_gradients(ctx, one.buffer, state_->of_table(table, gradients), to[t++]);
    });
    for (t = 0; t < rows.size(); ++t) rows[t] = state_->tables[t]->rows_of_batch(one.buffer);
  }
  state_->under_way.pop_front();
  return rows;
}

void EmbeddingSet::release(Batch batch) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->to_end(batch, "release()");
  if (one.samples > 0) state_->each_table([&](Context& ctx, SetTable& table) { table.release(ctx, one.buffer); });
  state_->under_way.pop_front();
}

void EmbeddingSet::lookup(int64_t samples, std::span<const FeatureKeys> keys,
                          std::span<const FeatureVectors<float>> outputs) {
  const CurrentDevice keep(state_->runtime.device());
  const std::vector<ops::FeatureBags> bags = checked_bags(state_->options, state_->table_of, samples, keys);
  std::vector<int64_t> counts;
  for (const ops::FeatureBags& of : bags) counts.push_back(of.most);
  check_vectors(state_->options, state_->table_of, samples, counts, placed(outputs));
  if (samples == 0) return;
  if (!state_->runtime.compute_stream().is_capturing())
    for (const auto& table : state_->tables) {
      int64_t all = 0;
      for (const TableFeature& feature : table->features()) all += counts[feature.number];
      state_->report_keys_outside(*table);
      table->reserve_lookup(samples, all);
    }
  state_->each_table([&](Context& ctx, SetTable& table) {
    table.lookup(ctx, samples, state_->of_table(table, bags), state_->of_table(table, outputs));
  });
}

}  // namespace hctr
