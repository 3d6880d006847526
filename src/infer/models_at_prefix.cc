#include "infer/models_at_prefix.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/expect.h"
#include "formats/model/model_manifest.h"
#include "hctr/formats.h"
#include "infer/saved_snapshots.h"

namespace hctr {
namespace {

bool is_own(const SavingRun& of, const OwnRun& own) {
  if (!own.id.empty() && of.id == own.id) return true;
  return !own.folder.empty() && !of.folder.empty() &&
         fs::weakly_canonical(own.folder) == fs::weakly_canonical(of.folder);
}

/// Whether a final model may be overwritten: its run folder has another copy, or no longer exists.
bool may_be_replaced(const ModelAtPrefix& model, const SavingRun& of) try {
  if (model.delta || of.id.empty() || of.folder.empty()) return false;
  if (!fs::exists(of.folder)) return true;
  const auto kept = manifest_of(fs::path(of.folder) / cat("final_", model.path.filename().string()));
  return kept && kept->run == of.id && kept->iteration == model.iteration;
} catch (const Error&) {
  return false;
}

/// Whether a run with this solver saves a model or a delta of this iteration. A run without max_iter may end at any
/// iteration.
bool may_save(const SolverSection& solver, const ModelAtPrefix& model) {
  const int64_t i = model.iteration;
  const auto every = [&](int64_t interval) { return interval > 0 && i % interval == 0; };
  if (solver.max_iter && i > *solver.max_iter) return false;
  if (model.delta) return every(solver.snapshot_delta);
  const bool last = solver.final_snapshot && (!solver.max_iter || i == *solver.max_iter);
  const bool best = solver.early_stopping.given && solver.final_snapshot && every(solver.eval_interval);
  const bool before_end = !solver.max_iter || i < *solver.max_iter;
  return last || best || (before_end && (every(solver.snapshot) || every(solver.snapshot_delta)));
}

}  // namespace

std::string SavingRun::text() const {
  if (id.empty()) return "an unknown run";
  return folder.empty() ? cat("run ", id) : cat("run '", folder, "'");
}

std::vector<ModelAtPrefix> models_at(const std::string& prefix) {
  const fs::path whole(prefix), folder = whole.parent_path();
  const std::string start = whole.filename().string();
  std::vector<ModelAtPrefix> models;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(start)) continue;
    const std::string_view rest = std::string_view(name).substr(start.size());
    if (const auto dense = split_number(rest, "_dense_", ".model"); dense && dense->first.empty())
      models.push_back({dense->second, false, formats::dense_model_name(prefix, dense->second)});
    else if (const auto delta = split_number(rest, "_delta_", ""); delta && delta->first.empty())
      models.push_back({delta->second, true, formats::delta_name(prefix, delta->second)});
  }
  std::ranges::sort(models, {}, &ModelAtPrefix::iteration);
  return models;
}

SavingRun saving_run(const ModelAtPrefix& model) try {
  if (model.delta) {
    const ModelManifest manifest = delta_manifest(model.path);
    return {manifest.run, manifest.run_folder};
  }
  const auto manifest = manifest_of(model.path);
  return manifest ? SavingRun{manifest->run, manifest->run_folder} : SavingRun{};
} catch (const Error&) {
  return {};  // a damaged manifest is ignored here; loading the model reports it
}

std::string snapshot_prefix_of(const SolverSection& solver, const fs::path& run_folder) {
  return solver.snapshot_prefix.empty() ? (run_folder / "models" / "").string() : solver.snapshot_prefix;
}

