// The state of an EmbeddingSet: its tables, and the batches in progress.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "core/device/lockstep.h"
#include "core/device/stream.h"
#include "engine/set/rank_state.h"
#include "engine/set/set_arrays.h"
#include "engine/set/set_rules.h"
#include "engine/set/set_state.h"
#include "engine/set/set_table.h"
#include "engine/set/shared_set.h"
#include "ops/optimizer/step_scalars.h"

namespace hctr {

struct EmbeddingSet::State {
  State(const EmbeddingOptions& wanted, std::shared_ptr<DeviceAllocator> memory)
      : options(wanted),
        allocator(std::move(memory)),
        table_of(tables_of_features(wanted)),
        runtime(device_of(wanted), runtime_options(wanted)),
        step(runtime.device(), sizeof(StepState)),
        row_counts(runtime.device(), wanted.tables.size() * sizeof(int32_t)),
        queue_marks{Event(runtime.device()), Event(runtime.device())},
        prefetched(runtime.device()),
        comms(make_communicators(options.rank, runtime.device())) {
    if (options.gpu >= 0) runtime.adopt_stream(options.stream);
    agreed([&] { make_tables(); });
    write_step({});
  }

  void make_tables() {
    std::vector<TableSpec> specs;
    for (size_t t = 0; t < options.tables.size(); ++t) {
      std::vector<TableFeature> features;
      for (size_t f = 0; f < options.features.size(); ++f)
        if (const EmbeddingFeature& feature = options.features[f]; table_of[f] == t)
          features.push_back({f, feature.name, pooling_of(feature.pooling), feature.weighted});
      TableSpec spec = spec_of(options.tables[t], static_cast<int64_t>(features.size()));
      spec.samples = spec.eval_samples = 1;
      const bool on_disk = runtime.row_memory().has_disk();
      spec.key_capacity = on_disk ? options.most_keys : std::min<int64_t>(options.most_keys, kFirstKeys);
      spec.eval_key_capacity = spec.key_capacity;
      spec.most_key_capacity = options.most_keys;
      one_at_a_time = one_at_a_time || spec.policy.any() || on_disk || options.host_bytes > 0;
      const AllocatorScope rows(allocator, rows_from_allocator(options, options.tables[t]));
      if (on_several())
        specs.push_back(spec);
      else
        tables.push_back(std::make_unique<SetTable>(runtime, spec, std::move(features), options.batches + 1));
    }
    if (on_several())
      shared = std::make_unique<SharedSet>(runtime, comms, options, table_of, std::move(specs), options.batches + 1);
  }

  static constexpr int64_t kFirstKeys = 4096;

  /// Created at the start of each call. Saves the current device and selects the set's allocator.
  struct Call {
    explicit Call(const State& of) : device(of.runtime.device()), memory(of.allocator) {}
    CurrentDevice device;
    AllocatorScope memory;
  };

  struct Under {
    Batch number;
    int buffer;
    int64_t samples;
    bool empty;  // whether the batch is empty on all ranks
    bool forwarded = false;
    std::vector<int64_t> counts;  // [feature]: number of keys
  };

  bool on_several() const { return comms.host != nullptr; }
  /// Runs body(), which must not make collective calls. If any rank fails, every rank throws.
  template <class Body>
  void agreed(const Body& body) {
    if (!on_several()) return body();
    all_threw = true;
    run_on_all_ranks(*comms.host, body, kUsingEmbeddings);
    all_threw = false;
  }

