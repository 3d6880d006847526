// Saves and loads the model: model files and checkpoints.
#include <algorithm>

#include "core/base/current_error.h"
#include "core/comm/collective_error.h"
#include "formats/model/access_stats_file.h"
#include "formats/model/sparse_file.h"
#include "hctr/formats.h"
#include "net/model/model_delta.h"
#include "net/model/model_files.h"
#include "net/model/replica.h"

namespace hctr {
namespace {

constexpr size_t kBytesOfSmallFiles = 4 << 20;  // bytes for manifest, names and file buffers

/// The key width that the config sets for model files; 0 if not set.
int stated_key_bytes(const SolverSection& solver) {
  return !solver.input_key_type ? 0 : *solver.input_key_type == KeyType::i32 ? 4 : 8;
}

/// Logs the parts that start with initial values although a model is loaded. `tables`: the number of tables of the
/// replica.
void report_missing(const Config& config, size_t tables, const Log& log) {
  const SolverSection& solver = config.solver;
  if (solver.dense_model_file.empty() && solver.sparse_model_file.empty()) return;
  std::string missing;
  const auto add = [&](const std::string& what) { missing += (missing.empty() ? "" : ", ") + what; };
  if (solver.dense_model_file.empty()) add("the dense weights");
  if (const auto& chosen = solver.load_layers; !chosen.empty()) {
    std::string layers;
    for (const std::string& layer : chosen) layers += cat(layers.empty() ? "'" : ", '", layer, "'");
    add(cat("all layers but ", layers));
  }
  for (size_t e = 0; e < tables; ++e) {
    const std::string& name = config.embeddings[e].section.top();
    const bool vectors = std::any_of(solver.pretrained.begin(), solver.pretrained.end(),
                                     [&](const Pretrained& from) { return from.table == name; });
    if (!vectors && (solver.sparse_model_file.empty() || solver.sparse_model_file[e].empty()))
      add(cat("table '", name, "'"));
  }
  if (!missing.empty())
    log.info("note: no file was named for the following parts, so they keep their initial values: ", missing);
}

}  // namespace

int Replica::key_bytes_of_files(int data_key_bytes) const {
  const int stated = stated_key_bytes(config_.solver);
  return stated > 0 ? stated : wide_keys_loaded_ ? 8 : data_key_bytes;
}

ModelManifest Replica::manifest(const std::string& prefix, int64_t iteration, const ModelOrigin& origin) const {
  const auto scale = loss_scale();
  ModelManifest manifest{.run = origin.run,
                         .run_folder = origin.run_folder,
                         .iteration = iteration,
                         .updates = updates_before_ + iteration - (scale ? scale->skipped : 0),
                         .config = config_.effective,
                         .data = origin.data,
                         .statistics = config_.data.statistics,
                         .prefix = prefix};
  for (const EmbeddingEntry& embedding : config_.embeddings)
    manifest.tables.push_back({embedding.section.top(), embedding.section.dim, embedding.section.identity_by_slot()});
  return manifest;
}

std::vector<std::filesystem::path> Replica::save(const std::string& prefix, int64_t iteration, int data_key_bytes,
                                                 const ModelOrigin& origin, bool states_too) {
  const int key_bytes = key_bytes_of_files(data_key_bytes);
  const bool with_states = states_too || config_.solver.snapshot_opt_states;
  comm_.barrier();  // ranks wait in collective calls until rank 0 has written all files
  std::vector<std::filesystem::path> files = {formats::dense_model_name(prefix, iteration)}, others;
  const std::filesystem::path manifest_path = formats::model_manifest_name(prefix, std::to_string(iteration));
  FileSet set;
  AtomicFile* to_manifest = nullptr;
  std::optional<Error> failed;
  // keeps rank 0's error in `failed`, because an exception here would leave the other ranks waiting
  const auto on_writer = [&](const auto& body) {
    if (comm_.rank() != 0 || failed) return false;
    failed = error_of(body);
    return true;
  };
  // the first file of the set is renamed into place last
  on_writer([&] { to_manifest = &set.add(manifest_path); });
  // dense weights are equal on all ranks, so rank 0 writes them
  on_writer([&] { weights_.save(set, files[0], runtime_.compute_stream()); });
  others.push_back(Weights::layout_path(files[0]));
  if (with_states) {
    others.emplace_back(formats::dense_opt_states_name(prefix, iteration));
    on_writer([&] { weights_.save_opt_states(set, others.back(), runtime_.compute_stream()); });
  }
  for (size_t e = 0; e < tables_.size(); ++e) {
    const auto number = static_cast<int64_t>(e);
    SparseTarget to{.path = formats::sparse_model_name(prefix, number, iteration),
                    .format = config_.solver.model_format,
                    .key_bytes = key_bytes};
    files.push_back(to.path);
    if (tables_[e]->spec().policy.keeps_access_stats()) others.push_back(access_stats_path(to.path));
    if (with_states) {
      to.states = formats::sparse_opt_states_name(prefix, number, iteration);
      to.rows = tables_[e]->rows();
      others.push_back(to.states);
    }
    if (!on_writer([&] { save_sparse(set, *tables_[e], to); }))
      tables_[e]->export_rows(with_states, [](const RowBlock&) {});  // sends rows to rank 0
  }
  if (!state_.empty()) {
    others.push_back(LayerState::path_for(files[0]));
    on_writer([&] { state_.save(set, others.back(), runtime_.compute_stream()); });
  }
  files.insert(files.end(), others.begin(), others.end());
  files.push_back(manifest_path);
  on_writer([&] { write_model_manifest(set, *to_manifest, manifest(prefix, iteration, origin)); });
  on_writer([&] { set.commit(); });
  comm_.barrier();  // from here on, files are complete for every rank
  throw_on_all_ranks(comm_, failed);
  return files;
}

size_t Replica::bytes_to_save() const {
  int64_t most = 0;  // maximum over tables, which are saved one after another
  for (const auto& table : tables_)
    most = std::max(most, table->bytes_to_export(config_.solver.snapshot_opt_states, comm_.size()));
  return static_cast<size_t>(most) + kBytesOfSmallFiles + static_cast<size_t>(dense_parameters()) * sizeof(float);
}

void Replica::hold_memory_to_save() {
  int64_t most = 0;  // maximum over tables, which are saved one after another
  for (const auto& table : tables_)
    most = std::max(most, table->device_bytes_to_export(config_.solver.snapshot_opt_states));
  runtime_.held_memory().hold(runtime_.device(), static_cast<size_t>(most));
  for (const auto& table : tables_) table->load_export_kernels();
}

void Replica::note_model() {
  for (const auto& table : tables_) table->note_model();
}

std::unique_ptr<PendingDelta> Replica::save_delta(const std::string& prefix, int64_t iteration, int64_t base,
                                                  int data_key_bytes, const ModelOrigin& origin) {
  comm_.barrier();  // until the end of this call, ranks wait for rank 0
  std::unique_ptr<PendingDelta> delta;
  std::optional<Error> failed;
  const auto on_writer = [&](const auto& body) {
    if (comm_.rank() == 0 && !failed) failed = error_of(body);
  };
  on_writer([&] {
    delta = std::make_unique<PendingDelta>(prefix, iteration,
                                           SavedDelta{.base = base, .key_bytes = key_bytes_of_files(data_key_bytes)},
                                           config_.solver.model_format);
    const fs::path dense = delta->dense_path();
    weights_.save(delta->files(), dense, runtime_.compute_stream());
    if (!state_.empty()) state_.save(delta->files(), LayerState::path_for(dense), runtime_.compute_stream());
  });
  for (const auto& table : tables_) {
    on_writer([&] { delta->begin_table(table->spec(), table->counted_steps()); });
    table->export_rows({false, true}, [&](const RowBlock& block) { on_writer([&] { delta->add(block); }); });
    const std::vector<SlotKey> removed = table->removed_keys();
    const int64_t rows = table->rows();
    on_writer([&] { delta->end_table(removed, rows); });
  }
  on_writer([&] { delta->set_manifest(manifest(delta->prefix(), iteration, origin)); });
  throw_on_all_ranks(comm_, failed);
  note_model();
  return delta;
}

void Replica::load(const Log& log) {
  const SolverSection& solver = config_.solver;
  run_on_all_ranks(comm_, [&] {
    if (comm_.rank() == 0) updates_before_ = check_model_files(config_, log);
  });
  updates_before_ = std::stoll(comm_.broadcast(std::to_string(updates_before_), 0));
  // Rank 0 decides whether access statistics are loaded, so that either all ranks load them or none.
  const auto with_access_stats = [&](const std::string& file) {
    return comm_.broadcast(has_access_stats(file) ? "yes" : "", 0) == "yes";
  };
  if (const std::string& dense = solver.dense_model_file; !dense.empty()) {
    Context ctx(runtime_, runtime_.compute_stream());
    weights_.load(dense, ctx, solver.load_layers);
    if (!solver.dense_opt_states_file.empty())
      weights_.load_opt_states(solver.dense_opt_states_file, runtime_.compute_stream());
    if (const auto path = LayerState::path_for(dense); !state_.empty()) {
      if (std::filesystem::exists(path) && !solver.load_layers.empty())
        state_.load_layers(path, solver.load_layers, runtime_.compute_stream(), log);
      else if (std::filesystem::exists(path))
        state_.load(path, runtime_.compute_stream(), log);
      else
        log.info("note: there is no '", path.string(), "': running statistics of layers are reset");
    }
  }
  for (size_t e = 0; e < solver.sparse_model_file.size(); ++e) {
    const std::string& file = solver.sparse_model_file[e];
    if (file.empty()) continue;
    const SparseOrigin from{.path = file,
                            .key_bytes = stated_key_bytes(solver),
                            .with_access_stats = with_access_stats(file),
                            .states = solver.sparse_opt_states_file.empty() ? "" : solver.sparse_opt_states_file[e],
                            .updates = updates_before_};
    wide_keys_loaded_ |= load_sparse(*tables_[e], from, log);
  }
  for (const Pretrained& vectors : solver.pretrained)
    for (size_t e = 0; e < tables_.size(); ++e)
      if (config_.embeddings[e].section.top() == vectors.table)
        wide_keys_loaded_ |= load_pretrained(vectors, *tables_[e], log);
  report_missing(config_, tables_.size(), log);
}

void Replica::save_state(StateWriter to, const ModelParts& parts) {
  if (to.rank() == 0) {  // these parts of the state are equal on all ranks, so rank 0 saves them
    if (parts.dense) weights_.save_state(to.in("weights"));
    if (scaler_) scaler_->save_state(to.in("loss"));
    if (!fp8_scales_.empty()) fp8_scales_.save_state(to.in("fp8"));
  }
  // with "batch_norm_per_gpu" the layer state differs between ranks
  if (parts.dense) state_.save_state(to.in("layers"));
  to.number("wide_keys", wide_keys_loaded_);
  to.number("updates_before", updates_before_);
  for (size_t e = 0; e < tables_.size(); ++e)
    if (parts.has_table(e)) tables_[e]->save_state(to.in(cat("tables/", e)));
}

void Replica::load_state(const StateReader& from, const ModelParts& parts) {
  const StateReader first = from.of_rank(0), own = from.exact() ? from : from.of_rank(from.rank() % from.ranks());
  Context ctx(runtime_, runtime_.compute_stream());
  if (parts.dense) weights_.load_state(first.in("weights"), ctx);
  // the entry is missing if the run that wrote the checkpoint had no loss scaling
  if (scaler_ && first.in("loss").has("scale")) scaler_->load_state(first.in("loss"));
  if (!fp8_scales_.empty()) fp8_scales_.load_state(first.in("fp8"));
  if (parts.dense) state_.load_state(own.in("layers"));
  wide_keys_loaded_ = own.number("wide_keys") != 0;
  updates_before_ = own.number("updates_before");
  for (size_t e = 0; e < tables_.size(); ++e)
    if (parts.has_table(e)) tables_[e]->load_state(from.in(cat("tables/", e)));
  runtime_.compute_stream().synchronize();
}

void Replica::load_beside(const StateReader& kept, const ModelParts& parts, int64_t iteration, const Log& log) {
  load(log);
  const int64_t updates_of_files = updates_before_;
  const bool wide = wide_keys_loaded_, any_kept = parts.dense || std::ranges::count(parts.tables, true) > 0;
  load_state(kept, parts);
  wide_keys_loaded_ |= wide;
  if (!any_kept || updates_of_files > 0) {
    const auto scale = loss_scale();
    updates_before_ = updates_of_files - iteration + (scale ? scale->skipped : 0);
  }
}

}  // namespace hctr