void expect_no_other_models(const SolverSection& solver, const OwnRun& own, const Log& log) {
  const std::string& prefix = solver.snapshot_prefix;
  std::string replaced;
  for (const ModelAtPrefix& model : models_at(prefix)) {
    if (!may_save(solver, model)) continue;
    const SavingRun other = saving_run(model);
    if (is_own(other, own)) continue;
    if (!may_be_replaced(model, other))
      throw Error(
          Kind::config,
          cat("/solver/snapshot_prefix \"", prefix, "\": '", model.path.string(), "' is the only copy of a model of ",
              other.text(), ", which this run would overwrite with its own model of iteration ", model.iteration,
              ". Remove \"snapshot_prefix\" to keep models in the run folder (--set "
              "solver.snapshot_prefix=null), set another prefix, or set \"replace_models\": "
              "true"));
    replaced = cat("'", model.path.string(), "' is a model of ", other.text(), ", whose folder ",
                   fs::exists(other.folder) ? "keeps a copy" : "is gone",
                   ": this run will overwrite the model at \"snapshot_prefix\"");
  }
  if (!replaced.empty()) log.warning(replaced);
}

std::string other_run_at(const std::string& prefix, int64_t iteration, const OwnRun& own) {
  const ModelAtPrefix model{iteration, false, formats::dense_model_name(prefix, iteration)};
  if (!fs::exists(model.path)) return "";
  const SavingRun other = saving_run(model);
  return is_own(other, own) || may_be_replaced(model, other) ? "" : other.text();
}

bool is_model_of_run(const std::vector<fs::path>& files, const std::string& run, int64_t iteration) try {
  if (files.empty() || run.empty()) return false;
  const auto manifest = manifest_of(files.front());
  if (!manifest || manifest->run != run || manifest->iteration != iteration || manifest->delta) return false;
  return std::ranges::all_of(files, [&](const fs::path& file) {
    if (file == manifest->path) return true;
    const std::string name = manifest->name_of(file);
    return !name.empty() && name.find('/') == name.npos &&
           std::ranges::any_of(manifest->members, [&](const ModelManifest::Member& member) {
             return member.name == name || member.name.starts_with(name + "/");
           });
  });
} catch (const Error&) {
  return false;  // a damaged manifest names no run
}

bool remove_model_of_run(const std::string& prefix, int64_t iteration, const OwnRun& run, bool only_links) try {
  const fs::path dense = formats::dense_model_name(prefix, iteration);
  if (!fs::exists(dense) || !is_model_of_run({dense}, run.id, iteration)) return false;
  const auto manifest = manifest_of(dense);
  std::set<std::string> names = {manifest->path.string().substr(prefix.size())};
  for (const ModelManifest::Member& member : manifest->members)  // a table may be a folder
    if (const std::string name = member.name.substr(0, member.name.find('/'));
        name.find(cat("_", iteration, ".model")) != name.npos)
      names.insert(name);
  std::error_code none;
  for (const std::string& name : names) {
    const fs::path file = prefix + name, link = run.folder / cat("final_", file.filename().string());
    if (!run.folder.empty()) fs::remove_all(link, none);
    if (!only_links) fs::remove_all(file, none);
  }
  return true;
} catch (const Error&) {
  return false;
}

int64_t newest_of_one_run(const std::string& prefix) {
  std::vector<std::pair<SavingRun, std::string>> runs;  // runs, each with the iterations of its models
  int64_t newest = -1;
  for (const ModelAtPrefix& model : models_at(prefix)) {
    if (model.delta) continue;
    newest = model.iteration;
    const SavingRun run = saving_run(model);
    const auto known = std::ranges::find(runs, run, &std::pair<SavingRun, std::string>::first);
    if (known == runs.end())
      runs.emplace_back(run, cat(newest));
    else
      known->second += cat(", ", newest);
  }
  if (runs.size() <= 1) return newest;
  std::string all;
  for (const auto& [run, iterations] : runs) all += cat(all.empty() ? "" : "; of ", run.text(), ": ", iterations);
  throw Error(Kind::io,
              cat("the models at '", prefix, "' are of ", runs.size(),
                  " runs, so the prefix is ambiguous: "
                  "iterations of ",
                  all, ". Name the run folder, or ", prefix, "@", newest, " for the model of that iteration"));
}

}  // namespace hctr
