#include "config/sections/field_paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "config/sections/config.h"
#include "config/sections/optimizer_catalog.h"
#include "core/base/expect.h"
#include "formats/catalog/data_schema.h"
#include "formats/catalog/format_table.h"
#include "net/layers/layer_catalog.h"

namespace hctr {
namespace {

/// Field names of other programs, with this program's names.
constexpr std::array<std::pair<const char*, const char*>, 18> kFieldsElsewhere = {
    {{"lr", "learning_rate"},
     {"rate", "learning_rate"},
     {"epochs", "num_epochs"},
     {"max_epochs", "num_epochs"},
     {"steps", "max_iter"},
     {"max_steps", "max_iter"},
     {"iterations", "max_iter"},
     {"batch", "batchsize"},
     {"eval_batch_size", "batchsize_eval"},
     {"metrics", "eval_metrics"},
     {"dim", "embedding_vec_size"},
     {"embedding_dim", "embedding_vec_size"},
     {"units", "num_output"},
     {"out_features", "num_output"},
     {"gpus", "gpu"},
     {"devices", "gpu"},
     {"amp", "mixed_precision"},
     {"data", "source"}}};

struct Field {
  std::string path;
  std::vector<std::string> names{};  ///< the field's own name and its aliases
};

std::string text_of(const Json& section, const char* key) {
  const Json* value = section.find(key);
  if (value && value->array() && !value->array()->empty()) value = &value->array()->front();
  return value && value->string() ? *value->string() : "";
}

/// Adds the fields and, recursively, their inner fields. `left_out`: names of objects whose inner fields are omitted.
void add_fields(const std::vector<FieldDoc>& docs, const std::string& place, const std::vector<std::string>& left_out,
                std::vector<Field>& fields) {
  for (const FieldDoc& doc : docs) {
    Field& field = fields.emplace_back(Field{cat(place, ".", doc.name), doc.aliases});
    field.names.push_back(doc.name);
    if (std::ranges::find(left_out, doc.name) != left_out.end()) continue;
    add_fields(doc.inner, cat(place, ".", doc.name, doc.type.starts_with("array") ? ".0" : ""), left_out, fields);
  }
}

/// If the Data layer contains the object of a format ("csv", "parquet", ...), returns the names of all other format
/// objects, which the search for a field skips. Otherwise returns no names.
std::vector<std::string> other_formats(const Json& data) {
  std::vector<std::string> names;
  const bool any = std::ranges::any_of(
      format_types(), [&](const FormatType& type) { return !type.object.name.empty() && data.find(type.object.name); });
  for (const FormatType& type : format_types())
    if (!type.object.name.empty() && any && !data.find(type.object.name)) names.push_back(type.object.name);
  return names;
}

/// Names of the objects of all optimizers except the configured one; empty if that optimizer is unknown.
std::vector<std::string> other_optimizers(const Json* optimizer) {
  std::vector<std::string> names;
  const std::string kind = optimizer ? text_of(*optimizer, "type") : "";
  const bool known =
      std::ranges::any_of(optimizer_catalog(), [&](const OptimizerType& type) { return type.name == kind; });
  for (const OptimizerType& type : optimizer_catalog())
    if (known && type.name != kind) names.push_back(type.object);
  return names;
}

void add_layers(const Json::Array& layers, std::vector<Field>& fields) {
  std::map<std::string, int> tops;
  for (const Json& layer : layers) ++tops[text_of(layer, "top")];
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string type = text_of(layers[i], "type"), top = text_of(layers[i], "top");
    const std::string place = cat("layers.", type == "Data"                   ? type
                                             : !top.empty() && tops[top] == 1 ? top
                                                                              : std::to_string(i));
    if (type == "Data")
      add_fields(data_schema().fields(), place, other_formats(layers[i]), fields);
    else if (is_embedding_type(type))
      add_fields(embedding_schema(type).fields(), place, {}, fields);
    else if (const LayerType* known = find_layer_type(type)) {
      if (!known->nested().empty()) fields.push_back({cat(place, ".", known->nested()), {known->nested()}});
      add_fields(known->fields(), known->nested().empty() ? place : cat(place, ".", known->nested()), {}, fields);
    }
  }
}

std::vector<Field> fields_of(const Json& config) {
  std::vector<Field> fields;
  for (const char* part : {"solver", "optimizer", "layers"}) fields.push_back({part, {part}});
  add_fields(solver_schema().fields(), "solver", {}, fields);
  add_fields(optimizer_schema().fields(), "optimizer", other_optimizers(config.find("optimizer")), fields);
  if (const Json* layers = config.find("layers"); layers && layers->array()) add_layers(*layers->array(), fields);
  return fields;
}

/// The number of leading names that paths `a` and `b` have in common.
int common_names(const std::string& a, const std::string& b) {
  int names = 0;
  for (size_t i = 0;; ++i) {
    const bool end_a = i == a.size() || a[i] == '.', end_b = i == b.size() || b[i] == '.';
    if (end_a && end_b) ++names;
    if (end_a != end_b || i == a.size() || i == b.size() || a[i] != b[i]) return names;
  }
}

}  // namespace

std::string nearest_field(const Json& config, const std::string& path) {
  std::string leaf = path.substr(path.rfind('.') + 1);
  for (const auto& [other, ours] : kFieldsElsewhere)
    if (leaf == other) leaf = ours;
  // Ranks are compared first by whether a name is misspelled, then by the negated number of common leading names, then
  // by the length of the path.
  using Rank = std::tuple<bool, int, size_t>;
  std::pair<Rank, std::string> best;
  for (const Field& field : fields_of(config)) {
    const bool same = std::ranges::find(field.names, leaf) != field.names.end();
    if (field.path == path || (!same && nearest(leaf, field.names).empty())) continue;
    const Rank rank{!same, -common_names(path, field.path), field.path.size()};
    if (best.second.empty() || rank < best.first) best = {rank, field.path};
  }
  return best.second;
}

}  // namespace hctr
