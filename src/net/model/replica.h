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

/// Facts about the run that the manifest of model files records.
struct ModelOrigin {
  std::string run;  ///< its id
  Json data{};      ///< fingerprint of the training data
  std::string run_folder = {};
};

class PendingDelta;

/// Selects parts of the model: dense weights with the statistics of layers, and tables.
struct ModelParts {
  bool dense = true;
  std::vector<bool> tables{};  ///< by embedding; empty: all
  bool has_table(size_t e) const { return tables.empty() || tables[e]; }
};

/// The fused graph of a config for batches of `samples`. The config outlives it.
Graph wired_graph(const Config&, int64_t samples, Phase);

/// The tensors of one batch on the device.
struct BatchTensors {
  StepState* state = nullptr;  ///< scalars of the step, used by its Context
  Tensor label;
  std::optional<Tensor> dense;
  std::vector<Tensor> keys, offsets;  ///< per sparse input
};

/// Hooks that run while a step is queued, each once, as soon as the named result is queued. Work that a hook queues on
/// its context comes after that result, and the step waits for it.
struct StepCallbacks {
  /// The loss, before any update. The hook may set batch.state->skip, unless Replica::skips_steps().
  std::function<void(Context&)> loss_known{};
  /// The gradients of all embeddings, if the plan of the step has a prefetch point (StepPlan::has_prefetch_point): a
  /// good time to prepare the next batch.
  std::function<void(Context&)> prefetch_point{};
  /// For tests and traces: each recorded call of the plan, once it is queued.
  std::function<void(const PlannedCall&)> queued{};
};

class Replica {
 public:
  /// For training batches of `samples` rows in a ring of `ring_size` buffers, and evaluation batches of `eval_samples`.
  /// `config` outlives the model. `placements`: of each embedding on several ranks; if empty, as without a plan.
  /// ReplicaUse::score: train_step() must not be called; score_dense: nor evaluate(), and embeddings() is 0.
  Replica(const Config& config, Runtime&, Communicator&, int64_t samples, int64_t eval_samples, int ring_size,
          const std::vector<Placement>& placements = {}, ReplicaUse use = ReplicaUse::train);

  /// A network bound to a batch; in training also the plan of its step and the plan's events.
  struct Binding : Network::Binding {
    std::shared_ptr<const StepPlan> plan{};
    std::shared_ptr<StepEvents> events{};
  };
  Binding bind(Phase, const BatchTensors&) const;

  /// On the host, between steps: reserves capacity in every table for the queued steps and the next one, `step`, and
  /// removes expired rows. Errors: Error(data) after all other tables have reserved theirs; other errors at once.
  void reserve_rows(int64_t step);
  /// On the host, before reserve_rows(): reserves the memory that tables need for the next step, so that ranks can
  /// agree on an error before any of them begins it. The model is unchanged. Not collective. Returns whether a table
  /// has grown. Errors: Error(device).
  bool reserve_memory();
  /// The maximum host memory that save() needs on this rank, for the rows that tables have reserved. Not collective.
  size_t bytes_to_save() const;
  /// Reserves the device memory that save() needs on this rank, so that save() cannot fail for lack of it. Errors:
  /// Error(device).
  void hold_memory_to_save();
  /// Whether hold_memory_to_save() or reserve_rows() has changed the work of a step (Embedding::consume_rerecord_flag).
  bool consume_rerecord_flag();
  /// Host, once prepare() of the next step, in `buffer`, is queued and before train_step() is. Errors: Error(data) when
  /// the batch exceeds the row limit of a table, and those of RowTiers::bring_rows(); the model is unchanged then.
  void confirm_capacity(int buffer) const;
  /// After confirm_capacity(): evicts rows from tables that exceed their limit.
  void enforce_limit(int buffer);
  /// Whether a table may refuse a batch in reserve_rows() or confirm_capacity(). The same on every rank.
  bool may_refuse() const;
  /// On the host, any time: throws if a batch so far, in training or evaluation, held a key outside the config's range.
  /// Such keys had no effect. reserve_rows() checks too. Errors: Error(data).
  void check_keys() const;
  /// Any thread, any time: calls Embedding::look_ahead() of each embedding with the keys of its next sparse input.
  void look_ahead(size_t sparse_input, std::span<const ops::RowOwner> keys);
  /// Embedding::disk_fetched(), summed over all embeddings.
  DiskRows::Fetched disk_fetched() const;
  // `recording`: the recording in progress, or null. Exchanges between hosts, and the host's work for rows on disk,
  // stay outside of it.
  /// On the host, after reserve_rows(): whether it changed the work of look_up() alone, so that recorded look-ups must
  /// be recorded again. Resets the flag.
  bool consume_look_up_flag();
  // Both may run concurrently with the previous step. If the plan has StepChoices::keys_ahead, exchange_keys() may also
  // run concurrently with look_up() of the previous batch.
  /// On several ranks: sends the keys of the batch in `buffer` to their owner ranks.
  void exchange_keys(Context&, Recording*, int buffer, const BatchTensors&);
  /// After exchange_keys(): looks up, inserts and sorts the keys.
  void look_up(Context&, Recording*, int buffer, const BatchTensors&);
  /// exchange_keys(), then look_up().
  void prepare(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch) {
    exchange_keys(ctx, recording, buffer, batch);
    look_up(ctx, recording, buffer, batch);
  }
  /// Forward, backward, exchange, update. Leaves the loss in loss(Phase::train). With fp16, also sets batch.state: the
  /// loss scale, the count of updates, and whether the step is skipped.
  void train_step(Context&, Recording*, int buffer, const BatchTensors&, const Binding&, const StepCallbacks& = {});
  /// Forward only. Keys that no finished step has seen contribute nothing, unless their rows exist from the start.
  void evaluate(Context&, const BatchTensors&, const Network::Binding&);

