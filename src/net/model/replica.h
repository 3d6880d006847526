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

/// What the manifest of model files says of the run that saves them.
struct ModelOrigin {
  std::string run;  ///< its id
  Json data{};      ///< fingerprint of the training data
  std::string run_folder = {};
};

class PendingDelta;

/// Some of the parts of a model: dense weights with the statistics of layers, and tables.
struct ModelParts {
  bool dense = true;
  std::vector<bool> tables{};  ///< by embedding; empty: all
  bool has_table(size_t e) const { return tables.empty() || tables[e]; }
};

/// The graph of a config for batches of `samples`, with the layers that one layer computes joined. The config outlives
/// it.
Graph wired_graph(const Config&, int64_t samples, Phase);

/// The tensors of one batch on the device.
struct BatchTensors {
  StepState* state = nullptr;  ///< scalars of the step, for its Context
  Tensor label;
  std::optional<Tensor> dense;
  std::vector<Tensor> keys, offsets;  ///< per sparse input
};

/// Called once while a step is queued, each as soon as the named result is. Work that it queues on its context comes
/// behind that result, and the step waits for it.
struct StepCallbacks {
  /// The loss, before every update. It may set batch.state->skip, unless Replica::skips_steps().
  std::function<void(Context&)> loss_known{};
  /// The gradients of all embeddings, if the plan of the step has a prefetch point (StepPlan::has_prefetch_point): a
  /// good time to prepare the next batch.
  std::function<void(Context&)> prefetch_point{};
  /// For tests and traces: each call of the plan that is recorded, once it is queued.
  std::function<void(const PlannedCall&)> queued{};
};

class Replica {
 public:
  /// For training batches of `samples` rows in a ring of `ring_size` buffers, and evaluation batches of `eval_samples`.
  /// `config` outlives the model. `placements`: of each embedding on several ranks; if empty, as without a plan.
  /// ReplicaUse::score: train_step() must not be called; score_dense: nor evaluate(), and embeddings() is 0.
  Replica(const Config& config, Runtime&, Communicator&, int64_t samples, int64_t eval_samples, int ring_size,
          const std::vector<Placement>& placements = {}, ReplicaUse use = ReplicaUse::train);

  /// A network bound to a batch; in training with the plan of its step and the plan's events.
  struct Binding : Network::Binding {
    std::shared_ptr<const StepPlan> plan{};
    std::shared_ptr<StepEvents> events{};
  };
  Binding bind(Phase, const BatchTensors&) const;

  /// Host, between steps: reserves capacity in every table for the queued steps and the next one, `step`, and removes
  /// rows that have expired. Errors: Error(data) after all other tables have reserved theirs; others at once.
  void reserve_rows(int64_t step);
  /// Host, before reserve_rows(): reserves the memory that tables will need for the next step, so that ranks can agree
  /// on an error before any of them begins it. The model is unchanged. Not collective. Returns whether a table has got
  /// memory for more rows. Errors: Error(device).
  bool reserve_memory();
  /// Host memory that save() needs at most on this rank, for the rows that tables have memory for. Not collective.
  size_t bytes_to_save() const;
  /// Holds the memory of the device that save() needs on this rank, so that it does not fail where the device has no
  /// more. Errors: Error(device).
  void hold_memory_to_save();
  /// Whether that has changed the work of a step (Embedding::consume_rerecord_flag).
  bool consume_rerecord_flag();
  /// Host, once prepare() of the next step, in `buffer`, is queued and before train_step() is. Errors: Error(data) when
  /// the batch exceeds the row limit of a table, and those of RowTiers::bring_rows(); the model is unchanged then.
  void confirm_capacity(int buffer) const;
  /// After confirm_capacity(): removes rows from tables that exceed their limit.
  void enforce_limit(int buffer);
  /// Whether a table may refuse a batch in reserve_rows() or confirm_capacity(). The same on every rank.
  bool may_refuse() const;
  /// Host, any time: throws if a batch so far, in training or evaluation, held a key outside the range that the config
  /// gives. Such a key had no effect. reserve_rows() checks too. Errors: Error(data).
  void check_keys() const;
  /// Any thread, any time: Embedding::look_ahead() of each embedding, for the keys that its sparse input will have.
  void look_ahead(size_t sparse_input, std::span<const ops::RowOwner> keys);
  /// Embedding::disk_fetched() of all embeddings.
  DiskRows::Fetched disk_fetched() const;
  // `recording`: of the program that calls, or null. What is exchanged between hosts stays outside of it, and what the
  // host does for rows on a disk.
  /// Host, after reserve_rows(): whether it has changed the work of look_up() alone, so that recorded ones must be
  /// recorded again. Resets that.
  bool consume_look_up_flag();
  // Both may run concurrently with the previous step; and exchange_keys() with look_up() of the batch before, where the
  // plan has StepChoices::keys_ahead.
  /// On several ranks: sends the keys of the batch in `buffer` to the owners of their rows.
  void exchange_keys(Context&, Recording*, int buffer, const BatchTensors&);
  /// After that: looks up, inserts and sorts the keys.
  void look_up(Context&, Recording*, int buffer, const BatchTensors&);
  /// One after the other.
  void prepare(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch) {
    exchange_keys(ctx, recording, buffer, batch);
    look_up(ctx, recording, buffer, batch);
  }
  /// Forward, backward, exchange, update. Leaves the loss in loss(Phase::train). With fp16, also sets batch.state: the
  /// loss scale, the count of updates, and whether the step is skipped.
  void train_step(Context&, Recording*, int buffer, const BatchTensors&, const Binding&, const StepCallbacks& = {});
  /// Forward only. Keys that no finished step has seen contribute nothing, unless their rows exist from the start.
  void evaluate(Context&, const BatchTensors&, const Network::Binding&);

