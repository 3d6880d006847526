#include "infer/encoding_differences.h"

#include <algorithm>
#include <map>
#include <set>

#include "config/values.h"
#include "core/base/expect.h"
#include "formats/data/column_section.h"

namespace hctr {
namespace {

constexpr const char* kKeysByType = "by type";
constexpr const char* kAbsent = "not there";
constexpr const char *kPlainNumbers = "\"1234.5\"", *kNoUnit = "\"\"";

/// Maps the path of a field to its value as text.
using Fields = std::map<std::string, std::string>;

const Json* field(const Json* object, const char* name) {
  const Json* value = object ? object->find(name) : nullptr;
  return value && !unwrapped(*value).is_null() ? &unwrapped(*value) : nullptr;
}

/// Converts a value to comparable text: 2.0 becomes 2, and a list of one element becomes the element.
std::string text_of(const Json& given) {
  const Json& value = unwrapped(given);
  if (value.is_number() && !value.integer()) {
    const double number = value.number();
    const auto whole = static_cast<int64_t>(std::clamp(number, -9e15, 9e15));
    return static_cast<double>(whole) == number ? cat(whole) : value.text();
  }
  if (const Json::Array* list = value.array(); list && list->size() == 1) return text_of((*list)[0]);
  if (const Json::Array* list = value.array()) {
    std::string text;
    for (const Json& element : *list) text += cat(text.empty() ? "[" : ", ", text_of(element));
    return text.empty() ? "[]" : text + "]";
  }
  if (const std::string* word = value.string(); word && *word == "standardise") return "\"standardize\"";
  return value.text();
}

/// An object as comparable text.
std::string text_of_object(const Json::Object& object) {
  std::string text;
  for (const auto& [name, value] : object) text += cat(text.empty() ? "{" : ", ", "\"", name, "\": ", text_of(value));
  return text.empty() ? "{}" : text + "}";
}

std::string text_or(const Json* object, const char* name, const std::string& otherwise) {
  const Json* value = field(object, name);
  return value ? text_of(*value) : otherwise;
}

/// The elements of a list; a single value counts as a list of length one.
Json::Array elements(const Json* list) {
  if (!list) return {};
  return list->array() ? *list->array() : Json::Array{*list};
}

/// The text of a list whose order does not matter.
std::string set_of(const Json* list) {
  std::set<std::string> texts;
  for (const Json& element : elements(list)) texts.insert(text_of(element));
  std::string text;
  for (const std::string& one : texts) text += cat(text.empty() ? "" : ", ", one);
  return texts.size() == 1 ? text : cat("[", text, "]");
}

void add_labels(const std::string& path, const Json* labels, const std::string& number_format, Fields& fields) {
  size_t at = 0;
  for (const Json& given : elements(labels)) {
    const Json& label = unwrapped(given);
    const std::string place = cat(path, "/labels/", at++);
    fields[place + "/column"] = label.object() ? text_or(&label, "column", "none") : text_of(label);
    const Json* positive = label.object() ? field(&label, "positive") : nullptr;
    if (positive)
      fields[place + "/positive"] = positive->object() ? text_of_object(*positive->object()) : set_of(positive);
    if (positive && !positive->object()) continue;  // labels that are texts have no number format
    const std::string format = label.object() ? text_or(&label, "number_format", number_format) : number_format;
    const std::string unit = label.object() ? text_or(&label, "unit", kNoUnit) : kNoUnit;
    if (format != kPlainNumbers) fields[place + "/number_format"] = format;
    if (unit != kNoUnit) fields[place + "/unit"] = unit;
  }
}

/// Whether mean and standard deviation of a group of dense columns are computed from the data. In that case a missing
/// value becomes the mean.
bool is_learned(const Json& group) {
  const auto given = [&](const char* name) {
    const Json* value = field(&group, name);
    return value && !(value->array() && value->array()->empty());
  };
  return text_or(&group, "transform", "").find("\"standardize\"") != std::string::npos && !given("mean") &&
         !given("std");
}

/// Adds the fields of every column in the groups. Fields of a group apply to each of its columns; `mean` and `std` may
/// be lists with a number for each column.
void add_columns(const std::string& path, const Json* groups, const std::map<std::string, std::string>& defaults,
                 Fields& fields) {
  size_t at = 0;
  for (const Json& group : elements(groups)) {
    const Json::Array columns = elements(field(&group, "columns"));
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string place = cat(path, "/", at++);
      fields[place + "/column"] = text_of(columns[c]);
      for (const auto& [name, otherwise] : defaults) {
        const Json* value = field(&group, name.c_str());
        const bool per_column = (name == "mean" || name == "std") && value && value->array();
        std::string text = value ? text_of(*value) : name == "default" && is_learned(group) ? "0" : otherwise;
        if (per_column && value->array()->empty()) text = otherwise;
        if (per_column && value->array()->size() == columns.size()) text = text_of((*value->array())[c]);
        fields[cat(place, "/", name)] = text;
      }
    }
  }
}

/// For each slot, adds the number of the first slot with the same key space. The names of key spaces do not matter.
void add_key_spaces(const std::string& path, const Json* groups, Fields& fields) {
  std::vector<std::string> names;
  for (const Json& group : elements(groups)) {
    const Json* name = field(&group, "key_space");
    const std::string* text = name ? name->string() : nullptr;
    names.resize(names.size() + elements(field(&group, "columns")).size(), text ? *text : "");
  }
  const std::vector<int64_t> firsts = first_of_key_spaces(names);
  for (size_t slot = 0; slot < firsts.size(); ++slot)
    fields[cat(path, "/", slot, "/key_space")] =
        firsts[slot] == static_cast<int64_t>(slot) ? "its own" : cat("that of slot ", firsts[slot]);
}

/// The fields of a Data layer that affect how values are encoded.
Fields encoding_of(const Json& data) {
  Fields fields;
  size_t at = 0;
  for (const Json& input : elements(field(&data, "sparse"))) {
    const std::string place = cat("sparse/", at++);
    fields[place + "/top"] = text_or(&input, "top", "none");
    if (field(&input, "slot_num")) fields[place + "/slot_num"] = text_or(&input, "slot_num", "");
  }
  const Json* sizes = field(&data, "slot_size_array");
  if (sizes && sizes->array() && !sizes->array()->empty()) fields["slot_size_array"] = text_of(*sizes);
  for (const std::string name : {"csv", "parquet"}) {
    const Json* section = field(&data, name.c_str());
    if (!section) continue;
    fields[name + "/hash_seed"] = text_or(section, "hash_seed", "0");
    const std::string number_format = text_or(section, "number_format", kPlainNumbers);
    add_labels(name, field(section, "labels"), number_format, fields);
    add_columns(name + "/dense", field(section, "dense"),
                {{"transform", "\"none\""},
                 {"mean", "learned"},
                 {"std", "learned"},
                 {"default", name == "csv" ? "0" : text_or(section, "default_dense", "none")},
                 {"number_format", number_format},
                 {"unit", kNoUnit}},
                fields);
    add_columns(name + "/slots", field(section, "slots"),
                {{"keys", name == "csv" ? "\"hash\"" : kKeysByType},
                 {"buckets", "0"},
                 {"separator", "\"\""},
                 {"brackets", "false"},
                 {"default", text_or(section, "default_key", "none")}},
                fields);
    add_key_spaces(name + "/slots", field(section, "slots"), fields);
    // These defaults apply to columns that the config does not name.
    for (const auto& [columns, other] : {std::pair{"dense", "default_dense"}, {"slots", "default_key"}})
      if (!field(section, columns)) fields[cat(name, "/", other)] = text_or(section, other, "none");
    fields[name + "/trim"] = text_or(section, "trim", "false");
    fields[name + "/missing"] = set_of(field(section, "missing"));
  }
  const std::string format = text_or(&data, "format", "\"Norm\"");
  const Json* criteo = field(&data, "criteo");
  if (format.starts_with("\"Criteo"))
    for (const auto& [name, otherwise] :
         {std::pair{"wide", "\"none\""}, {"integers", "\"dense\""}, {"buckets", "0"}, {"key_bits", "64"}})
      fields[cat("criteo/", name)] = text_or(criteo, name, otherwise);
  return fields;
}

/// Handles saved slots without "keys", whose key rule was derived from the column type. If the other config sets "keys"
/// for such a slot, sets the derived rule as the "keys" of the saved slot. `of_texts`: whether the other config reads
/// text, which cannot contain Parquet's times.
void state_rules(const std::vector<SlotKeyRule>& rules, const Fields& other, Fields& saved, bool of_texts) {
  for (const SlotKeyRule& rule : rules)
    for (const auto& [path, column] : Fields(saved)) {
      constexpr std::string_view kColumn = "/column";
      if (!path.starts_with("parquet/slots/") || !path.ends_with(kColumn) || column != Json(rule.column).text())
        continue;
      const std::string keys = path.substr(0, path.size() - kColumn.size()) + "/keys";
      const auto stated = other.find(keys);
      if (saved[keys] == kKeysByType && stated != other.end() && stated->second != kKeysByType)
        saved[keys] = cat("\"", word_of_rule(rule), "\"");
      if (rule.times && of_texts) saved[keys] += " of times";
    }
}

/// Whether keys of a slot are shifted by the sizes of the preceding slots.
bool sizes_move_keys(const std::string& format) { return format == "\"Raw\"" || format == "\"Parquet\""; }

/// Whether two formats name columns in the same way, and convert the same values to the same keys.
bool are_alike(const std::string& format, const std::string& other) {
  const std::set<std::string> both = {format, other};
  return both == std::set<std::string>{"\"Csv\"", "\"Parquet\""};
}

/// Renames the fields of section `from`, "csv" or "parquet", to section `to`.
Fields in_section(const Fields& fields, const std::string& from, const std::string& to) {
  Fields result;
  for (const auto& [path, value] : fields)
    result[path.starts_with(from + "/") ? to + path.substr(from.size()) : path] = value;
  return result;
}

/// Whether two values of a field count as different if the configs have different formats. Fields about the layout of a
/// file never count. "positive" counts only if both configs have it.
bool differ_between_formats(const std::string& path, const std::string& was, const std::string& is) {
  for (const char* of_file :
       {"/trim", "/missing", "/default", "/separator", "/brackets", "/default_dense", "/default_key", "/number_format"})
    if (path.ends_with(of_file)) return false;
  if (path.ends_with("/positive") && (was == kAbsent || is == kAbsent)) return false;
  return was != is;
}

}  // namespace

