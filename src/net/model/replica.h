// One replica of the whole model on one rank: dense layers, weights and embedding tables.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/device/lockstep.h"
#include "formats/model/model_manifest.h"
#include "net/graph/fp8_scales.h"
#include "net/model/gradient_exchange.h"
#include "net/model/loss_scaler.h"
#include "net/model/network.h"
#include "net/model/step_streams.h"
#include "net/model/table_calls.h"
#include "net/model/weights.h"

namespace hctr {

/// Facts about the run, recorded in the manifest of model files.
struct ModelOrigin {
  std::string run;  ///< the id of the run
  Json data{};      ///< fingerprint of the training data
  std::string run_folder = {};
};

class PendingDelta;

/// Selects parts of the model: the dense part (weights and layer statistics), and tables.
struct ModelParts {
  bool dense = true;
  std::vector<bool> tables{};  ///< [embedding] selected tables; empty: all
  bool has_table(size_t e) const { return tables.empty() || tables[e]; }
};

/// The fused graph of a config for batches of `samples`. The config must outlive the graph.
Graph wired_graph(const Config&, int64_t samples, Phase);

/// The tensors of one batch on the device.
struct BatchTensors {
  StepState* state = nullptr;  ///< scalars of the step, which the step's Context uses
  Tensor label;
  std::optional<Tensor> dense;
  std::vector<Tensor> keys, offsets;  ///< [sparse input]
};

/// Hooks that are called once per step, when the named result is queued. Work that a hook queues on its context runs
/// after that result, and the step waits for that work.
struct StepCallbacks {
  /// Called once the loss is queued, and before any update. If Replica::skips_steps() is false, the hook may set
  /// batch.state->skip.
  std::function<void(Context&)> loss_known{};
  /// Called once the gradients of all embeddings are queued, if StepPlan::has_prefetch_point. A good point to prepare
  /// the next batch.
  std::function<void(Context&)> prefetch_point{};
  /// For tests and traces: called for each recorded call of the plan, after it is queued.
  std::function<void(const PlannedCall&)> queued{};
};

/// The batches of a replica, and the placement of its rows.
struct ReplicaShape {
  int64_t samples, eval_samples;  ///< rows of a training batch, and of an evaluation batch
  int ring_size;                  ///< number of buffers, used as a ring
  /// [embedding] the planned placement, for several ranks; empty: placement without a plan
  std::vector<Placement> placements{};
  ReplicaUse use = ReplicaUse::train;
};

class Replica {
 public:
  /// `config` must outlive the model. With ReplicaUse::score, train_step() must not be called. With score_dense,
  /// evaluate() must not be called either, and embeddings() is 0.
  Replica(const Config& config, Runtime&, Communicator&, const ReplicaShape&);

  /// A network bound to a batch. In training, also the step plan and its events.
  struct Binding : Network::Binding {
    std::shared_ptr<const StepPlan> plan{};
    std::shared_ptr<StepEvents> events{};
  };
  Binding bind(Phase, const BatchTensors&) const;