  /// The weighted sum of all losses and the penalties, over all ranks; and the prediction of the only loss, or of the
  /// first.
  Tensor loss(Phase phase) const { return network(phase).loss(); }
  Tensor prediction(Phase phase) const { return network(phase).prediction(); }
  /// The losses of the config, by their tops and in its order. With several, the value of each (unweighted, without
  /// penalties; of all ranks after evaluate(), of this rank after train_step()) and its prediction.
  std::vector<std::string> tasks() const;
  std::vector<Tensor> losses(Phase phase) const { return network(phase).losses(); }
  std::vector<Tensor> predictions(Phase phase) const { return network(phase).predictions(); }
  std::vector<Tensor> labels(Phase phase, const Network::Binding& binding) const {
    return network(phase).labels(binding);
  }
  // For whoever computes scores with memory of its own, on one rank.
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
  /// Embedding::have_rows() of an embedding.
  std::vector<uint8_t> have_rows(size_t embedding, std::span<const SlotKey> keys) {
    return tables_[embedding]->have_rows(keys);
  }
  /// Whether steps and evaluations can be recorded whole (Embedding::fixed_sizes), and what this rank has sent to other
  /// hosts.
  bool fixed_sizes() const;
  BytesBetweenHosts bytes_between_hosts() const;
  size_t embeddings() const { return tables_.size(); }
  const TableSpec& table_spec(size_t embedding) const {
    return tables_.empty() ? specs_of_others_[embedding] : tables_[embedding]->spec();
  }
  /// Numbers in the vectors of all embeddings for a training batch of this rank.
  int64_t embedding_elements() const;
  /// EmbeddingTable::counts of each table with a row policy, with "index_places" as below, and "rows_in_host_memory",
  /// "bytes_in_host_memory" and "bytes_on_gpu" of this rank where it has any there; likewise what it has on a disk.
  /// Waits for queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_counts() const;
  /// Of each other table the number of rows, as "rows", and where they are found by hash the places of the index, as
  /// "index_places", both of all ranks. Collective. Waits for queued steps.
  std::map<std::string, std::map<std::string, int64_t>> table_rows() const;
  /// Bytes by part: weights with gradients and optimizer states, and activations, of this rank; the rows of each table
  /// with their states, of all ranks together. Without indices, exchange buffers and libraries. Collective. Waits for
  /// queued steps.
  std::vector<std::pair<std::string, int64_t>> memory_parts() const;
  /// The names of tables with a trained shared row, which model files do not hold.
  std::vector<std::string> tables_with_shared_row() const;
  /// The loss scale and the number of skipped steps, if the model uses loss scaling. Waits for queued steps.
  std::optional<ops::LossScale> loss_scale() const;
  /// The same on the device, any time; null: no step is skipped.
  const ops::LossScale* loss_scale_state() const { return scaler_ ? scaler_->state() : nullptr; }
  /// Whether a step is skipped when one of its gradients is infinite or NaN: loss_scale() has a value.
  bool skips_steps() const { return scaler_.has_value(); }

