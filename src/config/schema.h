// What a JSON object may hold, declared once: names, types, defaults, ranges, aliases and a sentence for the manual.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/json.h"
#include "config/problems.h"
#include "config/values.h"

namespace hctr {

/// One field as the manual shows it.
struct FieldDoc {
  std::string name{}, type{}, default_text{}, range{}, text{};
  std::vector<std::string> aliases{};
  std::vector<FieldDoc> inner{};  ///< the fields of an object, or of each object of an array
  bool required = false;
};

/// The part of a schema that does not depend on the struct it fills.
class SchemaBase {
 public:
  const std::string& title() const { return title_; }
  const std::string& nested() const { return nested_; }
  const std::vector<FieldDoc>& fields() const { return docs_; }
  /// Keys accepted without effect, and why.
  const std::vector<std::pair<std::string, std::string>>& ignored_keys() const { return ignored_; }
  /// Keys that are an error unless their value is empty, and why.
  const std::vector<std::pair<std::string, std::string>>& refused_keys() const { return refused_; }

 protected:
  using Found = std::vector<std::pair<const Json*, std::string>>;  // per field: its value and pointer, or null
  SchemaBase(std::string title, std::string nested) : title_(std::move(title)), nested_(std::move(nested)) {}
  /// Finds each field's value under its name or an alias and reports what is unknown, doubled or missing.
  Found match(const Json& node, const std::string& pointer, Problems&,
              const std::vector<std::string>& outer_keys) const;

  static std::string no_effect(const std::string& key, const std::string& why) {
    return "\"" + key + "\" is accepted and has no effect: " + why;
  }

  std::string title_, nested_;
  std::vector<FieldDoc> docs_;
  std::vector<std::pair<std::string, std::string>> ignored_;  // key, why it has no effect
  std::vector<std::pair<std::string, std::string>> refused_;  // key, why it is an error
};

/// Reads a JSON object into a P. P's member initialisers are the defaults; they are written nowhere else.
///
/// `title` is the word users know the object by ("InnerProduct", "solver"); with `nested`, the fields stand in a member
/// of that name ("fc_param"). An unknown key within two edits of a field that is not set is an error, any other unknown
/// key a warning.
template <class P>
class Schema : public SchemaBase {
 public:
  explicit Schema(std::string title, std::string nested = "") : SchemaBase(std::move(title), std::move(nested)) {}

  template <class T>
  Schema& need(std::string name, T P::*member, std::string text, Range range = {}) {
    return field(std::move(name), member, std::move(text), range, true);
  }
  template <class T>
  Schema& opt(std::string name, T P::*member, std::string text, Range range = {}) {
    return field(std::move(name), member, std::move(text), range, false);
  }
  /// Another spelling of the field declared last.
  Schema& alias(std::string name) {
    docs_.back().aliases.push_back(std::move(name));
    return *this;
  }
  /// The field declared last is accepted but not read when `why` gives a reason, which depends on fields declared
  /// before it.
  Schema& unused_when(std::function<std::string(const P&)> why) {
    why_unused_.resize(docs_.size());
    why_unused_.back() = std::move(why);
    return *this;
  }
  /// A key that old files hold and that has no effect: accepted, with one line saying why.
  Schema& ignored(std::string key, std::string why) {
    ignored_.emplace_back(std::move(key), std::move(why));
    return *this;
  }
  /// A key that other programs read and that would change the model: an error unless its value is empty (null, "",
  /// [] or [""]).
  Schema& refused(std::string key, std::string why) {
    refused_.emplace_back(std::move(key), std::move(why));
    return *this;
  }
  /// An object inside this one, read by its own schema.
  template <class T>
  Schema& part(std::string name, T P::*member, Schema<T> schema, std::string text, bool required = true) {
    docs_.push_back({.name = std::move(name),
                     .type = "object",
                     .text = std::move(text),
                     .inner = schema.fields(),
                     .required = required});
    readers_.push_back([member, schema](const Json& value, const std::string& pointer, P& out, Problems& problems) {
      out.*member = schema.parse(value, pointer, problems);
    });
    writers_.push_back([member, schema](const P& from) {
      if constexpr (requires { (from.*member).given; })  // a part that says whether it was there is left out when not
        if (!(from.*member).given) return Json();
      return schema.effective(from.*member);
    });
    return *this;
  }
  /// The same, for an object that may be absent.
  template <class T>
  Schema& part(std::string name, std::optional<T> P::*member, Schema<T> schema, std::string text) {
    docs_.push_back({.name = std::move(name), .type = "object", .text = std::move(text)});
    readers_.push_back([member, schema](const Json& value, const std::string& pointer, P& out, Problems& problems) {
      out.*member = schema.parse(value, pointer, problems);
    });
    writers_.push_back(
        [member, schema](const P& from) { return from.*member ? schema.effective(*(from.*member)) : Json(); });
    return *this;
  }
  /// An object that may be absent, kept by a member that stores objects by their type: `edit<T>()` adds it, `find<T>()`
  /// is null when there is none.
  template <class T, class Store>
  Schema& part_in(std::string name, Store P::*member, Schema<T> schema, std::string text) {
    docs_.push_back({.name = std::move(name), .type = "object", .text = std::move(text), .inner = schema.fields()});
    readers_.push_back([member, schema](const Json& value, const std::string& pointer, P& out, Problems& problems) {
      (out.*member).template edit<T>() = schema.parse(value, pointer, problems);
    });
    writers_.push_back([member, schema](const P& from) {
      const T* given = (from.*member).template find<T>();
      return given ? schema.effective(*given) : Json();
    });
    return *this;
  }
  /// An array of objects, each read by its own schema.
  template <class T>
  Schema& list(std::string name, std::vector<T> P::*member, Schema<T> schema, std::string text, bool required = true) {
    docs_.push_back({.name = std::move(name),
                     .type = "array of objects",
                     .text = std::move(text),
                     .inner = schema.fields(),
                     .required = required});
    readers_.push_back([member, schema](const Json& value, const std::string& pointer, P& out, Problems& problems) {
      if (!value.array()) return problems.error(pointer, "expected an array of objects, found " + value.kind());
      for (size_t i = 0; i < value.array()->size(); ++i)
        (out.*member).push_back(schema.parse((*value.array())[i], pointer + "/" + std::to_string(i), problems));
    });
    writers_.push_back([member, schema](const P& from) {
      Json array(Json::Array{});
      for (const T& element : from.*member) array.add(schema.effective(element));
      return array;
    });
    return *this;
  }
  /// Rules across fields. Called with the pointer of the object when every field alone is right.
  Schema& together(std::function<void(P&, const std::string& pointer, Problems&)> check) {
    together_ = std::move(check);
    return *this;
  }