  Context context() { return context(runtime.compute_stream()); }
  Context context(StreamRef stream) {
    return Context(runtime, stream, reinterpret_cast<const StepState*>(step.data()));
  }
  void write_step(const StepState& state) {
    scalars.reset();
    copy_bytes(runtime.compute_stream(), step.data(), &state, sizeof state);
    runtime.compute_stream().synchronize();
  }
  /// Sets the scalars of an update on the device, unless the previous update had the same scalars.
  void set_scalars(Context& ctx, const UpdateStep& with) {
    const std::pair wanted(with.learning_rate, with.loss_scale);
    scalars_recorded = scalars_recorded || ctx.stream().is_capturing();
    const bool stay = !with.rate_on_device && !with.skip && !scalars_recorded;
    if (stay && scalars == wanted) return;
    ops::set_step(ctx, reinterpret_cast<StepState*>(step.data()),
                  {with.learning_rate, with.rate_on_device, with.loss_scale, with.skip});
    scalars = stay ? std::optional(wanted) : std::nullopt;
  }
  StepState read_step() {
    StepState state;
    copy_bytes(runtime.compute_stream(), &state, step.data(), sizeof state);
    runtime.compute_stream().synchronize();
    return state;
  }
  /// Calls body(context, table) for each table. On a GPU the kernels of all tables are merged, except with a disk tier,
  /// where the host takes part.
  template <class Body>
  void each_table(const Body& body) {
    each_table(runtime.compute_stream(), body);
  }
  template <class Body>
  void each_table(StreamRef stream, const Body& body) {
    Lockstep together(context(stream), options.gpu >= 0 && !runtime.row_memory().has_disk());
    for (const auto& table : tables) {
      Context ctx = together.next(tables.size() > 1);
      body(ctx, *table);
    }
    together.run();
  }
  size_t table_number(const std::string& name) const {
    for (size_t t = 0; t < options.tables.size(); ++t)
      if (options.tables[t].name == name) return t;
    refuse_call(cat("there is no embedding table '", name, "'"));
  }
  size_t idle_number(const std::string& name) const {
    if (!under_way.empty())
      refuse_call(cat("table '", name, "' cannot be accessed between forward() and update() of a batch"));
    return table_number(name);
  }
  size_t agreed_number(const std::string& name) {
    size_t t = 0;
    agreed([&] { t = idle_number(name); });
    return t;
  }
  /// The spec of table `t` for this rank's rows.
  const TableSpec& spec(size_t t) const { return shared ? shared->tables()[t]->spec() : tables[t]->spec(); }
  void export_rows(const std::string& table, RowsToExport, const std::function<void(const TableRows&)>& sink);
  std::vector<TableOnRank> saved_tables();
  /// Returns a table of a set on a single rank. No batch may be in progress.
  EmbeddingTable& idle_table(const std::string& name) { return tables[idle_number(name)]->table(); }