  /// The weighted sum of all losses and the penalties, over all ranks; and the prediction of the only or the first
  /// loss.
  Tensor loss(Phase phase) const { return network(phase).loss(); }
  Tensor prediction(Phase phase) const { return network(phase).prediction(); }
  /// The losses of the config, named by their tops, in its order. With several losses: the value of each (unweighted,
  /// without penalties; over all ranks after evaluate(), of this rank after train_step()) and its prediction.
  std::vector<std::string> tasks() const;
  std::vector<Tensor> losses(Phase phase) const { return network(phase).losses(); }
  std::vector<Tensor> predictions(Phase phase) const { return network(phase).predictions(); }
  std::vector<Tensor> labels(Phase phase, const Network::Binding& binding) const {
    return network(phase).labels(binding);
  }
  // For scoring with caller-owned memory, on one rank.
  const Weights& weights() const { return weights_; }
  const LayerState& layer_state() const { return state_; }
  Runtime& runtime() const { return runtime_; }
  Embedding& embedding(size_t e) { return *tables_[e]; }
  /// Adds the penalties on weights to the loss of a network. One thread at a time.
  void add_penalties(Context&, const Network&) const;
  /// The graph of training batches.
  const Graph& graph() const { return train_graph_; }
  int64_t dense_parameters() const { return train_graph_.parameters; }
  int64_t embedding_rows() const;
  /// Embedding::have_rows() of one embedding.
  std::vector<uint8_t> have_rows(size_t embedding, std::span<const SlotKey> keys) {
    return tables_[embedding]->have_rows(keys);
  }
  /// Whether steps and evaluations can be recorded whole (Embedding::fixed_sizes), and the bytes that this rank has
  /// sent to other hosts.
  bool fixed_sizes() const;
  BytesBetweenHosts bytes_between_hosts() const;
  size_t embeddings() const { return tables_.size(); }
  const TableSpec& table_spec(size_t embedding) const {
    return tables_.empty() ? specs_of_others_[embedding] : tables_[embedding]->spec();
  }
  /// Numbers in the vectors of all embeddings for a training batch of this rank.
  int64_t embedding_elements() const;
  /// EmbeddingTable::counts of each table with a row policy; also "index_places" as below and, if this rank has rows
  /// there, "rows_in_host_memory", "bytes_in_host_memory", "bytes_on_gpu" and the counts of rows on disk. Waits for
  /// queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_counts() const;
  /// For each other table: "rows" and, if it finds rows by hash, "index_places", the slots of its index; both over all
  /// ranks. Collective. Waits for queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_rows() const;
  /// Bytes by part: weights with gradients and optimizer states, and activations, of this rank; the rows of each table
  /// with their states, over all ranks. Excludes indices, exchange buffers and libraries. Collective. Waits for queued
  /// steps.
  std::vector<std::pair<std::string, int64_t>> memory_parts() const;
  /// The names of tables with a trained shared row, which model files omit.
  std::vector<std::string> tables_with_shared_row() const;
  /// The loss scale and the number of skipped steps, if the model uses loss scaling. Waits for queued steps.
  std::optional<ops::LossScale> loss_scale() const;
  /// The loss scale on the device, readable at any time; null: no step is skipped.
  const ops::LossScale* loss_scale_state() const { return scaler_ ? scaler_->state() : nullptr; }
  /// Whether a step is skipped when one of its gradients is infinite or NaN: loss_scale() has a value.
  bool skips_steps() const { return scaler_.has_value(); }

