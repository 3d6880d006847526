#include "hctr/embedding.h"

#include <algorithm>
#include <deque>
#include <set>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "core/device/lockstep.h"
#include "engine/set/set_rules.h"
#include "engine/set/set_state.h"
#include "engine/set/set_table.h"
#include "ops/optimizer/step_scalars.h"

namespace hctr {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Kind::usage, what); }

ops::BagPooling pooling_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::sum:
      return ops::BagPooling::sum;
    case Pooling::mean:
      return ops::BagPooling::mean;
    case Pooling::sqrtn:
      return ops::BagPooling::sqrtn;
    case Pooling::max:
      return ops::BagPooling::max;
    case Pooling::none:
      break;
  }
  return ops::BagPooling::none;
}

Device device_of(const EmbeddingOptions& options) {
  if (options.gpu < 0) return {};
  const Device device{DeviceKind::cuda, options.gpu};
  expect_built(device);
  if (const GpuSearch found = find_gpus(); options.gpu >= found.count)
    throw Error(Kind::device, cat("GPU ", options.gpu, " of an embedding set: there are ", found.count,
                                  found.why_none.empty() ? "" : cat(" (", found.why_none, ")")));
  return device;
}

RuntimeOptions runtime_options(const EmbeddingOptions& options) {
  RuntimeOptions of;
  of.threads = options.threads;
  of.seed = options.seed;
  of.row_memory.device = options.device_bytes;
  of.row_memory.host = options.host_bytes;
  of.row_memory.device_setting = "device_bytes";
  if (options.host_bytes > 0) of.row_memory.host_setting = "host_bytes";
  if (!options.disk.empty()) of.row_memory.disk_folder = options.disk.string();
  of.row_memory.disk = options.disk_bytes;
  return of;
}

void check_options(const EmbeddingOptions& options) {
  if (options.tables.empty() || options.features.empty()) refuse("an embedding set without tables or features");
  if (options.threads < 1) refuse(cat("threads of an embedding set: ", options.threads, ", at least 1"));
  if (options.batches < 1 || options.batches > 64)
    refuse(cat("batches of an embedding set: ", options.batches, ", from 1 to 64"));
  if (options.most_keys < 1 || options.most_keys > int64_t{1} << 30)
    refuse(cat("most_keys of an embedding set: ", options.most_keys, ", from 1 to 2^30"));
  if (options.host_bytes < 0 || options.disk_bytes < 0 || options.device_bytes.value_or(0) < 0)
    refuse("bytes of an embedding set below 0");
  std::set<std::string> tables, features;
  for (const EmbeddingTableOptions& table : options.tables)
    if (!tables.insert(table.name).second) refuse(cat("two embedding tables are named '", table.name, "'"));
  for (const EmbeddingFeature& feature : options.features) {
    if (!features.insert(feature.name).second) refuse(cat("two features are named '", feature.name, "'"));
    if (!tables.contains(feature.table))
      refuse(cat("feature '", feature.name, "' is of table '", feature.table, "', which is not among the tables"));
    if (feature.weighted && (feature.pooling == Pooling::max || feature.pooling == Pooling::none))
      refuse(cat("feature '", feature.name, "' has weights, which ",
                 feature.pooling == Pooling::max ? "the largest elements" : "keys that are not pooled",
                 " have no use for"));
  }
  for (const std::string& table : tables)
    if (std::none_of(options.features.begin(), options.features.end(),
                     [&](const EmbeddingFeature& feature) { return feature.table == table; }))
      refuse(cat("embedding table '", table, "' has no feature"));
}

ops::KeyType key_type(const EmbeddingFeature& feature, ElementType type) {
  switch (type) {
    case ElementType::i32:
      return ops::KeyType::i32;
    case ElementType::u32:
      return ops::KeyType::u32;
    case ElementType::i64:
      return ops::KeyType::i64;
    case ElementType::u64:
      return ops::KeyType::u64;
    case ElementType::f32:
      break;
  }
  refuse(cat("keys of feature '", feature.name, "' are f32: i32, u32, i64 or u64"));
}

/// On the CPU, where reading them costs little.
void check_offsets(const EmbeddingFeature& feature, const ops::FeatureBags& bags) {
  const auto at = [&](int64_t b) {
    return bags.wide ? static_cast<const int64_t*>(bags.offsets)[b] : static_cast<const int32_t*>(bags.offsets)[b];
  };
  for (int64_t b = 0; b < bags.bags; ++b)
    if (at(b + 1) < at(b))
      refuse(cat("offsets of feature '", feature.name, "' decrease at sample ", b, ": ", at(b), ", then ", at(b + 1)));
  if (const int64_t keys = at(bags.bags) - at(0); keys != bags.most)
    refuse(cat("offsets of feature '", feature.name, "' are of ", keys, " keys, and there are ", bags.most));
}

