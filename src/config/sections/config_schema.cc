#include "config/sections/config_schema.h"

#include "config/json_schema.h"
#include "config/sections/embedding_section.h"
#include "config/sections/optimizer_section.h"
#include "config/sections/solver_section.h"
#include "formats/catalog/data_schema.h"
#include "net/layers/layer_catalog.h"

namespace hctr {
namespace {

/// A JSON Schema rule: {"if": the layer has this type, "then": its fields}.
Json rule_of(const std::string& type, Json fields) {
  const Json is_type(Json::Object{{"properties", Json(Json::Object{{"type", Json(Json::Object{{"const", type}})}})}});
  return Json(Json::Object{{"if", is_type}, {"then", std::move(fields)}});
}

Json layer_fields(const LayerType& type) {
  Json fields = json_schema_of(type.fields());
  if (type.nested().empty() || type.fields().empty()) return fields;
  return Json(Json::Object{{"properties", Json(Json::Object{{type.nested(), std::move(fields)}})}});
}

}  // namespace

std::string config_schema_text() {
  Json types(Json::Array{"Data"}), rules(Json::Array{rule_of("Data", json_schema_of(data_schema()))});
  const auto add = [&](const std::string& type, Json fields) {
    types.add(type);
    rules.add(rule_of(type, std::move(fields)));
  };
  for (const std::string& type : embedding_types()) add(type, json_schema_of(embedding_schema(type)));
  for (const LayerType& type : layer_catalog()) add(type.name(), layer_fields(type));
  const Json layer(
      Json::Object{{"type", "object"},
                   {"properties", Json(Json::Object{{"type", Json(Json::Object{{"enum", std::move(types)}})}})},
                   {"required", Json(Json::Array{"type"})},
                   {"allOf", std::move(rules)}});
  const Json schema(Json::Object{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Config of huge_ctr"},
      {"description", "Written by huge_ctr --explain schema from the program's declarations."},
      {"type", "object"},
      {"properties", Json(Json::Object{{"include", Json(Json::Object{{"description", "configs to include"}})},
                                       {"solver", json_schema_of(solver_schema())},
                                       {"optimizer", json_schema_of(optimizer_schema())},
                                       {"layers", Json(Json::Object{{"type", "array"}, {"items", layer}})}})}});
  return schema.text(1) + "\n";
}

}  // namespace hctr