  /// Call on the host between steps. In every table, reserves capacity for the queued steps and for the next step,
  /// `step`, and removes expired rows. Errors: Error(data), thrown after all other tables have reserved capacity; other
  /// errors are thrown immediately.
  void reserve_rows(int64_t step);
  /// Call on the host before reserve_rows(). Reserves the memory that tables need for the next step, so that ranks can
  /// agree on an error before any rank begins the step. Does not change the model. Not collective. Returns whether a
  /// table has grown. Errors: Error(device).
  bool reserve_memory();
  /// The maximum host memory that save() needs on this rank for the reserved rows of all tables. Not collective.
  size_t bytes_to_save() const;
  /// Reserves the device memory that save() needs on this rank, so that save() cannot run out of device memory. Errors:
  /// Error(device).
  void hold_memory_to_save();
  /// Whether hold_memory_to_save() or reserve_rows() has changed the work of a step (Embedding::consume_rerecord_flag).
  bool consume_rerecord_flag();
  /// Call on the host after prepare() of the next step is queued for `buffer`, and before train_step(). Errors:
  /// Error(data) if the batch exceeds the row limit of a table; the errors of RowTiers::bring_rows(). An error leaves
  /// the model unchanged.
  void confirm_capacity(int buffer) const;
  /// Call after confirm_capacity(). Evicts rows from tables that exceed their limit.
  void enforce_limit(int buffer);
  /// Whether reserve_rows() or confirm_capacity() may reject a batch. Equal on every rank.
  bool may_refuse() const;
  /// Call on the host at any time. Throws if any batch so far, in training or evaluation, contained a key outside the
  /// config's range; such keys had no effect. reserve_rows() makes the same check. Errors: Error(data).
  void check_keys() const;
  /// Calls Embedding::look_ahead() with `keys` for each embedding that reads `sparse_input`. Any thread may call this
  /// at any time.
  void look_ahead(size_t sparse_input, std::span<const ops::RowOwner> keys);
  /// The sum of Embedding::disk_fetched() over all embeddings.
  DiskRows::Fetched disk_fetched() const;
  /// Call on the host after reserve_rows(). Returns whether reserve_rows() has changed the work of look_up() alone, so
  /// that recorded look-ups must be recorded again. Resets the flag.
  bool consume_look_up_flag();
  // A `Recording*` argument is the recording in progress, or null. Exchanges between hosts, and the host's work for
  // rows on disk, are never recorded. exchange_keys() and look_up() may run concurrently with the previous step. If the
  // plan has StepChoices::keys_ahead, exchange_keys() may also run concurrently with look_up() of the previous batch.

  /// With several ranks, sends the keys of the batch in `buffer` to their owner ranks.
  void exchange_keys(Context&, Recording*, int buffer, const BatchTensors&);
  /// Call after exchange_keys(). Looks up, inserts and sorts the keys.
  void look_up(Context&, Recording*, int buffer, const BatchTensors&);
  /// exchange_keys(), then look_up().
  void prepare(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch) {
    exchange_keys(ctx, recording, buffer, batch);
    look_up(ctx, recording, buffer, batch);
  }
  /// Runs forward, backward, exchange and update. Leaves the loss in loss(Phase::train). In fp16, also sets
  /// batch.state: the loss scale, the number of updates, and whether the step is skipped.
  void train_step(Context&, Recording*, int buffer, const BatchTensors&, const Binding&, const StepCallbacks& = {});
  /// Runs forward only. Keys that no finished step has seen contribute zero, except keys whose rows exist from the
  /// start.
  void evaluate(Context&, const BatchTensors&, const Network::Binding&);

  /// The weighted sum of all losses and penalties over all ranks, and the prediction of the first loss.
  Tensor loss(Phase phase) const { return network(phase).loss(); }
  Tensor prediction(Phase phase) const { return network(phase).prediction(); }
  /// tasks(): the name of each loss, which is its top, in the order of the config. losses(), predictions() and
  /// labels(): one tensor per loss, in the same order. If there are several losses, losses() is unweighted and without
  /// penalties. After evaluate() it covers all ranks, after train_step() only this rank.
  std::vector<std::string> tasks() const;
  std::vector<Tensor> losses(Phase phase) const { return network(phase).losses(); }
  std::vector<Tensor> predictions(Phase phase) const { return network(phase).predictions(); }
  std::vector<Tensor> labels(Phase phase, const Network::Binding& binding) const {
    return network(phase).labels(binding);
  }
  // Access to parts of the model, for scoring with caller-owned memory on one rank.
  const Weights& weights() const { return weights_; }
  const LayerState& layer_state() const { return state_; }
  Runtime& runtime() const { return runtime_; }
  Embedding& embedding(size_t e) { return *tables_[e]; }
  /// Adds the penalties on weights to the loss of a network. Not thread-safe.
  void add_penalties(Context&, const Network&) const;
  /// The graph of training batches.
  const Graph& graph() const { return train_graph_; }
  int64_t dense_parameters() const { return train_graph_.parameters; }
  int64_t embedding_rows() const;
  /// Returns Embedding::have_rows() of the embedding with this index.
  std::vector<uint8_t> have_rows(size_t embedding, std::span<const SlotKey> keys) {
    return tables_[embedding]->have_rows(keys);
  }
  /// fixed_sizes(): whether all work of steps and evaluations can be recorded (Embedding::fixed_sizes).
  /// bytes_between_hosts(): the bytes that this rank has sent to other hosts.
  bool fixed_sizes() const;
  BytesBetweenHosts bytes_between_hosts() const;
  size_t embeddings() const { return tables_.size(); }
  const TableSpec& table_spec(size_t embedding) const {
    return tables_.empty() ? specs_of_others_[embedding] : tables_[embedding]->spec();
  }
  /// The number of elements in the vectors of all embeddings for a training batch of this rank.
  int64_t embedding_elements() const;
  /// EmbeddingTable::counts of each table with a row policy, plus "index_places" as in table_rows(). If this rank has
  /// rows in host memory, also "rows_in_host_memory", "bytes_in_host_memory", "bytes_on_gpu" and the counts of rows on
  /// disk. Waits for queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_counts() const;
  /// For each table without a row policy: "rows" and, for a hash index, "index_places", the number of slots of the
  /// index. Both are totals over all ranks. Collective. Waits for queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_rows() const;
  /// Memory in bytes by part. For dense weights, their gradients and optimizer states, and for activations, these are
  /// the bytes of this rank. For rows of tables and their states, these are sums over all ranks. Excludes indices,
  /// exchange buffers and libraries. Collective. Waits for queued steps.
  std::vector<std::pair<std::string, int64_t>> memory_parts() const;
  /// The names of tables with a trained shared row; model files omit this row.
  std::vector<std::string> tables_with_shared_row() const;
  /// The loss scale and the number of skipped steps; none without loss scaling. Waits for queued steps.
  std::optional<ops::LossScale> loss_scale() const;
  /// The loss scale on the device, readable at any time; null if steps are never skipped.
  const ops::LossScale* loss_scale_state() const { return scaler_ ? scaler_->state() : nullptr; }
  /// Whether a step with an inf or NaN gradient is skipped, in which case loss_scale() has a value.
  bool skips_steps() const { return scaler_.has_value(); }

