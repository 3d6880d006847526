#include "infer/model_encoding.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"
#include "formats/catalog/encoding_contents.h"
#include "formats/data/numbering.h"
#include "formats/data/slot_key_rules.h"
#include "formats/model/model_manifest.h"
#include "infer/encoding_differences.h"

namespace hctr {
namespace {

/// The remedy for a changed encoding, as a message for the user.
std::string advice_on(const EncodingChange& change, EncodingChoice choice) {
  if (change.fields.empty()) return "Restore the file with which the model was trained, or add ";
  if (is_of_formats(change.fields))
    return "The data and the model have different formats: use data in the format of the model, or add ";
  if (choice == EncodingChoice::same && !is_between_formats(change.fields))
    return "Add --encoding model to use the model's encoding, or ";
  return "Set the fields to the model's values, or add ";
}

bool takes_parts(const SolverSection& solver) {
  const auto& tables = solver.sparse_model_file;
  return tables.empty() || !solver.load_layers.empty() || solver.combine_models || solver.dense_model_file.empty() ||
         std::find(tables.begin(), tables.end(), "") != tables.end();
}

}  // namespace

std::string EncodingChange::text() const { return cat(fields, fields.empty() || files.empty() ? "" : "; ", files); }

EncodingChange encoding_change(const Json& saved, const Json* data, const Config& config, const std::string& source) {
  const Json* numbering = data ? data->find("numbering") : nullptr;
  const bool same_keys = numbering && numbering->string() && !numbering->string()->empty() && !source.empty() &&
                         numbering_of_data(source) == *numbering->string();
  EncodingChange change;
  if (!same_keys)
    change.fields =
        encoding_differences(saved, config.effective, data ? slot_key_rules_of(*data) : std::vector<SlotKeyRule>());
  change.files = changed_contents(data, config.data);
  return change;
}

std::vector<SlotKeyRule> key_rules_of_model(const Json& saved, const Json* data) {
  std::vector<SlotKeyRule> rules = data ? slot_key_rules_of(*data) : std::vector<SlotKeyRule>();
  const Json* layer = data_layer(saved);
  for (const char* name : {"csv", "parquet"}) {
    const Json* section = layer ? layer->find(name) : nullptr;
    const Json* slots = section ? section->find("slots") : nullptr;
    for (const Json& group : slots && slots->array() ? *slots->array() : Json::Array()) {
      const Json *keys = group.find("keys"), *columns = group.find("columns");
      const std::string word = keys && keys->string() ? *keys->string() : name == std::string("csv") ? "hash" : "";
      if ((word != "hash" && word != "number") || !columns || !columns->array()) continue;
      for (const Json& column : *columns->array())
        if (column.string() && !find_slot_key_rule(rules, *column.string()))
          rules.push_back(
              {.column = *column.string(), .rule = word == "hash" ? KeyRule::hash : KeyRule::number, .stated = true});
    }
  }
  return rules;
}

void expect_encoding(const EncodingChange& change, const std::string& model, EncodingChoice choice, const Log& log) {
  if (!change.any()) return;
  const std::string what = cat("the config's encoding differs from the encoding of ", model, ": ", change.text());
  if (choice == EncodingChoice::config) return log.info("note: ", what, ".");
  throw Error(Kind::config,
              cat(what, ". ", advice_on(change, choice), "--encoding config to use this config's encoding"));
}

void expect_encoding_of_start(const Config& config, EncodingChoice choice, const Log& log) {
  const SolverSection& solver = config.solver;
  std::vector<std::string> files = solver.sparse_model_file;
  files.insert(files.begin(), solver.dense_model_file);
  std::set<fs::path> seen;  // several files of a model share a manifest
  for (const std::string& file : files) {
    const auto manifest = file.empty() ? std::nullopt : manifest_of(file);
    if (!manifest || !seen.insert(manifest->path).second) continue;
    const EncodingChange change = encoding_change(manifest->config, &manifest->data, config, config.data.source);
    const std::string model = cat("the model '", file, "' from which training starts");
    if (takes_parts(solver) && change.any() && choice != EncodingChoice::config)
      log.warning("the config's encoding differs from the encoding of ", model, ": ", change.text());
    else
      // A training run cannot use a model's encoding, so the message suggests only changes of the run's own fields.
      expect_encoding(change, model, choice == EncodingChoice::config ? choice : EncodingChoice::model, log);
  }
}

}  // namespace hctr
