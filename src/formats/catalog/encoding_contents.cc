#include "formats/catalog/encoding_contents.h"

#include <cstdio>
#include <map>

#include "core/base/expect.h"
#include "formats/catalog/slot_rules_of.h"
#include "formats/features/feature_section.h"

namespace hctr {
namespace {

std::string hex_of(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

void add_vocabularies(const std::string& place, const std::vector<SlotRule>& rules, Json& contents) {
  for (size_t s = 0; s < rules.size(); ++s) {
    if (!rules[s].vocabulary) continue;
    const VocabularyFacts facts = facts_of(*rules[s].vocabulary);
    contents.set(cat(place, "/slots/", s, "/vocabulary"),
                 cat(facts.values, facts.values == 1 ? " value" : " values", ", hash ", hex_of(facts.hash)));
  }
}

void add_features(const DataSection& section, Json& contents) {
  const FeatureSpec spec = read_feature_spec(section.feature_spec);
  Problems problems;
  const FeatureUse use = use_features(spec, section, "/layers/0", problems);
  problems.throw_if_any(section.feature_spec);
  const auto add = [&](const char* what, const std::vector<size_t>& features) {
    for (size_t i = 0; i < features.size(); ++i) {
      const FeatureColumn& feature = spec.features[features[i]];
      contents.set(cat("feature_spec/", what, "/", i),
                   cat("'", feature.name, "'", feature.cardinality ? cat(" of ", *feature.cardinality, " ids") : ""));
    }
  };
  add("labels", use.labels);
  add("dense", use.dense);
  add("slots", use.slots);
}

bool is_csv(const DataSection& section) { return section.format.name == "Csv"; }

bool is_of_vocabulary(const std::string& place) { return place.ends_with("/vocabulary"); }

/// Maps JSON paths to values. Paths of vocabularies omit their first name, "csv" or "parquet", because the same
/// vocabulary should compare equal in both formats.
std::map<std::string, const Json*> by_place(const Json& contents) {
  std::map<std::string, const Json*> result;
  for (const auto& [place, value] : *contents.object())
    result[is_of_vocabulary(place) ? place.substr(place.find('/') + 1) : place] = &value;
  return result;
}

}  // namespace

Json encoding_contents(const DataSection& section) {
  Json contents(Json::Object{});
  add_vocabularies(is_csv(section) ? "csv" : "parquet", slot_rules_of(section), contents);
  if (!section.feature_spec.empty()) add_features(section, contents);
  return contents;
}

std::string changed_contents(const Json* saved_data, const DataSection& section) {
  const Json* saved = saved_data ? saved_data->find("encoding") : nullptr;
  if (!saved || !saved->object()) return "";
  Json now;
  try {
    now = encoding_contents(section);
  } catch (const Error& error) {
    if (error.kind() != Kind::io) throw;
    return "";  // the data reader reports the missing file
  }
  std::string text;
  const auto section_of = [&](const std::string& place) {
    return cat("/layers/0/", !is_of_vocabulary(place) ? "" : is_csv(section) ? "csv/" : "parquet/");
  };
  const auto compare = [&](const std::string& place, const Json* was, const Json* is) {
    const auto text_of = [](const Json* value) {
      return !value ? std::string("not there") : value->string() ? *value->string() : value->text();
    };
    if (text_of(was) != text_of(is))
      text += cat(text.empty() ? "" : "; ", section_of(place), place, " was ", text_of(was), " and is ", text_of(is));
  };
  const auto contents = by_place(*saved), new_contents = by_place(now);
  for (const auto& [place, was] : contents)
    if (const auto is = new_contents.find(place); is != new_contents.end())
      compare(place, was, is->second);
    else if (!is_of_vocabulary(place))  // other code reports a removed vocabulary
      compare(place, was, nullptr);
  for (const auto& [place, is] : new_contents)
    if (!contents.contains(place) && !is_of_vocabulary(place)) compare(place, nullptr, is);
  return text;
}

}  // namespace hctr
