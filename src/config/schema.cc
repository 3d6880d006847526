#include "config/schema.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// Whether a value is null, "", [] or an array of empty values.
bool is_empty(const Json& value) {
  if (value.array()) return std::all_of(value.array()->begin(), value.array()->end(), is_empty);
  return value.is_null() || (value.string() && value.string()->empty());
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_comment(std::string_view key) { return key.starts_with("_") || key.starts_with("//"); }

std::string no_effect(const std::string& key, const std::string& why) {
  return "\"" + key + "\" is accepted and has no effect: " + why;
}

/// The keys that an object may have.
struct AllowedKeys {
  std::vector<std::string> known;  ///< all allowed keys
  std::vector<std::string> unset;  ///< the names of fields that are absent
};

/// Reports the keys of `object` that a schema does not know: refused and ignored keys, and misspelled ones.
void report_unknown(const SchemaBase& schema, const Json& object, const std::string& at, const AllowedKeys& keys,
                    Problems& problems) {
  const std::string& title = schema.title();
  for (const auto& [key, value] : *object.object()) {
    if (contains(keys.known, key)) continue;
    const auto is_key = [k = &key](const auto& entry) { return entry.first == *k; };
    const auto ignored = std::find_if(schema.ignored_keys().begin(), schema.ignored_keys().end(), is_key);
    const auto refused = std::find_if(schema.refused_keys().begin(), schema.refused_keys().end(), is_key);
    if (refused != schema.refused_keys().end()) {
      if (is_empty(value))
        problems.note(at + "/" + key, no_effect(key, "it is empty"));
      else
        problems.error(at + "/" + key, cat("\"", key, "\" is not supported: ", refused->second));
    } else if (ignored != schema.ignored_keys().end()) {
      problems.note(at + "/" + key, no_effect(key, ignored->second));
    } else if (const std::string near = nearest(key, keys.unset); !near.empty()) {
      problems.error(at + "/" + key, cat(title, " has no field \"", key, "\"; did you mean \"", near, "\"?"));
    } else if (schema.is_closed() && !is_comment(key)) {
      problems.error(at + "/" + key, cat(title, " has no field \"", key, "\"; --explain ", title, " lists them all"));
    } else {
      problems.warn(at + "/" + key, cat(title, " has no field \"", key, "\"; it is ignored"));
    }
  }
}

}  // namespace

void SchemaBase::add_value(std::string_view name, ptrdiff_t offset, const ValueAccess& value, const void* fallback,
                           std::string_view text, const Range& range, bool required) {
  const Json json = value.write(fallback);
  docs_.push_back({.name = std::string(name),
                   .type = value.type_word(),
                   .default_text = required || json.is_null() ? "" : json.text(),
                   .range = range.text(),
                   .text = std::string(text),
                   .limits = range,
                   .words = value.words(),
                   .required = required});
  fields_.push_back({.offset = offset, .range = range, .value = &value});
}

void SchemaBase::add_part(std::string_view name, const char* type, ptrdiff_t offset, const PartAccess& part,
                          std::shared_ptr<const SchemaBase> schema, std::string_view text, bool required,
                          bool show_inner) {
  docs_.push_back({.name = std::string(name), .type = type, .text = std::string(text), .required = required});
  if (show_inner) docs_.back().inner = schema->fields();
  fields_.push_back({.offset = offset, .part = &part, .schema = std::move(schema)});
}

void SchemaBase::set_unused_when(std::function<std::string(const void*)> why) {
  fields_.back().why_unused = std::move(why);
}

