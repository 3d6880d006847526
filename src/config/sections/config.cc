#include "config/sections/config.h"

#include <algorithm>

#include "config/sections/key_ranges.h"
#include "config/sections/shared_keys.h"
#include "core/base/expect.h"
#include "formats/catalog/data_schema.h"
#include "formats/catalog/unshared_slot.h"
#include "net/layers/layer_catalog.h"

namespace hctr {
namespace {

/// Reads "bottom" or "top": a non-empty string, or an array of non-empty strings.
std::vector<std::string> read_names(const Json& section, const std::string& pointer, const char* key,
                                    Problems& problems) {
  const Json* value = section.find(key);
  if (!value) {
    problems.error(pointer, cat("a layer needs \"", key, "\""));
    for (const auto& [other, names] : *section.object())
      if (!nearest(other, {key}).empty())
        problems.error(cat(pointer, "/", other), cat("a layer has no \"", other, "\"; did you mean \"", key, "\"?"));
    return {};
  }
  std::vector<std::string> names;
  if (const Misfit misfit = read_value(*value, Range{}, names); !misfit.empty())
    problems.error(cat(pointer, "/", key, misfit.pointer),
                   cat("expected ", misfit.pointer.empty() ? "a string or " : "", misfit.expected, ", found ",
                       misfit.pointer.empty() ? value->kind() : misfit.found));
  else if (names.empty())
    problems.error(cat(pointer, "/", key), "names no tensor; at least one is needed");
  for (const std::string& name : names)
    if (name.empty()) problems.error(cat(pointer, "/", key), "a tensor's name is empty");
  return names;
}

void check_arity(const LayerEntry& entry, Problems& problems) {
  const auto check = [&](const char* key, const Arity& arity, size_t count) {
    if (count > 0 && !arity.holds(count))
      problems.error(cat(entry.pointer, "/", key), cat(entry.type->name(), " takes ", arity.text(), " ", key,
                                                       arity.most == 1 ? "" : "s", ", found ", count));
  };
  check("bottom", entry.type->inputs(), entry.bottoms.size());
  check("top", entry.type->outputs(), entry.tops.size());
}

std::vector<std::string> known_types() {
  std::vector<std::string> names = embedding_types();
  names.push_back("Data");
  for (const LayerType& type : layer_catalog()) names.push_back(type.name());
  return names;
}

void read_layer(const Json& section, const std::string& pointer, Config& config, Problems& problems) {
  const Json* given = section.find("type");
  const Json* type = given ? &unwrapped(*given) : nullptr;
  if (!type || !type->string())
    return problems.error(
        pointer, type ? cat("\"type\" is ", type->kind(), "; expected a layer's name") : "a layer needs \"type\"");
  const std::string& name = *type->string();
  if (is_embedding_type(name)) {
    config.embeddings.push_back({pointer, parse_embedding(section, pointer, problems)});
    return;
  }
  if (name == "Data")
    return problems.error(pointer,
                          "found a second Data layer; only the first layer can be a Data "
                          "layer");
  const LayerType* found = find_layer_type(name);
  if (!found) {
    if (const Json* top = section.find("top")) {
      std::vector<std::string> tops;
      if (read_value(*top, Range{}, tops).empty())
        config.lost_tops.insert(config.lost_tops.end(), tops.begin(), tops.end());
    }
    const std::vector<std::string> known = known_types();
    const std::string hint = did_you_mean(name, known, 3);
    return problems.error(pointer + "/type",
                          cat("no such layer: \"", name, "\"", hint.empty() ? "; there are " + one_of(known) : hint));
  }
  LayerEntry entry{.pointer = pointer,
                   .type = found,
                   .bottoms = read_names(section, pointer, "bottom", problems),
                   .tops = read_names(section, pointer, "top", problems),
                   .layer = nullptr};
  check_arity(entry, problems);
  entry.layer = found->make(section, pointer, entry.tops.empty() ? pointer : entry.tops[0], problems,
                            config.solver.compatibility);
  config.layers.push_back(std::move(entry));
}

/// The data provide labels and sample weights in one tensor. Inserts a Slice layer that separates them.
void add_sample_weight(Config& config, Problems& problems) {
  const SampleWeightPart& weight = config.data.sample_weight;
  if (!weight.given || config.data.labels() < 1) return;
  const std::string pointer = "/layers/0/sample_weight";
  const auto reads = [&](const LayerEntry& layer) {
    return std::find(layer.bottoms.begin(), layer.bottoms.end(), weight.top) != layer.bottoms.end();
  };
  if (std::none_of(config.layers.begin(), config.layers.end(), reads))
    problems.error(pointer, cat("no loss reads \"", weight.top,
                                "\": name it as the third bottom of a loss, after logits and labels"));
  std::string& label = config.data.label.top;
  LayerEntry cut{.pointer = pointer,
                 .type = find_layer_type("Slice"),
                 .bottoms = {cat(label, "+", weight.top)},
                 .tops = {label, weight.top},
                 .layer = nullptr};
  const int64_t labels = config.data.labels();
  const Json ranges(Json::Array{Json(Json::Array{int64_t{0}, labels}), Json(Json::Array{labels, labels + 1})});
  cut.layer = cut.type->make(Json(Json::Object{{"ranges", ranges}}), pointer, label, problems);
  label = cut.bottoms[0];
  config.layers.insert(config.layers.begin(), std::move(cut));
}

/// GroupedAUC groups samples by key. Adds a note if several values of the group column share a key, so that they form
/// one group. Only needed for data formats that cannot read the column a second time with one key per value.
void note_shared_groups(const Config& config, Problems& problems) {
  const auto& metrics = config.solver.eval_metrics.metrics;
  const std::string why = why_shared(config.data);
  const bool grouped = std::ranges::any_of(metrics, [](const Metric& metric) { return metric.type->of_groups; });
  if (grouped && !why.empty())
    problems.note("/solver/group_by", cat("GroupedAUC treats values that share a key as "
                                          "one group: ",
                                          why));
}

void check_groups(const Config& config, Problems& problems) {
  const GroupBy& by = config.solver.group_by;
  const std::string here = "/solver/group_by";
  if (!by.given || config.data.sparse.empty()) return;
  note_shared_groups(config, problems);
  std::vector<std::string> names;
  for (const SparseInput& input : config.data.sparse) {
    if (input.top == by.input && by.slot >= input.slot_num)
      problems.error(here + "/slot", cat("slot ", by.slot, " of sparse input \"", by.input, "\": its slots are 0 to ",
                                         input.slot_num - 1));
    names.push_back(input.top);
  }
  if (std::find(names.begin(), names.end(), by.input) != names.end()) return;
  const std::string hint = did_you_mean(by.input, names);
  problems.error(here + "/input", cat("no sparse input is called \"", by.input, "\"",
                                      hint.empty() ? "; there is " + one_of(names) : hint));
}

/// Adds a note if embeddings have their own learning rates, because HugeCTR 2.2 to 3.1 ignores such rates.
void note_own_rates(const Config& config, Problems& problems) {
  const HyperParameters& top = config.optimizer.hyper;
  if (config.solver.compatibility.schedule_sets_embedding_rates || !top.given || top.learning_rate == 0) return;
  std::string names, pointer;
  for (const EmbeddingEntry& embedding : config.embeddings) {
    const auto& own = embedding.section.optimizer;
    if (!own || !own->hyper.given || own->hyper.learning_rate == top.learning_rate) continue;
    if (pointer.empty()) pointer = embedding.pointer + "/optimizer";
    names += cat(names.empty() ? "" : ", ", "'", embedding.section.top(), "'");
  }
  if (!names.empty())
    problems.note(pointer, cat("the rate of ", names,
                               " comes from the embedding's own optimizer section, scaled by the top-level "
                               "schedule; \"compatibility\": [\"schedule_sets_embedding_rates\"] selects the "
                               "top-level rate, which HugeCTR 2.2 to 3.1 used"));
}

/// Copies the solver's gradient clipping limit to every optimizer.
void clip_gradients(Config& config) {
  if (!config.solver.clip_gradient_value) return;
  const auto most = static_cast<float>(*config.solver.clip_gradient_value);
  config.optimizer.hyper.most_gradient = most;
  for (EmbeddingEntry& embedding : config.embeddings)
    if (embedding.section.optimizer) embedding.section.optimizer->hyper.most_gradient = most;
}

/// Rejects solver and optimizer fields that need the length of the run, which is unknown with "follow".
void check_followed(const Config& config, Problems& problems) {
  if (!config.data.follow) return;
  if (config.solver.num_epochs.value_or(1) > 1)
    problems.error("/solver/num_epochs",
                   "with \"follow\" each file is read once; remove num_epochs, or limit the run with \"max_iter\"");
  if (!config.solver.max_iter && depends_on_length(config.optimizer.hyper))
    problems.error("/optimizer",
                   "the learning rate depends on the length of the run, which is unknown with \"follow\": give "
                   "warm-up and decay in steps and set \"decay_steps\", or set \"max_iter\" in the solver");
}

/// Checks the names in "load_layers", "frozen" and "pretrained".
void check_start(Config& config, Problems& problems) {
  std::vector<std::string> layers, tables, both;
  for (const LayerEntry& layer : config.layers)
    if (!layer.tops.empty()) layers.push_back(layer.tops[0]);
  for (const EmbeddingEntry& embedding : config.embeddings)
    if (!embedding.section.tops.names.empty()) tables.push_back(embedding.section.top());
  both = tables;
  both.insert(both.end(), layers.begin(), layers.end());
  const auto expect = [&](const std::string& name, const std::vector<std::string>& known, const std::string& pointer,
                          const char* what) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      problems.error(pointer, cat("no ", what, " is called \"", name, "\"", did_you_mean(name, known)));
  };
  const SolverSection& solver = config.solver;
  for (size_t i = 0; i < solver.load_layers.size(); ++i)
    expect(solver.load_layers[i], layers, cat("/solver/load_layers/", i), "layer");
  for (size_t i = 0; i < solver.pretrained.size(); ++i)
    expect(solver.pretrained[i].table, tables, cat("/solver/pretrained/", i, "/table"), "embedding");
  for (size_t i = 0; i < solver.frozen.size(); ++i) {
    expect(solver.frozen[i], both, cat("/solver/frozen/", i), "layer or embedding");
    for (EmbeddingEntry& embedding : config.embeddings)
      if (!embedding.section.tops.names.empty() && embedding.section.top() == solver.frozen[i])
        embedding.section.frozen = true;
  }
}

void check_section_names(const Json& file, Problems& problems) {
  for (const auto& [key, value] : *file.object())
    if (key != "solver" && key != "optimizer" && key != "layers" && key != "name" && key != "all_reduce") {
      if (const std::string near = nearest(key, {"solver", "optimizer", "layers"}); !near.empty() && !file.find(near))
        problems.error("/" + key, cat("the config has no section \"", key, "\"; did you mean \"", near, "\"?"));
      else
        problems.warn("/" + key, cat("the config has no section \"", key, "\"; it is ignored"));
    }

  if (file.find("all_reduce"))
    problems.note("/all_reduce",
                  "\"all_reduce\" is accepted and has no effect: the program chooses how gradients are summed");
}

/// Parses solver, optimizer and layers.
void read_sections(const Json& file, Config& config, Problems& problems) {
  if (const Json* solver = file.find("solver"))
    config.solver = solver_schema().parse(*solver, "/solver", problems);
  else
    problems.error("", "the config needs \"solver\"");
  if (const Json* optimizer = file.find("optimizer"))
    config.optimizer = optimizer_schema().parse(*optimizer, "/optimizer", problems);
  else
    problems.error("", "the config needs \"optimizer\"");

  config.data = data_section_of(file, problems);
  if (const Json* layers = file.find("layers"); layers && layers->array())
    for (size_t i = 1; i < layers->array()->size(); ++i) {
      const Json& section = (*layers->array())[i];
      const std::string pointer = cat("/layers/", i);
      if (section.object())
        read_layer(section, pointer, config, problems);
      else
        problems.error(pointer, cat("expected a layer, an object, found ", section.kind()));
    }
}

/// Warns of tables that do not learn although they have a learning rate.
void check_table_rates(const Config& config, Problems& problems) {
  if (const HyperParameters& top = config.optimizer.hyper; top.given && top.learning_rate == 0)
    for (const EmbeddingEntry& embedding : config.embeddings)
      if (const auto& own = embedding.section.optimizer; own && own->hyper.learning_rate > 0)
        problems.warn(embedding.pointer + "/optimizer",
                      "the table does not learn: its learning rate is scaled by the top-level rate, which is 0");
}

void check_count_of_files(const Config& config, Problems& problems) {
  const size_t files = config.solver.sparse_model_file.size();
  if (files != 0 && files != config.embeddings.size())
    problems.error("/solver/sparse_model_file",
                   cat("names ", files, files == 1 ? " file" : " files", " for ", config.embeddings.size(),
                       config.embeddings.size() == 1 ? " embedding" : " embeddings",
                       "; expected one file for each "
                       "embedding"));
}

/// Applies the solver's placement to tables that state none, and checks placement and memory of each table.
void place_tables(Config& config, Problems& problems) {
  for (EmbeddingEntry& embedding : config.embeddings) {
    EmbeddingSection& section = embedding.section;
    const bool of_solver =
        !section.placement && (section.identity_by_slot() || config.solver.placement != PlacementRule::localized);
    if (of_solver) section.placement = config.solver.placement;
    check_placement(section, embedding.pointer,
                    of_solver && section.placement ? "/solver/placement" : embedding.pointer + "/placement", problems);
    if (section.table_memory)
      check_table_memory(*section.table_memory, config.solver.table_memory, embedding.pointer + "/table_memory",
                         problems);
  }
}

}  // namespace

Config read_config(const Json& file, Problems& problems) {
  Config config;
  if (!file.object()) {
    problems.error("", cat("expected an object with solver, optimizer and layers, found ", file.kind()));
    return config;
  }
  check_section_names(file, problems);
  read_sections(file, config, problems);
  add_sample_weight(config, problems);
  check_table_rates(config, problems);
  note_own_rates(config, problems);
  check_count_of_files(config, problems);
  check_groups(config, problems);
  check_followed(config, problems);
  if (config.solver.early_stopping.given && config.data.eval_source.empty())
    problems.error("/solver/early_stopping", "needs evaluations: the Data layer has no \"eval_source\"");
  place_tables(config, problems);
  check_start(config, problems);
  clip_gradients(config);
  place_keys(config, problems);
  share_keys_of_tables(config);
  check_shared_keys(config, problems);
  config.effective = Json(Json::Object{});
  config.effective.set("solver", solver_schema().effective(config.solver));
  config.effective.set("optimizer", optimizer_schema().effective(config.optimizer));
  if (const Json* layers = file.find("layers")) config.effective.set("layers", with_key_spaces(*layers, config));
  return config;
}

}  // namespace hctr
