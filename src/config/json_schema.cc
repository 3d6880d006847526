#include "config/json_schema.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr std::string_view kArrayOf = "array of ";

Json array_of(Json items) { return Json(Json::Object{{"type", "array"}, {"items", std::move(items)}}); }

Json any_of(Json::Array choices) { return Json(Json::Object{{"anyOf", Json(std::move(choices))}}); }

Json number_schema(const char* type, const Range& range) {
  Json schema(Json::Object{{"type", type}});
  const Range none;
  const auto limit = [&](const char* name, double value) {
    const auto whole = static_cast<int64_t>(value);
    schema.set(name, static_cast<double>(whole) == value ? Json(whole) : Json(value));
  };
  if (range.low > none.low) limit(range.low_open ? "exclusiveMinimum" : "minimum", range.low);
  if (range.high < none.high) limit(range.high_open ? "exclusiveMaximum" : "maximum", range.high);
  return schema;
}

/// The JSON Schema of one alternative of a field's type; empty if the alternative does not restrict the value.
std::optional<Json> alternative(std::string_view type, const FieldDoc& field) {
  if (type == "integer" || type == "number")
    return number_schema(type == "integer" ? "integer" : "number", field.limits);
  if (type == "boolean" || type == "string") return Json(Json::Object{{"type", std::string(type)}});
  if (type == "word" || type == "words") {
    Json schema(Json::Object{{"type", "string"}});
    if (!field.words.empty()) schema.set("enum", Json(Json::Array(field.words.begin(), field.words.end())));
    return schema;
  }
  if (type == "metrics") return Json(Json::Object{{"type", "string"}});
  if (type == "object" || type == "objects") return json_schema_of(field.inner);
  if (type.size() > 2 && type.front() == '"' && type.back() == '"')
    return Json(Json::Object{{"const", std::string(type.substr(1, type.size() - 2))}});
  if (type.starts_with(kArrayOf)) {
    const std::optional<Json> items = alternative(type.substr(kArrayOf.size()), field);
    if (items) return array_of(*items);
  }
  return std::nullopt;
}

/// Splits the manual's text for a type, such as "integer or array of integer", into its alternatives.
std::vector<std::string> alternatives(std::string type) {
  constexpr std::string_view kFlag = "true or false";
  if (const size_t at = type.find(kFlag); at != type.npos) type.replace(at, kFlag.size(), "boolean");
  std::vector<std::string> all;
  for (size_t at = 0; at < type.size();) {
    const size_t comma = std::min(type.find(", ", at), type.size()),
                 word = std::min(type.find(" or ", at), type.size());
    const size_t end = std::min(comma, word);
    std::string one = type.substr(at, end - at);
    if (one.starts_with("or ")) one = one.substr(3);
    all.push_back(one);
    at = end + (comma < word ? 2 : 4);
  }
  return all;
}

Json field_schema(const FieldDoc& field) {
  Json::Array choices;
  bool known = true;
  for (const std::string& type : alternatives(field.type)) {
    const std::optional<Json> one = alternative(type, field);
    known = known && one;
    if (!one) continue;
    choices.push_back(*one);
    if (type.starts_with(kArrayOf) && !type.ends_with("objects"))  // a single element may be written without brackets
      choices.push_back(*alternative(std::string_view(type).substr(kArrayOf.size()), field));
  }
  Json schema = !known || choices.empty() ? Json(Json::Object{})
                : choices.size() == 1     ? choices[0]
                                          : any_of(std::move(choices));
  if (!field.text.empty()) schema.set("description", field.text);
  if (!field.default_text.empty()) schema.set("default", Json::parse(field.default_text, field.name));
  return schema;
}

}  // namespace

Json json_schema_of(const std::vector<FieldDoc>& fields) {
  Json properties(Json::Object{}), required(Json::Array{});
  for (const FieldDoc& field : fields) {
    const Json schema = field_schema(field);
    properties.set(field.name, schema);
    for (const std::string& alias : field.aliases) properties.set(alias, schema);
    // a field with aliases is not required by its name, because the config may use an alias
    if (field.required && field.aliases.empty()) required.add(field.name);
  }
  Json schema(Json::Object{{"type", "object"}, {"properties", std::move(properties)}});
  if (!required.array()->empty()) schema.set("required", std::move(required));
  return schema;
}

Json json_schema_of(const SchemaBase& declared) {
  const Json fields = json_schema_of(declared.fields());
  Json properties = *fields.find("properties");
  for (const auto& [key, why] : declared.ignored_keys())
    properties.set(key, Json(Json::Object{{"description", "has no effect: " + why}, {"deprecated", true}}));
  Json schema(Json::Object{});
  for (const auto& [key, value] : *fields.object()) schema.set(key, key == "properties" ? properties : value);
  if (declared.is_closed()) {
    schema.set("additionalProperties", false);
    schema.set("patternProperties", Json(Json::Object{{"^(_|//)", true}}));
  }
  if (declared.nested().empty()) return schema;
  return Json(
      Json::Object{{"type", "object"}, {"properties", Json(Json::Object{{declared.nested(), std::move(schema)}})}});
}

}  // namespace hctr
