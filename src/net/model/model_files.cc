#include "net/model/model_files.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "formats/model/model_manifest.h"

namespace hctr {
namespace {

std::string describe_set(const ModelManifest& set) {
  return cat("of iteration ", set.iteration, set.run.empty() ? "" : cat(" of run ", set.run));
}

/// Throws if `file` contains another table than that of this embedding, or vectors of another size.
void expect_table(const ModelManifest& set, const std::string& file, const EmbeddingSection& section, bool combined) {
  const SavedTable* saved = set.table_of(set.name_of(file));
  if (!saved) return;
  const auto is_here = [&](const SavedTable& table) { return table.name == section.top(); };
  if (!combined && saved->name != section.top() && std::any_of(set.tables.begin(), set.tables.end(), is_here))
    throw Error(Kind::data, cat("'", file, "' holds table '", saved->name, "', as '", set.path.string(),
                                "' states, but the config assigns the file to '", section.top(),
                                "': list files in the order of the embeddings"));
  if (saved->dim != section.dim)
    throw Error(Kind::data, cat("'", file, "' has vectors of ", saved->dim, " elements, as '", set.path.string(),
                                "' states, but '", section.top(), "' has embedding_vec_size ", section.dim));
}

/// The number before the extension: 60 for "..._60.model". None for other names.
std::optional<int64_t> number_at_end(const std::string& file) {
  const std::string stem = fs::path(file).stem().string(), digits = stem.substr(stem.rfind('_') + 1);
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos) return {};
  return std::stoll(digits);
}

bool counts_updates(const OptimizerSection& optimizer) {
  return optimizer.type == ops::Optimizer::Kind::adam || optimizer.type == ops::Optimizer::Kind::adamw;
}

/// Adam's step count t for the optimizer state files that the config names.
int64_t updates_of_states(const Config& config, const std::optional<ModelManifest>& set, const Log& log) {
  const SolverSection& solver = config.solver;
  const bool dense = !solver.dense_opt_states_file.empty(), sparse = !solver.sparse_opt_states_file.empty();
  if (!dense && !sparse) return 0;
  const auto of_table = [&](const EmbeddingEntry& embedding) {
    return counts_updates(embedding.section.optimizer.value_or(config.optimizer));
  };
  const bool in_tables = std::any_of(config.embeddings.begin(), config.embeddings.end(), of_table);
  const bool in_weights = counts_updates(config.optimizer);
  if (!in_weights && !in_tables) return set ? set->updates : 0;
  const std::string& file = dense ? solver.dense_opt_states_file : solver.sparse_opt_states_file[0];
  int64_t updates = 0;
  if (set) {
    updates = set->updates;
  } else if (const auto number = number_at_end(file)) {
    updates = *number;
    log.info("note: no manifest states the number of updates of '", file, "': Adam's t continues from ", updates,
             ", the number in the file name");
  } else {
    log.warning("neither a manifest nor the file name states the number of updates of '", file,
                "': Adam's t starts at 0, so the first updates are too small");
  }
  if (updates > 0 && dense != sparse && (dense ? in_tables : in_weights))
    log.warning("the optimizer states of the ", dense ? "tables" : "dense weights", " are reset, while Adam's t is ",
                updates, " for all states: the first updates of the reset part are larger than in a new run; set \"",
                dense ? "sparse" : "dense", "_opt_states_file\" to load these states too");
  const bool lazy = std::any_of(config.embeddings.begin(), config.embeddings.end(), [&](const EmbeddingEntry& entry) {
    return entry.section.optimizer.value_or(config.optimizer).update() == UpdateType::lazy_global;
  });
  if (sparse && lazy)
    log.info(
        "note: files of optimizer states do not record when LazyGlobal last updated a row: all rows count as "
        "updated in the last step, step ",
        updates);
  return updates;
}

}  // namespace

int64_t check_model_files(const Config& config, const Log& log) {
  const SolverSection& solver = config.solver;
  struct Named {
    std::string file;
    const EmbeddingEntry* table;  // null: the file holds dense weights
  };
  std::vector<Named> files;
  // Optimizer states come first, because their manifest holds Adam's t.
  files.push_back({solver.dense_opt_states_file, nullptr});
  for (size_t e = 0; e < solver.sparse_opt_states_file.size(); ++e)
    files.push_back({solver.sparse_opt_states_file[e], &config.embeddings.at(e)});
  files.push_back({solver.dense_model_file, nullptr});
  for (size_t e = 0; e < solver.sparse_model_file.size(); ++e)
    files.push_back({solver.sparse_model_file[e], &config.embeddings.at(e)});
  std::erase_if(files, [](const Named& named) { return named.file.empty(); });
  std::optional<ModelManifest> first;
  std::string first_file, without;
  for (const auto& [file, table] : files) {
    std::optional<ModelManifest> set = manifest_of(file);
    if (!set) {
      without += cat(without.empty() ? "'" : ", '", file, "'");
      continue;
    }
    if (first && !solver.combine_models && (set->run != first->run || set->iteration != first->iteration))
      throw Error(
          Kind::data,
          cat("'", first_file, "' is ", describe_set(*first), ", and '", file, "' is ", describe_set(*set),
              ": the files to start from must belong to one model; set \"combine_models\": true to combine several"));
    if (set->delta)
      throw Error(Kind::data, cat("'", file, "' has only the rows that changed since iteration ", set->delta->base,
                                  ": use table_inspect --apply to make a full model"));
    set->verify(set->name_of(file));
    if (table) expect_table(*set, file, table->section, solver.combine_models);
    if (!first) {
      first_file = file;
      first = std::move(set);
    }
  }
  if (!without.empty())
    log.info("note: no manifest exists next to ", without,
             ", so only file sizes can be "
             "checked");
  return updates_of_states(config, first, log);
}

}  // namespace hctr
