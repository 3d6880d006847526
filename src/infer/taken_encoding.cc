#include "infer/taken_encoding.h"

#include <set>
#include <string>

#include "config/values.h"
#include "core/base/expect.h"
#include "infer/encoding_differences.h"

namespace hctr {
namespace {

const std::set<std::string> kEncodingFields = {"sparse", "slot_size_array", "csv",  "parquet",
                                               "criteo", "label",           "dense"};

/// The config with its Data layer replaced.
Json with_data_layer(const Json& config, const Json& data) {
  Json layers(Json::Array{data});
  const Json::Array& all = *config.find("layers")->array();
  for (size_t l = 1; l < all.size(); ++l) layers.add(all[l]);
  Json result(Json::Object{});
  for (const auto& [name, section] : *config.object()) result.set(name, name == "layers" ? layers : section);
  return result;
}

bool is_there(const Json* given) {
  const Json* value = given ? &unwrapped(*given) : nullptr;
  return value && !value->is_null() && !(value->array() && value->array()->empty()) &&
         !(value->string() && value->string()->empty());
}

/// Whether a Data layer has no encoding fields.
bool leaves_all_out(const Json& data) {
  for (const std::string& field : kEncodingFields)
    if (is_there(data.find(field))) return false;
  return !is_there(data.find("format")) && !is_there(data.find("feature_spec"));
}

}  // namespace

Json with_encoding_of(const Json& saved, const Json& config) {
  const Json *before = data_layer(saved), *now = data_layer(config);
  if (!before || !now || data_format_of(*before) != data_format_of(*now)) return config;
  const std::set<std::string> of_file = {"delimiter", "quote", "header", "columns"};
  Json data(Json::Object{});
  for (const auto& [name, value] : *now->object())
    if (!kEncodingFields.contains(name)) data.set(name, value);
  for (const auto& [name, value] : *before->object()) {
    if (!kEncodingFields.contains(name)) continue;
    const Json* own = now->find(name);
    if (name != "csv" || !value.object() || !own || !own->object()) {
      data.set(name, value);
      continue;
    }
    Json csv(Json::Object{});
    for (const auto& [field, inner] : *value.object())
      if (!of_file.contains(field)) csv.set(field, inner);
    for (const auto& [field, inner] : *own->object())
      if (of_file.contains(field)) csv.set(field, inner);
    data.set(name, csv);
  }
  return with_data_layer(config, data);
}

CompletedConfig with_left_out_encoding_of(const Json& saved, const Json& config) {
  const Json *before = data_layer(saved), *now = data_layer(config);
  if (!before || !now || !before->object() || !now->object()) return {config};
  std::set<std::string> fields = kEncodingFields;
  if (leaves_all_out(*now))
    fields.insert({"format", "feature_spec"});
  else if (data_format_of(*before) != data_format_of(*now))
    return {config};
  // the feature_spec already gives the cardinalities
  if (is_there(before->find("feature_spec"))) fields.erase("slot_size_array");
  CompletedConfig completed{.config = {}};
  Json data = *now;
  for (const std::string& field : fields) {
    const Json* value = before->find(field);
    if (is_there(now->find(field)) || !is_there(value)) continue;
    data.set(field, *value);
    completed.taken += cat(completed.taken.empty() ? "" : ", ", field);
  }
  if (leaves_all_out(*now) && !is_there(now->find("source")) && is_there(before->find("source")))
    data.set("source", *before->find("source"));  // "source" is required, but this source is not read
  completed.config = completed.taken.empty() ? config : with_data_layer(config, data);
  return completed;
}

}  // namespace hctr