  /// Writes <prefix>_dense_<iteration>.model and <prefix><k>_sparse_<iteration>.model, what belongs to them, and their
  /// manifest, which gets its name last; returns their paths, first the dense model, then the tables, last the
  /// manifest. Work queued before is finished first. The width of keys is that of the config; if it gives none,
  /// `data_key_bytes`, or 8 if a loaded key needs it. `with_states`: of the optimizer, also where the config does not
  /// ask for them. Errors: those of rank 0, on every rank; then none of the files has its name.
  std::vector<std::filesystem::path> save(const std::string& prefix, int64_t iteration, int data_key_bytes = 8,
                                          const ModelOrigin& = {}, bool with_states = false);
  // Deltas: what has changed since the last model, whole or a delta, of this run.
  /// Notes that a model has all rows as they are now: the next delta is of what changes from here on.
  void note_model();
  /// Takes what has changed since the model of iteration `base`, and notes that a model has it. On rank 0 what is to be
  /// written to the folder of `prefix`, nothing on the others. The dense part is written here, rows by
  /// PendingDelta::write(), which another thread may call, unless they take more than half of the free memory. Errors:
  /// those of rank 0, on every rank; then the next delta is of the same base.
  std::unique_ptr<PendingDelta> save_delta(const std::string& prefix, int64_t iteration, int64_t base,
                                           int data_key_bytes, const ModelOrigin&);
  /// Checks and loads what the solver section names, and the statistics of layers if their file is next to the dense
  /// model. Errors: those of check_model_files(), on every rank, and of the files.
  void load(const Log& = Log::silent());

  /// Layers by their first top, or an embedding: whether their weights, rows and states stay as they are from now on.
  /// With no step queued, and recorded steps must be recorded again.
  void freeze(const std::string& name, bool frozen);

  /// StepState::updates_before of training: t of Adam that belongs to loaded optimizer states, else 0.
  int64_t updates_before() const { return updates_before_; }

  // For exports, with nothing queued.
  std::vector<NamedTensor> dense_weights() const { return weights_.values(); }
  std::vector<NamedTensor> layer_statistics() const { return state_.values(); }
  /// Collective. Passes the rows of an embedding to `sink` on rank 0, sorted by (slot, key).
  void export_rows(size_t embedding, const std::function<void(const RowBlock&)>& sink) {
    tables_[embedding]->export_rows(false, sink);
  }

  // For checkpoints, with nothing queued.
  /// Saves what this rank holds. Not collective.
  void save_state(StateWriter, const ModelParts& = {});
  /// Takes the state back, in place of load(): exactly as it was, or onto other ranks. Errors: those of StateReader.
  void load_state(const StateReader&, const ModelParts& = {});
  /// In place of load(), in a run after `iteration` steps: takes from `kept` what save_state() of its model has given
  /// of these parts, and the others from the files that the solver names. t of Adam is that of the states in them;
  /// without any it goes on, or starts anew where no part is kept.
  void load_beside(const StateReader& kept, const ModelParts&, int64_t iteration, const Log&);

 private:
  /// The exchange of keys in its three calls, each for all tables before the next one.
  int key_bytes_of_files(int data_key_bytes) const;
  ModelManifest manifest(const std::string& prefix, int64_t iteration, const ModelOrigin&) const;
  /// Collective. On rank 0 "index_places" of all ranks, where the table has an index.
  void add_index_places(Embedding&, std::map<std::string, int64_t>& counts) const;
  /// Brings the rows of the batch that are on a disk. The stream of the context is waited for.
  void bring_rows(Context&, int buffer, const BatchTensors&);
  void write_lengths(Context&, const BatchTensors&, const Network&) const;
  StepFacts step_facts(const Network::Binding&) const;
  /// A step that is being queued: what calls outside of the recording need of it, too.
  struct StepOf {
    int buffer;
    BatchTensors batch;
    std::shared_ptr<const StepPlan> plan;
    std::shared_ptr<StepEvents> events;
    StepCallbacks callbacks;
  };
  // A call of a plan, with a context of its stream. The first returns whether it is one of tables.
  bool run_of_tables(Context&, const PlannedCall&, const StepOf&);
  void run_of_table(Context&, const PlannedCall&, const StepOf&);
  void run_of_model(Context&, const PlannedCall&, const StepOf&, std::span<const Lockstep::LateResult> grouped);
  /// For the gradient of a table's vectors, as it is sent.
  ops::OverflowSearch search_of_table(size_t table, const Tensor& gradient) const;
  /// What is searched for overflow before these gradients of weights are computed: all others, and operands of these.
  std::vector<Tensor> searched_instead_of(std::span<const Lockstep::LateResult>) const;
  void add_penalty_gradients(Context&, size_t node) const;
  bool has_penalty() const;
  /// The weight of the penalty in the loss and in the gradients: 1, unless it is per GPU for compatibility.
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