  /// Writes <prefix>_dense_<iteration>.model, <prefix><k>_sparse_<iteration>.model, their companion files, and their
  /// manifest, which is renamed into place last. Returns their paths: the dense model, then the tables, last the
  /// manifest. Finishes work queued before. Keys have the width of the config; by default `data_key_bytes`, or 8 if a
  /// loaded key needs it. `with_states`: saves optimizer states even if the config does not ask for them. Errors: those
  /// of rank 0, on every rank; then none of the files exists under its name.
  std::vector<std::filesystem::path> save(const std::string& prefix, int64_t iteration, int data_key_bytes = 8,
                                          const ModelOrigin& = {}, bool with_states = false);
  // Deltas: the rows that changed since the run's last model or delta.
  /// Notes that a saved model has all rows as they are now: the next delta holds the changes from here on.
  void note_model();
  /// Collects the changes since the model of iteration `base`, and notes that a saved model has them. Returns, on rank
  /// 0, the delta to write to the folder of `prefix`; null on other ranks. Writes the dense part here.
  /// PendingDelta::write() writes the rows, on any thread, unless they take more than half of the free memory. Errors:
  /// those of rank 0, on every rank; then the next delta has the same base.
  std::unique_ptr<PendingDelta> save_delta(const std::string& prefix, int64_t iteration, int64_t base,
                                           int data_key_bytes, const ModelOrigin&);
  /// Checks and loads the files that the solver section names, and the statistics of layers if their file is next to
  /// the dense model. Errors: those of check_model_files(), on every rank, and of the files.
  void load(const Log& = Log::silent());

  /// Freezes or unfreezes an embedding, or a layer by its first top: its weights, rows and states no longer change.
  /// Call it with no step queued; recorded steps must be recorded again.
  void freeze(const std::string& name, bool frozen);

  /// StepState::updates_before of training: Adam's t of the loaded optimizer states, else 0.
  int64_t updates_before() const { return updates_before_; }

  // For exports, with nothing queued.
  std::vector<NamedTensor> dense_weights() const { return weights_.values(); }
  std::vector<NamedTensor> layer_statistics() const { return state_.values(); }
  /// Collective. Passes the rows of an embedding to `sink` on rank 0, sorted by (slot, key).
  void export_rows(size_t embedding, const std::function<void(const RowBlock&)>& sink) {
    tables_[embedding]->export_rows(false, sink);
  }

  // For checkpoints, with nothing queued.
  /// Saves this rank's part. Not collective.
  void save_state(StateWriter, const ModelParts& = {});
  /// Restores the state, in place of load(): exactly, or redistributed onto other ranks. Errors: those of StateReader.
  void load_state(const StateReader&, const ModelParts& = {});
  /// Call it instead of load(), in a run after `iteration` steps: restores the given parts from `kept`, which
  /// save_state() of this model wrote, and loads the other parts from the files that the solver names. Adam's t comes
  /// from the states in these files; if they have none, t continues, or restarts at 0 if no part is kept.
  void load_beside(const StateReader& kept, const ModelParts&, int64_t iteration, const Log&);

 private:
  /// The exchange of keys in its three calls, each for all tables before the next one.
  int key_bytes_of_files(int data_key_bytes) const;
  ModelManifest manifest(const std::string& prefix, int64_t iteration, const ModelOrigin&) const;
  /// Collective. On rank 0 adds "index_places", summed over ranks, for a table with an index.
  void add_index_places(Embedding&, std::map<std::string, int64_t>& counts) const;
  /// Fetches the rows of the batch that are on disk. Waits for the stream of the context.
  void bring_rows(Context&, int buffer, const BatchTensors&);
  void write_lengths(Context&, const BatchTensors&, const Network&) const;
  StepFacts step_facts(const Network::Binding&) const;
  /// A step being queued: the arguments that calls outside of the recording need too.
  struct StepOf {
    int buffer;
    BatchTensors batch;
    std::shared_ptr<const StepPlan> plan;
    std::shared_ptr<StepEvents> events;
    StepCallbacks callbacks;
  };
  // Runs a call of a plan, with a context on its stream. The first returns whether it is a call of tables.
  bool run_of_tables(Context&, const PlannedCall&, const StepOf&);
  void run_of_table(Context&, const PlannedCall&, const StepOf&);
  void run_of_model(Context&, const PlannedCall&, const StepOf&, std::span<const Lockstep::LateResult> grouped);
  /// The overflow check of the gradient of a table's vectors, in the dtype in which it is sent.
  ops::OverflowSearch search_of_table(size_t table, const Tensor& gradient) const;
  /// The tensors to check for overflow before these wgrads are computed: all other gradients, and the operands of
  /// these.
  std::vector<Tensor> searched_instead_of(std::span<const Lockstep::LateResult>) const;
  void add_penalty_gradients(Context&, size_t node) const;
  bool has_penalty() const;
  /// The factors of the penalty in the loss and in the gradients: 1, unless the penalty is per GPU for compatibility.
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
  std::vector<TableSpec> specs_of_others_;  // of tables elsewhere
  bool wide_keys_loaded_ = false;           // a loaded model has keys that 4 bytes do not hold
  int64_t updates_before_ = 0;              // of the run that loaded optimizer states came from
  StepFacts facts_of_tables_;               // without layers
};

}  // namespace hctr