int64_t key_at(const ops::FeatureBags& bags, int64_t i) {
  switch (bags.type) {
    case ops::KeyType::i32:
      return static_cast<const int32_t*>(bags.keys)[i];
    case ops::KeyType::u32:
      return static_cast<const uint32_t*>(bags.keys)[i];
    default:
      return static_cast<const int64_t*>(bags.keys)[i];
  }
}

void check_row_numbers(const EmbeddingFeature& feature, const EmbeddingTableOptions& table,
                       const ops::FeatureBags& bags) {
  for (int64_t i = 0; i < bags.most; ++i)
    if (const int64_t key = key_at(bags, i); key < 0 || key >= table.rows)
      throw Error(Kind::data, cat("feature '", feature.name, "' has key ", key, " at position ", i, "; table '",
                                  table.name, "' has rows 0 to ", table.rows - 1));
}

}  // namespace

struct EmbeddingSet::State {
  explicit State(const EmbeddingOptions& wanted)
      : options(wanted),
        runtime(device_of(wanted), runtime_options(wanted)),
        step(runtime.device(), sizeof(StepState)) {
    if (options.gpu >= 0 && options.stream) runtime.adopt_stream(options.stream);
    for (size_t t = 0; t < options.tables.size(); ++t) {
      std::vector<TableFeature> features;
      for (size_t f = 0; f < options.features.size(); ++f)
        if (const EmbeddingFeature& feature = options.features[f]; feature.table == options.tables[t].name) {
          table_of.resize(options.features.size());
          table_of[f] = t;
          features.push_back({f, feature.name, pooling_of(feature.pooling), feature.weighted});
        }
      TableSpec spec = spec_of(options.tables[t], static_cast<int64_t>(features.size()));
      spec.samples = spec.eval_samples = 1;
      const bool on_disk = runtime.row_memory().has_disk();
      spec.key_capacity = on_disk ? options.most_keys : std::min<int64_t>(options.most_keys, kFirstKeys);
      spec.eval_key_capacity = spec.key_capacity;
      spec.most_key_capacity = options.most_keys;
      one_at_a_time = one_at_a_time || spec.policy.any() || on_disk || options.host_bytes > 0;
      tables.push_back(std::make_unique<SetTable>(runtime, spec, std::move(features), options.batches + 1));
    }
    table_of.resize(options.features.size());
    write_step({});
  }

  static constexpr int64_t kFirstKeys = 4096;

  struct Under {
    Batch number;
    int buffer;
    int64_t samples;
    bool forwarded = false;
    std::vector<int64_t> counts;  // of each feature
  };

  Context context() {
    return Context(runtime, runtime.compute_stream(), reinterpret_cast<const StepState*>(step.data()));
  }
  void write_step(const StepState& state) {
    copy_bytes(runtime.compute_stream(), step.data(), &state, sizeof state);
    runtime.compute_stream().synchronize();
  }
  StepState read_step() {
    StepState state;
    copy_bytes(runtime.compute_stream(), &state, step.data(), sizeof state);
    runtime.compute_stream().synchronize();
    return state;
  }
  /// Calls body(context, table) for each table. On a GPU their kernels start together, unless the host takes part.
  template <class Body>
  void each_table(const Body& body) {
    Lockstep together(context(), options.gpu >= 0 && !runtime.row_memory().has_disk());
    for (const auto& table : tables) {
      Context ctx = together.next();
      body(ctx, *table);
    }
    together.run();
  }
  size_t table_number(const std::string& name) const {
    for (size_t t = 0; t < tables.size(); ++t)
      if (options.tables[t].name == name) return t;
    refuse(cat("there is no embedding table '", name, "'"));
  }
  EmbeddingTable& idle_table(const std::string& name) {
    if (!under_way.empty())
      refuse(cat("table '", name, "' is asked for while a batch is between forward() and update()"));
    return tables[table_number(name)]->table();
  }