  /// Writes <prefix>_dense_<iteration>.model, <prefix><k>_sparse_<iteration>.model, their companion files, and their
  /// manifest, which is renamed into place last. Returns the paths: the dense model, then the tables, last the
  /// manifest. Waits for queued work. Keys have the width that the config sets. Without this setting, keys have
  /// `data_key_bytes`, or 8 bytes if a loaded key needs 8. `with_states`: saves optimizer states even if the config
  /// does not ask for them. Errors: those of rank 0, thrown on every rank; then no file exists under its final name.
  std::vector<std::filesystem::path> save(const std::string& prefix, int64_t iteration, int data_key_bytes = 8,
                                          const ModelOrigin& = {}, bool with_states = false);
  // A delta contains the rows that changed since the run's last saved model or delta.

  /// Marks all rows as saved in a model. The next delta contains the changes after this call.
  void note_model();
  /// Collects the changes since the model of iteration `base`, and marks these changes as saved. Rank 0 returns the
  /// delta for the folder of `prefix`, other ranks null. This call writes the dense part. PendingDelta::write() writes
  /// the rows, on any thread. If the rows exceed half of the free memory, this call writes them too. Errors: those of
  /// rank 0, thrown on every rank; then the next delta has the same base.
  std::unique_ptr<PendingDelta> save_delta(const std::string& prefix, int64_t iteration, int64_t base,
                                           int data_key_bytes, const ModelOrigin&);
  /// Checks and loads the files that the solver section names. Also loads the statistics of layers if their file exists
  /// next to the dense model. Errors: those of check_model_files(), on every rank, and those of loading the files.
  void load(const Log& = Log::silent());

  /// Freezes or unfreezes an embedding or a layer. `name`: the embedding's name, or the layer's first top. Frozen
  /// weights, rows and states do not change. No step may be queued during the call. Recorded steps must be recorded
  /// again.
  void freeze(const std::string& name, bool frozen);

  /// The value of StepState::updates_before in training: Adam's t of the loaded optimizer states, or 0.
  int64_t updates_before() const { return updates_before_; }

  // For exports. No step may be queued.
  std::vector<NamedTensor> dense_weights() const { return weights_.values(); }
  std::vector<NamedTensor> layer_statistics() const { return state_.values(); }
  /// Collective. Passes the rows of an embedding to `sink` on rank 0, sorted by (slot, key).
  void export_rows(size_t embedding, const std::function<void(const RowBlock&)>& sink) {
    tables_[embedding]->export_rows(false, sink);
  }

