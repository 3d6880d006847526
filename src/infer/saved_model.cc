#include "infer/saved_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "config/config_file.h"
#include "core/base/expect.h"
#include "formats/catalog/first_rows.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/model/model_manifest.h"
#include "formats/parquet/parquet_options.h"
#include "formats/parquet/parquet_set.h"
#include "hctr/formats.h"
#include "infer/models_at_prefix.h"
#include "infer/run_ids.h"
#include "infer/saved_snapshots.h"

namespace hctr {
namespace {

/// The name of a layer: its first top.
std::string layer_name(const Json& layer) {
  const Json* top = layer.find("top");
  if (top && top->array() && !top->array()->empty()) top = &(*top->array())[0];
  return top && top->string() ? *top->string() : "";
}

/// Describes the layers that differ between a saved config and this config; empty if there are none.
std::string layer_differences(const Json* saved, const Config& config) {
  const Json *was = saved ? saved->find("layers") : nullptr, *is = config.effective.find("layers");
  if (!was || !was->array() || !is || !is->array()) return "";
  const auto by_name = [](const Json::Array& layers) {
    std::map<std::string, std::string> texts;
    for (size_t i = 1; i < layers.size(); ++i) texts[layer_name(layers[i])] = layers[i].text().substr(0, 300);
    return texts;
  };
  const auto before = by_name(*was->array()), now = by_name(*is->array());
  std::string text;
  const auto add = [&](const std::string& difference) { text += cat(text.empty() ? "" : "; ", difference); };
  for (const auto& [name, layer] : before)
    if (!now.contains(name))
      add(cat("layer '", name, "' was ", layer, " in the model and is missing in the config"));
    else if (now.at(name) != layer)
      add(cat("layer '", name, "' was ", layer, " and is ", now.at(name)));
  for (const auto& [name, layer] : now)
    if (!before.contains(name))
      add(cat("layer '", name, "' is ", layer,
              " in the config and is missing in the "
              "model"));
  return text;
}

std::string tables_of(const Config& config) {
  std::string names;
  for (const EmbeddingEntry& embedding : config.embeddings)
    names += cat(names.empty() ? "'" : ", '", embedding.section.top(), "'");
  return names.empty() ? "none" : names;
}

[[noreturn]] void fail_tables(const SavedModel& model, const Config& config) {
  throw Error(Kind::data,
              cat(model.name, " has ", model.tables.size(), model.tables.size() == 1 ? " table" : " tables",
                  ", but the config has ", config.embeddings.size(), " (", tables_of(config),
                  "): the model belongs to another config", model.differences.empty() ? "" : "; ", model.differences));
}

/// The field "numbering" of the description of a model's training data; empty if missing.
std::string numbering_in(const Json* data) {
  const Json* numbering = data ? data->find("numbering") : nullptr;
  return numbering && numbering->string() ? *numbering->string() : "";
}

/// Checks a model with fewer table files than the config has tables. Errors: Error(io) naming a missing table file. If
/// the model has a manifest, the files of all tables in the manifest must exist. Otherwise, the files of all tables up
/// to the last existing file must exist.
void expect_no_file_missing(const std::string& prefix, int64_t iteration, size_t of_config, const SavedModel& model) {
  const auto manifest = manifest_of(model.dense);
  const auto file_of = [&](size_t table) {
    return formats::sparse_model_name(prefix, static_cast<int64_t>(table), iteration);
  };
  size_t saved = manifest ? manifest->tables.size() : 0;
  for (size_t e = 0; !manifest && e < of_config; ++e)
    if (fs::exists(file_of(e))) saved = e + 1;
  for (size_t e = 0; e < saved; ++e)
    if (!fs::exists(file_of(e)))
      throw Error(Kind::io,
                  cat(model.name, " lacks '", file_of(e), "'",
                      manifest ? cat(", of its table '", manifest->tables[e].name, "'") : "", ": the file is missing"));
}

/// Finds the model of an iteration at a prefix.
SavedModel model_at(const std::string& prefix, int64_t iteration, const Config& config, bool with_tables) {
  SavedModel model{.name = cat("the model '", formats::dense_model_name(prefix, iteration), "'"),
                   .iteration = iteration,
                   .dense = formats::dense_model_name(prefix, iteration)};
  for (int64_t e = 0;; ++e) {
    const std::string file = formats::sparse_model_name(prefix, e, iteration);
    if (!fs::exists(file)) break;
    model.tables.push_back(file);
  }
  if (const auto manifest = manifest_of(model.dense)) {
    model.differences = layer_differences(&manifest->config, config);
    model.encoding = encoding_change(manifest->config, &manifest->data, config, config.data.eval_source);
    model.statistics = manifest->statistics;
    model.numbering = numbering_in(&manifest->data);
    model.slot_key_rules = key_rules_of_model(manifest->config, &manifest->data);
  }
  if (!with_tables) return model;
  if (model.tables.size() < config.embeddings.size())
    expect_no_file_missing(prefix, iteration, config.embeddings.size(), model);
  if (model.tables.size() != config.embeddings.size()) fail_tables(model, config);
  return model;
}

/// Checks the dense file that a run's summary names. Errors: Error(data) if another run has since overwritten this
/// file.
void expect_own_model(const fs::path& folder, const std::string& dense) {
  const std::string run = run_in_metrics(folder / kMetrics);
  const auto manifest = manifest_of(dense);
  if (manifest && (run.empty() || manifest->run == run)) return;
  if (!manifest && fs::path(dense).parent_path() == folder) return;  // older versions of this program wrote no manifest
  throw Error(Kind::data, cat("the run folder '", folder.string(), "' names '", dense,
                              "' as its model, but this file now belongs to ",
                              manifest ? SavingRun{manifest->run, manifest->run_folder}.text() : "an unknown run",
                              ": the run's own model no longer exists"));
}

SavedModel model_of_checkpoint(const std::string& folder, const Config& config, const Log& log) {
  SavedModel model;
  model.checkpoint =
      fs::exists(fs::path(folder) / kManifestName) ? read_checkpoint(folder) : newest_checkpoint(folder, log);
  if (!model.checkpoint)
    throw Error(Kind::io, cat("'", folder, "' contains no checkpoint: neither ", kManifestName,
                              " nor a checkpoint folder exists there"));
  model.iteration = model.checkpoint->iteration;
  model.name = cat("the checkpoint '", model.checkpoint->folder.string(), "'");
  model.differences = layer_differences(model.checkpoint->manifest.about.find("config"), config);
  const Json* data = model.checkpoint->manifest.about.find("data");
  if (const Json* saved = model.checkpoint->manifest.about.find("config"))
    model.encoding = encoding_change(*saved, data, config, config.data.eval_source);
  model.statistics = statistics_of(model.checkpoint->manifest);
  model.numbering = numbering_in(data);
  if (const Json* saved = model.checkpoint->manifest.about.find("config"))
    model.slot_key_rules = key_rules_of_model(*saved, data);
  return model;
}

/// The checkpoint that a stopped run saved instead of a model. Errors: Error(io) if the checkpoint no longer exists;
/// Error(data) if it belongs to another run.
SavedModel model_where_run_stopped(const fs::path& folder, const fs::path& checkpoint, const Config& config,
                                   const Log& log) {
  const std::string stopped =
      cat("the run in '", folder.string(), "' was stopped with its state in checkpoint '", checkpoint.string(), "'");
  if (!fs::exists(checkpoint / kManifestName))
    throw Error(Kind::io, cat(stopped,
                              ", which no longer exists: the run continued. For the newest checkpoint use "
                              "--model ",
                              checkpoint.parent_path().string()));
  SavedModel model = model_of_checkpoint(checkpoint.string(), config, log);
  const Json* const run = model.checkpoint->manifest.about.find("run");
  if (!run || !run->string() || *run->string() != run_in_metrics(folder / kMetrics))
    throw Error(Kind::data, cat(stopped, ", which now belongs to another run"));
  return model;
}

bool is_table_file(const std::string& file) {
  const auto table = split_number(file, "_sparse_", ".model");
  return table && !table->first.empty() && table->first.find_last_of("0123456789") == table->first.size() - 1;
}

/// The final model of a run: its best model if it kept one, otherwise its last model.
SavedModel model_of_run(const fs::path& folder, const Config& config, const Environment& environment, const Log& log,
                        bool with_tables) {
  const Json summary = Json::read_file(folder / kSummary);
  const Json *files = summary.find("model_files"), *best = summary.find("best_iteration");
  const Json* iterations = best ? best : summary.find("iterations");
  std::vector<std::string> found;
  for (size_t i = 0; files && files->array() && i < files->array()->size(); ++i) {
    const std::string* saved = (*files->array())[i].string();
    if (!saved || (!with_tables && is_table_file(*saved))) continue;
    fs::path file = folder / cat("final_", fs::path(*saved).filename().string());
    if (!fs::exists(file)) file = *saved;
    if (!fs::exists(file))
      throw Error(Kind::io,
                  cat("the run folder '", folder.string(), "' lacks '", fs::path(*saved).filename().string(),
                      "' of its final model: found neither '",
                      (folder / cat("final_", fs::path(*saved).filename().string())).string(), "' nor '", *saved, "'"));
    found.push_back(file.string());
  }
  const Json* checkpoint = summary.find("checkpoint");
  if (found.empty() && checkpoint && checkpoint->string())
    return model_where_run_stopped(folder, *checkpoint->string(), config, log);
  if (found.empty())
    throw Error(Kind::io,
                cat("the run in '", folder.string(),
                    "' saved no final model (\"final_snapshot\" is false): name a checkpoint of the run, or a "
                    "snapshot_prefix"));
  SavedModel model{.iteration = iterations && iterations->integer() ? *iterations->integer() : 0, .dense = found[0]};
  expect_own_model(folder, found[0]);
  model.name =
      cat("the ", best ? "best" : "final", " model of run '", folder.string(), "', iteration ", model.iteration);
  std::copy_if(found.begin() + 1, found.end(), std::back_inserter(model.tables), is_table_file);
  const auto manifest = manifest_of(model.dense);
  if (manifest) {
    model.statistics = manifest->statistics;
    model.numbering = numbering_in(&manifest->data);
    model.slot_key_rules = key_rules_of_model(manifest->config, &manifest->data);
  }
  if (fs::exists(folder / "config.json")) {
    const Json saved = read_config_file(folder / "config.json", {}, nullptr, environment);
    model.differences = layer_differences(&saved, config);
    model.encoding = encoding_change(saved, manifest ? &manifest->data : nullptr, config, config.data.eval_source);
  }
  if (with_tables && model.tables.size() != config.embeddings.size()) fail_tables(model, config);
  return model;
}

/// Throws Error(io) for a run folder without a summary, and suggests saved models.
[[noreturn]] void fail_unfinished_run(const fs::path& folder, const Environment& environment) {
  std::string hint;
  Snapshots there = snapshots_in(folder);
  there.merge(snapshots_in(folder / "models" / ""));
  for (const auto& [prefix, iterations] : there)
    hint = cat("; a model was saved at --model ", prefix, ", of iteration ", *iterations.rbegin());
  if (hint.empty() && fs::exists(folder / "config.json")) {
    const Json config = read_config_file(folder / "config.json", {}, nullptr, environment);
    const Json* solver = config.find("solver");
    const Json* prefix = solver ? solver->find("snapshot_prefix") : nullptr;
    if (prefix && prefix->string() && !prefix->string()->empty())
      hint = cat("; its snapshots are at --model ", *prefix->string());
  }
  throw Error(Kind::io, cat("the run in '", folder.string(), "' has no ", kSummary,
                            ": the run is still active, or ended with an error", hint));
}

}  // namespace

SavedConfig saved_config(const std::string& model, const Environment& environment) {
  const fs::path path(model);
  const auto of_checkpoint = [](const fs::path& folder) {
    const Manifest manifest = read_manifest(folder);
    const Json* config = manifest.about.find("config");
    return SavedConfig{config ? *config : Json(), (folder / kManifestName).string()};
  };
  SavedConfig saved;
  if (fs::exists(path / kManifestName)) {
    saved = of_checkpoint(path);
  } else if (fs::exists(path / kSummary) || fs::exists(path / kMetrics)) {
    if (fs::exists(path / "config.json"))
      saved = {read_config_file(path / "config.json", {}, nullptr, environment), (path / "config.json").string()};
  } else if (fs::is_directory(path) && !list_checkpoints(path).empty()) {
    saved = of_checkpoint(list_checkpoints(path).back().path);
  } else {
    const auto [prefix, iteration] = find_snapshot(model, "");
    if (const auto manifest = manifest_of(formats::dense_model_name(prefix, iteration)))
      saved = {manifest->config, manifest->path.string()};
  }
  if (!saved.json.object())
    throw Error(Kind::usage, cat("the model '", model, "' does not contain its config: also name the config file"));
  return saved;
}

SavedModel find_saved_model(const std::string& model, const Config& config, const Environment& environment,
                            const Log& log, bool with_tables) {
  const fs::path path(model);
  if (fs::exists(path / kManifestName)) return model_of_checkpoint(model, config, log);
  if (fs::exists(path / kSummary)) return model_of_run(path, config, environment, log, with_tables);
  if (fs::exists(path / kMetrics)) fail_unfinished_run(path, environment);
  if (fs::is_directory(path) && !list_checkpoints(path).empty()) return model_of_checkpoint(model, config, log);
  const auto [prefix, iteration] = find_snapshot(model, config.solver.snapshot_prefix);
  return model_at(prefix, iteration, config, with_tables);
}

std::vector<ColumnStatistics> statistics_of(const Manifest& manifest) {
  const Json* statistics = manifest.about.find("statistics");
  return statistics ? column_statistics(*statistics) : std::vector<ColumnStatistics>();
}

SavedModel broadcast(Communicator& comm, const SavedModel* of_rank_0) {
  Json files(Json::Array{});
  if (of_rank_0)
    for (const std::string& table : of_rank_0->tables) files.add(table);
  const std::string checkpoint =
      of_rank_0 && of_rank_0->checkpoint ? of_rank_0->checkpoint->folder.string() : std::string();
  const Json sent = !of_rank_0 ? Json()
                               : Json(Json::Object{{"name", of_rank_0->name},
                                                   {"iteration", of_rank_0->iteration},
                                                   {"dense", of_rank_0->dense},
                                                   {"tables", files},
                                                   {"statistics", to_json(of_rank_0->statistics)},
                                                   {"slot_keys", to_json(of_rank_0->slot_key_rules)},
                                                   {"differences", of_rank_0->differences},
                                                   {"checkpoint", checkpoint}});
  const Json got = Json::parse(comm.broadcast(sent.text(), 0), "the model of rank 0");
  SavedModel model{.name = *got.find("name")->string(),
                   .iteration = *got.find("iteration")->integer(),
                   .dense = *got.find("dense")->string(),
                   .statistics = column_statistics(*got.find("statistics")),
                   .slot_key_rules = slot_key_rules_of(got),
                   .differences = *got.find("differences")->string()};
  for (const Json& table : *got.find("tables")->array()) model.tables.push_back(*table.string());
  if (of_rank_0)
    model.checkpoint = of_rank_0->checkpoint;
  else if (const std::string& folder = *got.find("checkpoint")->string(); !folder.empty())
    model.checkpoint = {.folder = folder, .manifest = read_manifest(folder), .iteration = model.iteration};
  return model;
}

void use_saved_model(const SavedModel& model, Config& config) {
  config.data.statistics = select_statistics(config.data, model.statistics, model.name);
  if (config.data.format == kParquetFormat) {
    auto& options = config.data.options.edit<ParquetOptions>();
    options.known_rules = model.slot_key_rules;
    options.rules_known = true;
  }
  SolverSection& solver = config.solver;
  solver.dense_model_file = model.dense;
  solver.sparse_model_file = model.tables;
  solver.dense_opt_states_file.clear();
  solver.sparse_opt_states_file.clear();
  solver.load_layers.clear();
  solver.pretrained.clear();
  // Use SGD: it has no optimizer states, so none are loaded from a checkpoint.
  config.optimizer = {.type = ops::Optimizer::Kind::sgd, .update_type = UpdateType::local};
  for (EmbeddingEntry& embedding : config.embeddings) embedding.section.optimizer.reset();
}

}  // namespace hctr