  /// The arrays of the caller, checked as far as the host knows them.
  std::vector<ops::FeatureBags> bags_of(int64_t samples, std::span<const FeatureKeys> keys) const {
    if (samples < 0) refuse(cat("a batch of ", samples, " samples"));
    if (keys.size() != options.features.size())
      refuse(cat("keys of ", keys.size(), " features; the set has ", options.features.size()));
    std::vector<ops::FeatureBags> all;
    std::vector<int64_t> of_table(tables.size());
    for (size_t f = 0; f < keys.size(); ++f) {
      const FeatureKeys& of = keys[f];
      const EmbeddingFeature& feature = options.features[f];
      if (of.count < 0 || (of.count > 0 && !of.keys)) refuse(cat("feature '", feature.name, "' has no keys"));
      if (!of.offsets && of.count != samples)
        refuse(cat("feature '", feature.name, "' has ", of.count, " keys without offsets, and ", samples, " samples"));
      if (of.offsets && of.offsets_type != ElementType::i32 && of.offsets_type != ElementType::i64)
        refuse(cat("offsets of feature '", feature.name, "': i32 or i64"));
      if (of.weights && !feature.weighted)
        refuse(cat("feature '", feature.name, "' is given weights, and is not weighted"));
      of_table[table_of[f]] += of.count;
      if (of_table[table_of[f]] > options.most_keys)
        refuse(cat("a batch has ", of_table[table_of[f]], " keys of table '", feature.table, "', and most_keys is ",
                   options.most_keys));
      all.push_back({of.keys, key_type(feature, of.type), of.count, of.offsets, of.offsets_type == ElementType::i64,
                     samples, of.weights});
      if (options.gpu >= 0) continue;
      if (of.offsets) check_offsets(feature, all.back());
      if (const EmbeddingTableOptions& table = options.tables[table_of[f]]; table.rows > 0)
        check_row_numbers(feature, table, all.back());
    }
    return all;
  }
  std::vector<ops::FeatureBags> of_table(const SetTable& table, std::span<const ops::FeatureBags> all) const {
    std::vector<ops::FeatureBags> some;
    for (const TableFeature& feature : table.features()) some.push_back(all[feature.number]);
    return some;
  }
  template <class T>
  std::vector<PlacedVectors> of_table(const SetTable& table, std::span<const FeatureVectors<T>> all) const {
    std::vector<PlacedVectors> some;
    for (const TableFeature& feature : table.features()) {
      const FeatureVectors<T>& at = all[feature.number];
      some.push_back({const_cast<float*>(at.data), at.stride == 0 ? table.spec().dim : at.stride});
    }
    return some;
  }
  template <class T>
  void check_vectors(std::span<const FeatureVectors<T>> vectors, int64_t samples,
                     std::span<const int64_t> counts) const {
    if (vectors.size() != options.features.size())
      refuse(cat("vectors of ", vectors.size(), " features; the set has ", options.features.size()));
    for (size_t f = 0; f < vectors.size(); ++f) {
      const EmbeddingFeature& feature = options.features[f];
      const int64_t dim = options.tables[table_of[f]].dim;
      const int64_t rows = feature.pooling == Pooling::none ? counts[f] : samples;
      if (rows > 0 && !vectors[f].data) refuse(cat("feature '", feature.name, "' has no memory for its vectors"));
      if (vectors[f].stride != 0 && vectors[f].stride < dim)
        refuse(
            cat("vectors of feature '", feature.name, "' are ", vectors[f].stride, " elements apart, and have ", dim));
    }
  }

  /// Host: memory for the rows of the next batch.
  void reserve_batch(int buffer, int64_t samples, std::span<const int64_t> counts) {
    for (const auto& table : tables) {
      int64_t keys = 0;
      for (const TableFeature& feature : table->features()) keys += counts[feature.number];
      table->reserve(buffer, samples, keys);
      report_keys_outside(*table);
      table->table().reserve_rows(host_step);
    }
    ++host_step;
  }
  /// A row number that does not exist, in an earlier batch on a GPU, is reported once.
  void report_keys_outside(SetTable& table) const {
    try {
      table.table().check_keys();
    } catch (const Error& error) {
      table.table().forget_keys_outside();
      throw Error(Kind::data, cat("an earlier batch had a row number that does not exist: ", error.what()));
    }
  }

