// Creates invalid variants of every field of a valid section, derived from the schema of the section.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/base/expect.h"
#include "unit/config/sections/edit_json.h"

namespace hctr::test {

struct SpoiltField {
  std::string how;
  Json section;
  /// pointer of the expected error in the section; nullopt: the section may be valid
  std::optional<std::string> place;
  std::string words;  ///< a text that the error must contain
};

/// Returns values of other types than the type `type`.
inline std::vector<std::string> values_of_other_types(const std::string& type) {
  if (type == "integer") return {"\"x\"", "1.5", "{}", "null", "[1, 2]"};
  if (type == "number") return {"\"x\"", "true", "{}", "null", "[1, 2]"};
  if (type == "true or false") return {"\"x\"", "3", "{}", "null"};
  if (type == "string") return {"3", "{}", "null", "[\"a\", \"b\"]"};
  if (type == "word") return {"\"NoSuchWord\"", "3", "{}", "null"};
  if (type == "object") return {"3", "\"x\"", "[]", "null"};
  if (type.starts_with("array of ")) {
    const std::string element = type == "array of objects" ? "object" : type.substr(9);
    std::vector<std::string> values = {"{}", "null", "true"};
    for (const std::string& value : values_of_other_types(element)) values.push_back("[" + value + "]");
    return values;
  }
  return {"{}", "null"};
}

/// Returns numbers around the bounds of `range` ("more than 0 and at most 5"), each with a flag: true if the number is
/// outside the range.
inline std::vector<std::pair<double, bool>> numbers_around(const std::string& range) {
  std::vector<std::pair<double, bool>> numbers;
  const auto after = [&](const std::string& words, double step) {
    if (const size_t at = range.find(words); at != range.npos) {
      const double bound = std::stod(range.substr(at + words.size()));
      numbers.emplace_back(bound + step, true);
      if (step != 0) numbers.emplace_back(bound, false);
    }
  };
  after("at least ", -1);
  after("more than ", 0);
  after("at most ", 1);
  after("less than ", 0);
  return numbers;
}

inline std::string cut_short(const std::string& word) { return word.substr(0, word.size() - 1); }

inline bool is_field(const std::vector<FieldDoc>& fields, const std::string& word) {
  return std::any_of(fields.begin(), fields.end(), [&](const FieldDoc& field) {
    return field.name == word || std::find(field.aliases.begin(), field.aliases.end(), word) != field.aliases.end();
  });
}

/// Returns invalid variants of the object that contains a layer's fields ("/fc_param").
inline std::vector<SpoiltField> spoilt_object(const Json& section, const std::string& object) {
  std::vector<SpoiltField> all;
  for (const char* value : {"3", "[]", "null"})
    all.push_back({cat(object, " is ", value), edited(section, object, Json::parse(value, "value")), object,
                   "expected an object"});
  const std::string cut = cut_short(object);
  all.push_back({cat(object, " misspelt"), edited(without(section, object), cut, Json(Json::Object{})), cut,
                 cat("did you mean \"", object.substr(1), "\"?")});
  return all;
}

/// `object`: pointer to the object with the fields in the section ("/fc_param", or empty). `bounded`: whether every
/// integer field has an upper bound.
inline std::vector<SpoiltField> spoilt_fields(const Json& section, const std::string& object,
                                              const std::vector<FieldDoc>& fields, bool bounded) {
  std::vector<SpoiltField> all;
  const auto spoil = [&](const std::string& how, Json with, std::optional<std::string> place,
                         const std::string& words) { all.push_back({how, std::move(with), std::move(place), words}); };
  for (const FieldDoc& field : fields) {
    const std::string place = object + "/" + field.name;
    const Json gone = without(section, place);
    if (field.required) spoil(place + " missing", gone, object, cat("needs \"", field.name, "\": ", field.text));
    const std::string cut = cut_short(field.name);
    if (cut.size() > 1 && !is_field(fields, cut))
      spoil(place + " misspelt", edited(gone, object + "/" + cut, Json(1)), object + "/" + cut,
            cat("did you mean \"", field.name, "\"?"));
    for (const std::string& value : values_of_other_types(field.type))
      spoil(cat(place, " is ", value), edited(gone, place, Json::parse(value, "value")), place, "expected ");
    const bool list = field.type.starts_with("array of ");
    const bool whole = field.type.ends_with("integer");
    for (const auto& [number, outside] : numbers_around(field.range)) {
      const Json value = whole ? Json(static_cast<int64_t>(number)) : Json(number);
      const Json given = list ? Json(Json::Array{value}) : value;
      spoil(cat(place, " is ", given.text()), edited(gone, place, given), outside ? std::optional(place) : std::nullopt,
            field.range);
    }
    if (bounded && field.type == "integer")
      spoil(cat(place, " is huge"), edited(gone, place, Json(INT64_MAX)), place, "");
    const std::string element = field.type == "object" ? place : field.type == "array of objects" ? place + "/0" : "";
    if (!element.empty())
      for (const SpoiltField& inner : spoilt_fields(section, element, field.inner, bounded)) all.push_back(inner);
  }
  return all;
}

}  // namespace hctr::test