const Json* data_layer(const Json& config) {
  const Json* layers = config.find("layers");
  return layers && layers->array() && !layers->array()->empty() ? &unwrapped((*layers->array())[0]) : nullptr;
}

std::string data_format_of(const Json& data) {
  if (field(&data, "feature_spec")) return "feature_spec";
  const std::string word = text_or(&data, "format", "\"Norm\"");
  return word == "\"RawAsync\"" ? "\"Raw\"" : word;
}

bool is_of_formats(const std::string& differences) { return differences.starts_with("/layers/0/format "); }
bool is_between_formats(const std::string& differences) {
  return differences.find(" and /layers/0/") != differences.npos;
}

std::string encoding_differences(const Json& saved, const Json& config, const std::vector<SlotKeyRule>& rules) {
  const Json *before = data_layer(saved), *now = data_layer(config);
  if (!before || !now) return "";
  const std::string format = data_format_of(*before), other = data_format_of(*now);
  const std::string section = format == "\"Csv\"" ? "csv" : "parquet", of_other = section == "csv" ? "parquet" : "csv";
  const bool alike = are_alike(format, other) && field(field(before, section.c_str()), "slots") &&
                     field(field(now, of_other.c_str()), "slots");
  if (format != other && !alike) return cat("/layers/0/format was ", format, " and is ", other);
  Fields was = encoding_of(*before);
  const Fields is = alike ? in_section(encoding_of(*now), of_other, section) : encoding_of(*now);
  state_rules(rules, is, was, alike);
  std::set<std::string> paths;
  for (const auto& [path, value] : was) paths.insert(path);
  for (const auto& [path, value] : is) paths.insert(path);
  std::string text;
  for (const std::string& path : paths) {
    const auto a = was.find(path);
    const auto b = is.find(path);
    // An omitted "slot_num" follows from the columns, so it differs only if both configs state it. The same applies to
    // "slot_size_array", except in formats that shift keys by these sizes.
    const bool derived = path.ends_with("/slot_num") || (path == "slot_size_array" && !sizes_move_keys(format));
    if (derived && (a == was.end() || b == is.end())) continue;
    const std::string old = a == was.end() ? kAbsent : a->second, next = b == is.end() ? kAbsent : b->second;
    // The config derives this slot's rule from its column type. key_rules_of_model() compares it once the type is
    // known.
    if (path.ends_with("/keys") && next == kKeysByType && (old == "\"hash\"" || old == "\"number\"")) continue;
    if (alike ? !differ_between_formats(path, old, next) : old == next) continue;
    const std::string place = alike && path.starts_with(section)
                                  ? cat("/layers/0/", of_other, path.substr(section.size()), " ")
                                  : std::string();
    text += cat(text.empty() ? "" : "; ", "/layers/0/", path, " was ", old, " and ", place, "is ", next);
  }
  return text;
}

}  // namespace hctr
