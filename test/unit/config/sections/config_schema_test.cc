// The JSON Schema of configs accepts the configs of the samples, and rejects configs with mistakes.
#include "config/sections/config_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "config/json.h"
#include "core/base/files.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

/// Validates against the subset of JSON Schema that the program writes. Returns the JSON pointer of the first invalid
/// value and the violated keyword; empty if all values are valid.
std::string misfit(const Json& schema, const Json& value, const std::string& at) {
  if (schema.boolean()) return *schema.boolean() ? "" : at + " false";
  const auto fails = [&](const char* keyword) { return at + " " + keyword; };
  const auto equals = [&](const Json& other) { return other.text() == value.text(); };
  for (const auto& [keyword, rule] : *schema.object()) {
    if (keyword == "type") {
      const std::string& type = *rule.string();
      const bool fits = type == "object"    ? value.object() != nullptr
                        : type == "array"   ? value.array() != nullptr
                        : type == "string"  ? value.string() != nullptr
                        : type == "boolean" ? value.boolean() != nullptr
                        : type == "integer" ? value.integer() != nullptr
                        : type == "number"  ? value.is_number()
                                            : false;
      if (!fits) return fails("type");
    } else if (keyword == "enum") {
      if (std::none_of(rule.array()->begin(), rule.array()->end(), equals)) return fails("enum");
    } else if (keyword == "const") {
      if (!equals(rule)) return fails("const");
    } else if (keyword == "minimum" || keyword == "maximum" || keyword == "exclusiveMinimum" ||
               keyword == "exclusiveMaximum") {
      if (!value.is_number()) continue;
      const double number = value.number(), limit = rule.number();
      const bool fits = keyword == "minimum"            ? number >= limit
                        : keyword == "maximum"          ? number <= limit
                        : keyword == "exclusiveMinimum" ? number > limit
                                                        : number < limit;
      if (!fits) return fails(keyword.c_str());
    } else if (keyword == "anyOf") {
      if (std::none_of(rule.array()->begin(), rule.array()->end(),
                       [&](const Json& one) { return misfit(one, value, at).empty(); }))
        return fails("anyOf");
    } else if (keyword == "allOf") {
      for (const Json& one : *rule.array())
        if (const std::string found = misfit(one, value, at); !found.empty()) return found;
    } else if (keyword == "if") {
      if (misfit(rule, value, at).empty())
        if (const std::string found = misfit(*schema.find("then"), value, at); !found.empty()) return found;
    } else if (keyword == "required") {
      for (const Json& name : *rule.array())
        if (value.object() && !value.find(*name.string())) return at + " required " + *name.string();
    } else if (keyword == "items") {
      for (size_t i = 0; value.array() && i < value.array()->size(); ++i)
        if (const std::string found = misfit(rule, (*value.array())[i], at + "/" + std::to_string(i)); !found.empty())
          return found;
    } else if (keyword == "properties" && value.object()) {
      for (const auto& [name, inner] : *value.object())
        if (const Json* of = rule.find(name))
          if (const std::string found = misfit(*of, inner, at + "/" + name); !found.empty()) return found;
    } else if (keyword == "additionalProperties" && value.object()) {
      for (const auto& [name, inner] : *value.object()) {
        bool known = schema.find("properties")->find(name) != nullptr;
        for (const auto& [pattern, of] : *schema.find("patternProperties")->object())
          known = known || std::regex_search(name, std::regex(pattern));
        if (!known) return at + "/" + name + " additionalProperties";
      }
    }
  }
  return "";
}

std::string misfit(const std::string& config) {
  static const Json schema = Json::parse(config_schema_text(), "the schema");
  return misfit(schema, Json::parse(config, "the config"), "");
}

TEST(ConfigSchema, ConfigsOfTheSamplesFit) {
  int configs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "samples")) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = read_text(entry.path(), "");
    if (!Json::parse(text, entry.path().string()).find("layers")) continue;
    ++configs;
    EXPECT_EQ(misfit(text), "") << entry.path();
  }
  EXPECT_GE(configs, 10);
}

TEST(ConfigSchema, MistakesDoNotFit) {
  const auto with_solver = [](const std::string& field) {
    return misfit(R"({"solver": {"batchsize": 8)" + field + R"(}, "layers": []})");
  };
  EXPECT_EQ(with_solver(""), "");
  EXPECT_EQ(with_solver(R"(, "_comment": "short runs")"), "");
  EXPECT_EQ(with_solver(R"(, "bathsize": 8)"), "/solver/bathsize additionalProperties");
  EXPECT_EQ(with_solver(R"(, "seed": "seven")"), "/solver/seed type");
  EXPECT_EQ(with_solver(R"(, "display": -1)"), "/solver/display minimum");
  EXPECT_EQ(with_solver(R"(, "on_nan": "Skip it")"), "/solver/on_nan enum");
  EXPECT_EQ(misfit(R"({"solver": {}, "layers": []})"), "/solver required batchsize");
  const auto with_layer = [](const std::string& layer) { return misfit(R"({"layers": [)" + layer + "]}"); };
  EXPECT_EQ(with_layer(R"({"type": "InnerProduct", "fc_param": {"num_output": 8}})"), "");
  EXPECT_EQ(with_layer(R"({"type": "InerProduct", "fc_param": {"num_output": 8}})"), "/layers/0/type enum");
  EXPECT_EQ(with_layer(R"({"type": "InnerProduct", "fc_param": {"num_output": 0}})"),
            "/layers/0/fc_param/num_output minimum");
  EXPECT_EQ(with_layer(R"({"type": "Dropout", "rate": 1})"), "/layers/0/rate exclusiveMaximum");
  EXPECT_EQ(with_layer(R"({"bottom": "a"})"), "/layers/0 required type");
  const auto with_csv = [&](const std::string& fields) {
    return with_layer(R"({"type": "Data", "label": {"top": "l"}, "dense": {"top": "d"}, "sparse": [{"top": "s"}],
                          "csv": {"labels": ["y", {"column": "z", "positive": {"at_least": 4}}], )" +
                      fields + "}}");
  };
  EXPECT_EQ(with_csv(R"("dense": [{"columns": ["a"], "transform": ["log", "standardize"]}])"), "");
  EXPECT_EQ(with_csv(R"("dense": [{"columns": ["a"], "transform": "standardize"}])"), "");
  EXPECT_EQ(with_csv(R"("dense": [{"columns": ["a"], "transform": "sqrt"}])"), "/layers/0/csv/dense/0/transform anyOf");
  EXPECT_EQ(with_csv(R"("missing": 7)"), "/layers/0/csv/missing anyOf");
  EXPECT_EQ(misfit(R"({"optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1, "decay_start": "50%",
                                      "decay_steps": 0.5}}, "layers": []})"),
            "");
}

}  // namespace
}  // namespace hctr::test