  Batch begin(int64_t samples, std::span<const FeatureKeys> keys) {
    const std::vector<ops::FeatureBags> bags = bags_of(samples, keys);
    const size_t most = one_at_a_time ? 1 : static_cast<size_t>(options.batches);
    if (under_way.size() >= most)
      refuse(cat(under_way.size(), " batches are between forward() and update(), and there may be ", most,
                 one_at_a_time ? " where rows may be removed or leave the GPU" : " (batches)"));
    std::vector<int64_t> counts;
    for (const ops::FeatureBags& of : bags) counts.push_back(of.most);
    const bool recorded = runtime.compute_stream().is_capturing();
    if (recorded && !reserved_buffer) refuse("a batch is recorded without reserve()");
    if (recorded && runtime.row_memory().has_disk()) refuse("a batch is recorded, and rows may be on a disk");
    const int buffer = recorded ? *reserved_buffer : free_buffer();
    if (samples > 0) {
      if (recorded)
        recorded_buffer = buffer;
      else
        reserve_batch(buffer, samples, counts);
      each_table([&](Context& ctx, SetTable& table) { table.prepare(ctx, buffer, samples, of_table(table, bags)); });
    }
    under_way.push_back({++last_batch, buffer, samples, false, std::move(counts)});
    return last_batch;
  }
  /// One that no batch under way has, nor recorded work.
  int free_buffer() const {
    for (int buffer = 0; buffer <= options.batches; ++buffer)
      if (buffer != recorded_buffer &&
          std::none_of(under_way.begin(), under_way.end(), [&](const Under& one) { return one.buffer == buffer; }))
        return buffer;
    HCTR_EXPECT(false, "an embedding set has no free buffer");
    return 0;
  }
  Under& at(Batch batch) {
    for (Under& one : under_way)
      if (one.number == batch) return one;
    refuse(cat("batch ", batch, " has ended, or never was"));
  }
  void write_vectors(Batch batch, std::span<const FeatureVectors<float>> outputs) {
    Under& one = at(batch);
    check_vectors(outputs, one.samples, one.counts);
    one.forwarded = true;
    if (one.samples == 0) return;
    if (!runtime.compute_stream().is_capturing())
      for (const auto& table : tables) table->confirm(one.buffer);
    each_table([&](Context& ctx, SetTable& table) { table.forward(ctx, one.buffer, of_table(table, outputs)); });
  }
  Under& to_end(Batch batch, const char* call) {
    Under& one = at(batch);
    if (&one != &under_way.front())
      refuse(
          cat(call, " of batch ", batch, ": batch ", under_way.front().number, ", which was made before, comes first"));
    return one;
  }

  EmbeddingOptions options;
  Runtime runtime;
  Buffer step;  // StepState
  std::vector<size_t> table_of;
  std::vector<std::unique_ptr<SetTable>> tables;
  bool one_at_a_time = false;
  std::deque<Under> under_way;
  Batch last_batch = 0;
  int64_t host_step = 0;
  std::optional<int> reserved_buffer, recorded_buffer;  // of reserve(), and of work that may be replayed
};

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
  if (keys.size() == state_->options.features.size()) state_->check_vectors(outputs, samples, counts);
  const Batch batch = state_->begin(samples, keys);
  try {
    state_->write_vectors(batch, outputs);
  } catch (...) {
    release(batch);
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
  if (one.forwarded) refuse(cat("forward() of batch ", batch, " a second time"));
  if (&one != &state_->under_way.front())
    refuse(cat("forward() of batch ", batch, " before batch ", state_->under_way.front().number, " has ended"));
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
    refuse(cat("reserve() of ", samples, " samples and keys of ", keys_of_features.size(), " features"));
  // A replay takes the buffer of its recording.
  state_->reserved_buffer = state_->recorded_buffer ? *state_->recorded_buffer : state_->free_buffer();
  state_->reserve_batch(*state_->reserved_buffer, samples, keys_of_features);
}