void SchemaBase::parse_into(void* out, const Json& node, const std::string& pointer, Problems& problems,
                            const std::vector<std::string>& outer_keys) const {
  if (!short_field_.empty() && node.string())
    return parse_into(out, Json(Json::Object{{short_field_, node}}), pointer, problems, outer_keys);
  const size_t errors_before = problems.errors().size();
  const Found found = match(node, pointer, problems, outer_keys);
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& [value, place] = found[i];
    const Field& field = fields_[i];
    if (!value) continue;
    void* const member = static_cast<char*>(out) + field.offset;
    const std::string why = field.why_unused ? field.why_unused(out) : "";
    if (!why.empty()) {
      problems.note(place, no_effect(docs_[i].name, why));
    } else if (field.part) {
      field.part->read(*field.schema, *value, place, member, problems);
    } else if (const Misfit misfit = field.value->read(*value, field.range, member); !misfit.empty()) {
      problems.error(place + misfit.pointer, "expected " + misfit.expected + ", found " +
                                                 (misfit.pointer.empty() ? value->kind() : misfit.found));
    }
  }
  if (together_ && problems.errors().size() == errors_before)
    together_(out, nested_.empty() ? pointer : pointer + "/" + nested_, problems);
}

Json SchemaBase::effective_of(const void* from) const {
  Json object(Json::Object{});
  for (size_t i = 0; i < docs_.size(); ++i) {
    const Field& field = fields_[i];
    if (field.why_unused && !field.why_unused(from).empty()) continue;
    const void* const member = static_cast<const char*>(from) + field.offset;
    Json value = field.part ? field.part->write(*field.schema, member) : field.value->write(member);
    if (!value.is_null()) object.set(docs_[i].name, std::move(value));
  }
  if (nested_.empty()) return object;
  return Json(Json::Object{{nested_, std::move(object)}});
}

SchemaBase::Found SchemaBase::match(const Json& node, const std::string& pointer, Problems& problems,
                                    const std::vector<std::string>& outer_keys) const {
  Found found(docs_.size(), {nullptr, ""});
  const Json* object = &node;
  std::string here = pointer;
  if (!node.object()) {
    problems.error(pointer, cat(title_, ": expected ", short_field_.empty() ? "" : "a string or ", "an object, found ",
                                node.kind()));
    return found;
  }
  const bool any_required = std::any_of(docs_.begin(), docs_.end(), [](const FieldDoc& d) { return d.required; });
  if (!nested_.empty()) {
    AllowedKeys keys{.known = outer_keys, .unset = {}};
    keys.known.push_back(nested_);
    object = node.find(nested_);
    if (!object) keys.unset.push_back(nested_);
    report_unknown(*this, node, pointer, keys, problems);
    here = pointer + "/" + nested_;
    if (!object) {
      if (any_required) problems.error(pointer, cat(title_, " needs the object \"", nested_, "\""));
      return found;
    }
    if (!object->object()) {
      problems.error(here, cat("expected an object, found ", object->kind()));
      return found;
    }
  }

  AllowedKeys keys;
  if (nested_.empty()) keys.known = outer_keys;
  for (size_t i = 0; i < docs_.size(); ++i) {
    std::vector<std::string> spellings = docs_[i].aliases;
    spellings.insert(spellings.begin(), docs_[i].name);
    for (const std::string& spelling : spellings) {
      keys.known.push_back(spelling);
      const Json* value = object->find(spelling);
      if (!value) continue;
      if (!found[i].first) found[i] = {value, here + "/" + spelling};
      // two spellings of a field may have equal values, because a file may be written for several versions
      else if (found[i].first->text() != value->text())
        problems.error(here + "/" + spelling, cat("\"", spelling, "\" and \"", found[i].second.substr(here.size() + 1),
                                                  "\" are names of the same field and have different values; keep "
                                                  "one"));
    }
    if (!found[i].first) keys.unset.insert(keys.unset.end(), spellings.begin(), spellings.end());
  }
  report_unknown(*this, *object, here, keys, problems);
  for (size_t i = 0; i < docs_.size(); ++i)
    if (docs_[i].required && !found[i].first)
      problems.error(here, cat(title_, " needs \"", docs_[i].name, "\": ", docs_[i].text));
  return found;
}

}  // namespace hctr