  std::vector<ops::FeatureBags> of_table(const SetTable& table, std::span<const ops::FeatureBags> all) const {
    std::vector<ops::FeatureBags> some;
    for (const TableFeature& feature : table.features()) some.push_back(all[feature.number]);
    return some;
  }
  /// The elements of `all` that belong to the features of the table; empty if `all` is empty.
  template <class T>
  std::vector<T*> of_table(const SetTable& table, std::span<T* const> all) const {
    std::vector<T*> some;
    if (!all.empty())
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
  std::vector<int64_t> keys_of_tables(std::span<const int64_t> counts) const {
    std::vector<int64_t> keys(options.tables.size(), 0);
    for (size_t f = 0; f < counts.size(); ++f) keys[table_of[f]] += counts[f];
    return keys;
  }
  void reserve_lookup(int64_t samples, std::span<const int64_t> counts) {
    const std::vector<int64_t> keys = keys_of_tables(counts);
    for (size_t t = 0; t < tables.size(); ++t) tables[t]->reserve_lookup(samples, keys[t]);
  }
  void expect_lookup_reserved(int64_t samples, std::span<const int64_t> counts) const {
    if (runtime.row_memory().has_disk()) refuse_call("a look-up cannot be recorded if rows may be on disk");
    const std::vector<int64_t> keys = keys_of_tables(counts);
    for (size_t t = 0; t < tables.size(); ++t)
      if (!tables[t]->lookup_reserved(samples, keys[t]))
        refuse_call(cat("reserve_lookup() must precede the recording of a look-up with ", samples, " samples and ",
                        keys[t], " keys of table '", options.tables[t].name, "'"));
  }
  /// Whether a prefetched batch is prepared on its own stream, concurrently with the step of the previous batch.
  bool prepares_concurrently() const {
    return options.gpu >= 0 && !shared && !one_at_a_time && !runtime.compute_stream().is_capturing();
  }
  /// Makes later work on the compute stream wait for the preparation of prefetched batches.
  void join_prefetched() {
    if (std::exchange(prefetching, false)) prefetched.make_wait(runtime.compute_stream());
  }
  /// Keeps the host at most two batches ahead of the GPU. Growing tables have memory for the new rows of two batches.
  /// If the host were further ahead, reserving rows would wait until the GPU has no work left.
  void limit_queue() {
    if (std::all_of(options.tables.begin(), options.tables.end(), [](const auto& table) { return table.rows > 0; }))
      return;
    Event& mark = queue_marks[static_cast<size_t>(host_step % 2)];
    mark.synchronize();  // waits for all batches except the last two
    mark.record(runtime.compute_stream());
  }
  /// Reserves memory for the rows of the next batch. Runs on the host.
  void reserve_batch(int buffer, int64_t samples, std::span<const int64_t> counts) {
    limit_queue();
    const std::vector<int64_t> keys = keys_of_tables(counts);
    for (size_t t = 0; t < tables.size(); ++t) {
      tables[t]->reserve(buffer, samples, keys[t]);
      report_keys_outside(tables[t]->table());
      tables[t]->table().reserve_rows(host_step);
    }
    ++host_step;
  }

  /// Checks that a batch may begin now, and returns its keys as FeatureBags. Errors: Error(usage); those of
  /// checked_bags().
  std::vector<ops::FeatureBags> checked_batch(int64_t samples, std::span<const FeatureKeys> keys) const {
    std::vector<ops::FeatureBags> bags = checked_bags(options, table_of, samples, keys);
    const size_t most = one_at_a_time ? 1 : static_cast<size_t>(options.batches);
    if (under_way.size() >= most)
      refuse_call(cat(under_way.size(), " batches are between forward() and update(), expected at most ", most,
                      one_at_a_time ? " if rows may be removed or evicted from the GPU" : " (batches)"));
    const bool recorded = runtime.compute_stream().is_capturing();
    if (recorded && on_several())
      refuse_call("a batch on several ranks cannot be recorded: the ranks wait for each other on the host");
    if (recorded && !reserved_buffer) refuse_call("reserve() must precede the recording of a batch");
    if (recorded && runtime.row_memory().has_disk()) refuse_call("a batch cannot be recorded if rows may be on disk");
    return bags;
  }

  /// `early`: whether the vectors are needed only in a later call. `rows`: the row numbers of each feature's keys. If
  /// `rows` is empty, begin() looks up the keys.
  Batch begin(int64_t samples, std::span<const ops::FeatureBags> bags, bool early = false,
              std::span<const int32_t* const> rows = {}) {
    join_prefetched();
    std::vector<int64_t> counts;
    for (const ops::FeatureBags& of : bags) counts.push_back(of.most);
    const bool recorded = runtime.compute_stream().is_capturing();
    const int buffer = recorded ? *reserved_buffer : free_buffer();
    bool empty = samples == 0;
    if (shared) {
      Context ctx = context();
      empty = !shared->begin(ctx, buffer, samples, bags, host_step);
      host_step += !empty;
    } else if (!empty) {
      if (recorded) {
        recorded_buffer = buffer;
        for (const auto& table : tables) table->keep_replaced_memory();
      } else {
        reserve_batch(buffer, samples, counts);
      }
      const bool concurrent = early && prepares_concurrently();
      const StreamRef stream = concurrent ? runtime.own_prepare_stream() : runtime.compute_stream();
      if (concurrent) {
        prefetched.record(runtime.compute_stream());
        prefetched.make_wait(stream);
      }
      each_table(stream, [&](Context& ctx, SetTable& table) {
        table.prepare(ctx, buffer, samples, of_table(table, bags), of_table(table, rows));
      });
      if (concurrent) prefetched.record(stream);
      prefetching = concurrent;
    }
    under_way.push_back({++last_batch, buffer, samples, empty, false, std::move(counts)});
    return last_batch;
  }
  /// Returns a buffer that is used neither by a batch in progress nor by recorded work.
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
    refuse_call(cat("batch ", batch, " has ended or never existed"));
  }
  void write_vectors(Batch batch, std::span<const FeatureVectors<float>> outputs) {
    join_prefetched();
    Under& one = at(batch);
    one.forwarded = true;
    if (one.empty) return;
    if (shared) {
      Context ctx = context();
      return shared->write_vectors(ctx, one.buffer, outputs);
    }
    if (!runtime.compute_stream().is_capturing())
      for (const auto& table : tables) table->confirm(one.buffer);
    each_table([&](Context& ctx, SetTable& table) { table.forward(ctx, one.buffer, of_table(table, outputs)); });
  }
  /// Ends a batch whose forward() has failed, even if later batches exist. Rows that the batch added stay in the table.
  void abandon(Batch batch) {
    const auto one =
        std::find_if(under_way.begin(), under_way.end(), [&](const Under& o) { return o.number == batch; });
    if (one == under_way.end()) return;
    leave_rows(*one);
    under_way.erase(one);
  }
  void leave_rows(const Under& one) {
    join_prefetched();
    if (one.empty) return;
    if (shared) {
      Context ctx = context();
      return shared->release(ctx, one.buffer);
    }
    each_table([&](Context& ctx, SetTable& table) { table.release(ctx, one.buffer); });
  }
  /// Checks the arguments of a call that takes row numbers, and refuses the call if row numbers can change in this set.
  void check_row_numbers(const char* call, std::span<const int64_t> counts,
                         std::span<const int32_t* const> numbers) const {
    if (on_several() || one_at_a_time)
      refuse_call(cat(call, " needs a set on one rank whose rows neither leave the GPU nor are removed by a policy"));
    if (numbers.size() != options.features.size())
      refuse_call(
          cat(call, ": row numbers of ", numbers.size(), " features, but the set has ", options.features.size()));
    for (size_t f = 0; f < counts.size(); ++f)
      if (counts[f] > 0 && !numbers[f])
        refuse_call(cat(call, ": the row numbers of feature '", options.features[f].name, "' are null"));
  }
  Under& to_end(Batch batch, const char* call) {
    Under& one = at(batch);
    if (&one != &under_way.front())
      refuse_call(cat(call, " of batch ", batch, ": batch ", under_way.front().number, " is older and must end first"));
    return one;
  }