  /// `outer_keys`: keys of the same object that another reader takes.
  P parse(const Json& node, const std::string& pointer, Problems& problems,
          const std::vector<std::string>& outer_keys = {}) const {
    P out{};
    const size_t errors_before = problems.errors().size();
    const Found found = match(node, pointer, problems, outer_keys);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].first) continue;
      const std::string why = i < why_unused_.size() && why_unused_[i] ? why_unused_[i](out) : "";
      if (why.empty())
        readers_[i](*found[i].first, found[i].second, out, problems);
      else
        problems.note(found[i].second, no_effect(docs_[i].name, why));
    }
    if (together_ && problems.errors().size() == errors_before)
      together_(out, nested_.empty() ? pointer : pointer + "/" + nested_, problems);
    return out;
  }

  /// The object with every default filled in.
  Json effective(const P& from) const {
    Json object(Json::Object{});
    for (size_t i = 0; i < docs_.size(); ++i)
      if (Json value = writers_[i](from); !value.is_null()) object.set(docs_[i].name, std::move(value));
    if (nested_.empty()) return object;
    return Json(Json::Object{{nested_, std::move(object)}});
  }

 private:
  template <class T>
  Schema& field(std::string name, T P::*member, std::string text, Range range, bool required) {
    const Json fallback = to_json(P{}.*member);
    docs_.push_back({.name = std::move(name),
                     .type = TypeWord<T>::text(),
                     .default_text = required || fallback.is_null() ? "" : fallback.text(),
                     .range = range.text(),
                     .text = std::move(text),
                     .required = required});
    readers_.push_back([member, range](const Json& value, const std::string& pointer, P& out, Problems& problems) {
      const Misfit misfit = read_value(value, range, out.*member);
      if (!misfit.empty())
        problems.error(pointer + misfit.place, "expected " + misfit.expected + ", found " +
                                                   (misfit.place.empty() ? value.kind() : misfit.found));
    });
    writers_.push_back([member](const P& from) { return to_json(from.*member); });
    return *this;
  }

  std::vector<std::function<void(const Json&, const std::string&, P&, Problems&)>> readers_;
  std::vector<std::function<Json(const P&)>> writers_;
  std::vector<std::function<std::string(const P&)>> why_unused_;  // by field; may be shorter
  std::function<void(P&, const std::string&, Problems&)> together_;
};

}  // namespace hctr