  // For checkpoints. No step may be queued. Saves the part of this rank. Not collective.
  void save_state(StateWriter, const ModelParts& = {});
  /// Restores the state; replaces load(). If the number of ranks differs from the checkpoint's, rows are redistributed;
  /// otherwise the state is restored exactly. Errors: those of StateReader.
  void load_state(const StateReader&, const ModelParts& = {});
  /// Replaces load() in a run that has finished `iteration` steps. Restores the given parts from `kept`, which
  /// save_state() of this model wrote, and loads all other parts from the files that the solver names. Adam's t comes
  /// from the optimizer states in these files. Without such states, t continues if a part is kept, and restarts at 0
  /// otherwise.
  void load_beside(const StateReader& kept, const ModelParts&, int64_t iteration, const Log&);

 private:
  struct PlannedTable {
    Placement placement;
    TableSpec spec;
    double bytes;  // size of the rows on all ranks; 0 if unknown
  };
  std::vector<PlannedTable> planned_tables(const ReplicaShape&) const;
  void make_tables(const std::vector<PlannedTable>&, const ReplicaShape&);
  /// The key width of model files: as the config states; else 8 if a loaded key needs 8 bytes; else `data_key_bytes`.
  int key_bytes_of_files(int data_key_bytes) const;
  ModelManifest manifest(const std::string& prefix, int64_t iteration, const ModelOrigin&) const;
  /// Collective. On rank 0, adds "index_places", summed over ranks, to `counts` if the table has an index.
  void add_index_places(Embedding&, std::map<std::string, int64_t>& counts) const;
  /// Brings rows of the batch that are on disk into memory. Waits for the context's stream.
  void bring_rows(Context&, int buffer, const BatchTensors&);
  void write_lengths(Context&, const BatchTensors&, const Network&) const;
  StepFacts step_facts(const Network::Binding&) const;
  /// The arguments of one step, as its calls need them. Calls outside of the recording use the same arguments.
  struct StepOf {
    int buffer;
    BatchTensors batch;
    std::shared_ptr<const StepPlan> plan;
    std::shared_ptr<StepEvents> events;
    StepCallbacks callbacks;
  };
  // Each of these functions runs a planned call with a context on the call's stream. run_of_tables() returns whether it
  // handles the call.
  bool run_of_tables(Context&, const PlannedCall&, const StepOf&);
  void run_of_table(Context&, const PlannedCall&, const StepOf&);
  void run_of_model(Context&, const PlannedCall&, const StepOf&, std::span<const Lockstep::LateResult> grouped);
  /// The overflow check for the gradient of a table's vectors, in the dtype in which the gradient is sent.
  ops::OverflowSearch search_of_table(size_t table, const Tensor& gradient) const;
  /// The tensors to check for overflow before the given wgrads are computed: all other gradients, and the operands of
  /// the given wgrads.
  std::vector<Tensor> searched_instead_of(std::span<const Lockstep::LateResult>) const;
  void add_penalty_gradients(Context&, size_t node) const;
  bool has_penalty() const;
  /// The factors of the penalty in the loss and in the gradients. Both are 1, except if compatibility options make the
  /// penalty per GPU.
  struct PenaltyFactors {
    double loss = 1, gradient = 1;
  };
  PenaltyFactors penalty_factors() const;
  const Network& network(Phase phase) const { return phase == Phase::train ? train_ : evaluation_; }

  const Config& config_;
  Runtime& runtime_;
  Communicator& comm_;
  Graph train_graph_, eval_graph_;
  Weights weights_;
  GradientExchange gradients_;
  LayerState state_;
  std::optional<LossScaler> scaler_;
  Fp8Scales fp8_scales_;
  Network train_;
  Network evaluation_;
  StepStreams streams_;
  Embeddings tables_;
  std::vector<TableSpec> specs_of_others_;  // specs of tables that this replica does not hold
  bool wide_keys_loaded_ = false;           // whether a loaded key needs 8 bytes
  int64_t updates_before_ = 0;              // Adam's t of the run that wrote the loaded optimizer states
  StepFacts facts_of_tables_;               // the facts of tables; `layers` is empty
};

}  // namespace hctr