  EmbeddingOptions options;
  std::shared_ptr<DeviceAllocator> allocator;  // null: the driver allocates
  std::vector<size_t> table_of;                // [feature]: table index
  Runtime runtime;
  Buffer step;                                     // a StepState on the device
  std::optional<std::pair<float, float>> scalars;  // learning rate and loss scale in `step`; nullopt: unknown
  bool scalars_recorded = false;                   // whether replays of recorded work may change the scalars
  HostBuffer row_counts;                           // [tables]: rows of a batch, for row_gradients()
  std::array<Event, 2> queue_marks;                // recorded before each of the last two batches
  Event prefetched;                                // marks the preparation of a prefetched batch
  bool prefetching = false;                        // whether the compute stream must wait for `prefetched`
  SetCommunicators comms;                          // null on a single rank
  std::vector<std::unique_ptr<SetTable>> tables;   // used on a single rank
  std::unique_ptr<SharedSet> shared;               // used on several ranks
  bool all_threw = false;                          // whether the last error was thrown on all ranks
  bool one_at_a_time = false;
  std::deque<Under> under_way;
  Batch last_batch = 0;
  int64_t host_step = 0;
  // number of remove_rows() calls; after such a call, row numbers that were read earlier may belong to other keys
  int64_t removals = 0;
  // reserved_buffer: the buffer that reserve() chose; recorded_buffer: the buffer of work that may be replayed
  std::optional<int> reserved_buffer, recorded_buffer;
};

}  // namespace hctr