void EmbeddingSet::weight_gradients(Batch batch, std::span<const FeatureVectors<const float>> gradients,
                                    std::span<float* const> dw) {
  const CurrentDevice keep(state_->runtime.device());
  State::Under& one = state_->at(batch);
  state_->check_vectors(gradients, one.samples, one.counts);
  if (dw.size() != state_->options.features.size())
    refuse(cat("gradients of weights of ", dw.size(), " features; the set has ", state_->options.features.size()));
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
  state_->check_vectors(gradients, one.samples, one.counts);
  for (const EmbeddingTableOptions& table : state_->options.tables)
    if (table.optimizer.rule == EmbeddingOptimizer::Rule::none)
      refuse(cat("update() of table '", table.name, "', which has no optimizer: row_gradients() gives its gradients"));
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
  state_->check_vectors(gradients, one.samples, one.counts);
  if (to.size() != state_->tables.size())
    refuse(cat("gradients of the rows of ", to.size(), " tables; the set has ", state_->tables.size()));
  std::vector<int64_t> rows(to.size(), 0);
  if (one.samples > 0) {
    size_t t = 0;
    state_->each_table([&](Context& ctx, SetTable& table) {
      if (!to[t].keys || !to[t].values) refuse(cat("table '", table.spec().name, "' has no memory for gradients"));
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
  const std::vector<ops::FeatureBags> bags = state_->bags_of(samples, keys);
  std::vector<int64_t> counts;
  for (const ops::FeatureBags& of : bags) counts.push_back(of.most);
  state_->check_vectors(outputs, samples, counts);
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

int64_t EmbeddingSet::updates() {
  const CurrentDevice keep(state_->runtime.device());
  return state_->read_step().updates;
}

void EmbeddingSet::set_updates(int64_t updates) {
  const CurrentDevice keep(state_->runtime.device());
  if (updates < 0) refuse(cat(updates, " updates"));
  StepState state = state_->read_step();
  state.updates = updates;
  state_->write_step(state);
}

int64_t EmbeddingSet::rows(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  return state_->idle_table(table).rows();
}

EmbeddingMemory EmbeddingSet::memory(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  const RowStore::HostRows on_host = of.host_rows();
  const RowStore::DeviceBytes on_device = of.device_bytes();
  return {of.rows(), on_host.rows, of.disk_use().rows, on_device.numbers + on_device.besides, on_host.bytes};
}

std::map<std::string, int64_t> EmbeddingSet::counts(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  return state_->idle_table(table).counts();
}

namespace {

void pass_rows(EmbeddingTable& table, RowsToExport wanted, const std::function<void(const TableRows&)>& sink) {
  table.export_rows(wanted, [&](const RowBlock& block) {
    TableRows rows{block.keys, block.vectors, {}};
    for (int s = 0; wanted.states && s < table.spec().optimizer.states(); ++s) rows.states.push_back(block.states[s]);
    sink(rows);
  });
}

}  // namespace

void EmbeddingSet::export_rows(const std::string& table, bool states,
                               const std::function<void(const TableRows&)>& sink) {
  const CurrentDevice keep(state_->runtime.device());
  pass_rows(state_->idle_table(table), RowsToExport(states), sink);
}

void EmbeddingSet::export_changed_rows(const std::string& table, bool states,
                                       const std::function<void(const TableRows&)>& sink) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  if (!of.spec().marks_changes) refuse(cat("table '", table, "' marks no changes: set marks_changes"));
  pass_rows(of, RowsToExport(states, true), sink);
}

std::vector<int64_t> EmbeddingSet::removed_keys(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  std::vector<int64_t> keys;
  for (const SlotKey& one : state_->idle_table(table).removed_keys()) keys.push_back(one.second);
  return keys;
}

void EmbeddingSet::note_exported() {
  const CurrentDevice keep(state_->runtime.device());
  for (const EmbeddingTableOptions& table : state_->options.tables)
    if (table.marks_changes) state_->idle_table(table.name).note_model();
}

void EmbeddingSet::import_rows(const std::string& table, const TableRows& rows) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  const auto count = static_cast<int64_t>(rows.keys.size());
  const auto expect = [&](const char* what, size_t have, int64_t dim) {
    if (have != 0 && static_cast<int64_t>(have) != count * dim)
      refuse(cat("table '", table, "': ", count, " keys with ", have, " elements of ", what, ", ", dim, " for each"));
  };
  expect("vectors", rows.vectors.size(), of.spec().dim);
  if (rows.states.size() > static_cast<size_t>(of.spec().optimizer.states()))
    refuse(cat("table '", table, "' has ", of.spec().optimizer.states(), " states, and ", rows.states.size(),
               " are given"));
  RowBlock block{rows.keys, {}, rows.vectors, {}, {}};
  for (size_t s = 0; s < rows.states.size(); ++s) {
    expect("a state", rows.states[s].size(), of.spec().state_dim());
    block.states[s] = rows.states[s];
  }
  of.import_rows(block);
}

void EmbeddingSet::save(const std::filesystem::path& folder) {
  const CurrentDevice keep(state_->runtime.device());
  std::vector<EmbeddingTable*> tables;
  for (const EmbeddingTableOptions& table : state_->options.tables) tables.push_back(&state_->idle_table(table.name));
  save_set(folder, state_->options, state_->runtime, tables, {state_->read_step().updates, state_->host_step});
}

void EmbeddingSet::load(const std::filesystem::path& folder) {
  const CurrentDevice keep(state_->runtime.device());
  if (state_->last_batch != 0) refuse("load() of an embedding set that has had a batch: load into a new one");
  std::vector<EmbeddingTable*> tables;
  for (const EmbeddingTableOptions& table : state_->options.tables) tables.push_back(&state_->idle_table(table.name));
  const SetProgress progress = load_set(folder, state_->options, state_->runtime, tables);
  state_->host_step = progress.steps;
  set_updates(progress.updates);
}

}  // namespace hctr
