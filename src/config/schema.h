// Declares each field of a JSON object in one place: name, type, default, range, aliases and text for the manual.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/json.h"
#include "config/problems.h"
#include "config/values.h"

namespace hctr {

/// The description of one field, for the manual.
struct FieldDoc {
  std::string name{}, type{}, default_text{}, range{}, text{};
  std::vector<std::string> aliases{};
  Range limits{};                    ///< range of a number
  std::vector<std::string> words{};  ///< all allowed texts; empty: any text
  std::vector<FieldDoc> inner{};     ///< the fields of an object, or of each object in an array
  bool required = false;
};

/// Type-erased functions that read and write a value of one type.
struct ValueAccess {
  Misfit (*read)(const Json&, const Range&, void* value);
  Json (*write)(const void* value);
  std::string (*type_word)();
  std::vector<std::string> (*words)();
};
template <class T>
inline constexpr ValueAccess kValueAccess = {[](const Json& json, const Range& range, void* value) -> Misfit {
                                               return read_value(json, range, *static_cast<T*>(value));
                                             },
                                             [](const void* value) { return to_json(*static_cast<const T*>(value)); },
                                             [] { return TypeWord<T>::text(); }, [] { return words_of<T>(); }};

class SchemaBase;

/// Type-erased functions that read and write an inner object by its schema.
struct PartAccess {
  void (*read)(const SchemaBase&, const Json&, const std::string& pointer, void* part, Problems&);
  Json (*write)(const SchemaBase&, const void* part);
};

/// The part of a schema that does not depend on the struct type, so that its code is compiled once. Each field is given
/// by its byte offset in the struct.
class SchemaBase {
 public:
  const std::string& title() const { return title_; }
  const std::string& nested() const { return nested_; }
  const std::vector<FieldDoc>& fields() const { return docs_; }
  /// Keys that are accepted without effect, each with the reason.
  const std::vector<std::pair<std::string, std::string>>& ignored_keys() const { return ignored_; }
  /// Keys that are an error unless their value is empty, each with the reason.
  const std::vector<std::pair<std::string, std::string>>& refused_keys() const { return refused_; }
  /// Whether unknown keys are errors.
  bool is_closed() const { return closed_; }
  /// If a string may replace the object: the field that gets the string. Otherwise empty.
  const std::string& short_field() const { return short_field_; }

 protected:
  SchemaBase(std::string_view title, std::string_view nested) : title_(title), nested_(nested) {}
  void add_value(std::string_view name, ptrdiff_t offset, const ValueAccess&, const void* fallback,
                 std::string_view text, const Range&, bool required);
  void add_part(std::string_view name, const char* type, ptrdiff_t offset, const PartAccess&,
                std::shared_ptr<const SchemaBase> schema, std::string_view text, bool required, bool show_inner);
  void set_unused_when(std::function<std::string(const void*)> why);
  static const char* list_word(const SchemaBase& element) {
    return element.short_field_.empty() ? "array of objects" : "array of strings or objects";
  }
  void parse_into(void* out, const Json& node, const std::string& pointer, Problems&,
                  const std::vector<std::string>& outer_keys) const;
  Json effective_of(const void* from) const;

  std::string title_, nested_, short_field_;
  std::vector<FieldDoc> docs_;
  std::vector<std::pair<std::string, std::string>> ignored_;  // each key, with the reason why it has no effect
  std::vector<std::pair<std::string, std::string>> refused_;  // each key, with the reason why it is an error
  std::function<void(void*, const std::string&, Problems&)> together_;
  bool closed_ = false;

 private:
  struct Field {
    ptrdiff_t offset = 0;
    Range range{};
    const ValueAccess* value = nullptr;  // exactly one of `value` and `part` is set
    const PartAccess* part = nullptr;
    std::shared_ptr<const SchemaBase> schema{};  // schema of the inner object; copies of this schema share it
    std::function<std::string(const void*)> why_unused{};
  };
  // one element per field: the value (null: absent) and its JSON pointer
  using Found = std::vector<std::pair<const Json*, std::string>>;
  /// Finds the value of each field, under the field's name or an alias. Reports unknown, conflicting and missing keys.
  Found match(const Json& node, const std::string& pointer, Problems&,
              const std::vector<std::string>& outer_keys) const;

  std::vector<Field> fields_;
};

/// Reads a JSON object into a P. The member initializers of P are the only place for defaults.
///
/// `title`: the object's name for users ("InnerProduct", "solver"). `nested`: the member that contains the fields
/// ("fc_param"); empty: the object itself. An unknown key is an error if its spelling is within two edits of a field
/// that is not set, or if the schema is closed(); otherwise a warning.
template <class P>
class Schema : public SchemaBase {
 public:
  explicit Schema(std::string_view title, std::string_view nested = "") : SchemaBase(title, nested) {}

  /// Declares a required field, stored in a member of P or of a base class of P. opt() declares an optional field.
  template <class T, class Base>
  Schema& need(std::string_view name, T Base::*member, std::string_view text, const Range& range = {}) {
    add_value(name, offset_of<T>(member), kValueAccess<T>, &(defaults().*member), text, range, true);
    return *this;
  }
  template <class T, class Base>
  Schema& opt(std::string_view name, T Base::*member, std::string_view text, const Range& range = {}) {
    add_value(name, offset_of<T>(member), kValueAccess<T>, &(defaults().*member), text, range, false);
    return *this;
  }
  /// Adds another spelling of the last declared field.
  Schema& alias(std::string_view name) {
    docs_.back().aliases.emplace_back(name);
    return *this;
  }
  /// Makes the last declared field unused if why(const P&) returns a reason. An unused field is accepted but not read.
  /// why() may depend only on fields declared earlier.
  template <class Why>
  Schema& unused_when(Why why) {
    set_unused_when([why](const void* from) { return std::string(why(*static_cast<const P*>(from))); });
    return *this;
  }
  /// Allows a string in place of the object; the string becomes the value of `field`. A list of such objects may be
  /// written as a single string or object.
  Schema& short_form(std::string_view field) {
    short_field_ = field;
    return *this;
  }
  /// Accepts a key of old files that has no effect. `why` is printed in one line.
  Schema& ignored(std::string_view key, std::string_view why) {
    ignored_.emplace_back(key, why);
    return *this;
  }
  /// Makes unknown keys errors. Keys that start with "_" or "//" are comments and stay allowed.
  Schema& closed() {
    closed_ = true;
    return *this;
  }
  /// Rejects a key that other programs read, because it would change the model. The key is allowed if its value is
  /// empty (null, "", [] or [""]).
  Schema& refused(std::string_view key, std::string_view why) {
    refused_.emplace_back(key, why);
    return *this;
  }
  /// Declares an inner object with its own schema.
  template <class T>
  Schema& part(std::string_view name, T P::*member, Schema<T> schema, std::string_view text, bool required = true) {
    static constexpr PartAccess access = {
        [](const SchemaBase& of, const Json& json, const std::string& pointer, void* part, Problems& problems) {
          *static_cast<T*>(part) = static_cast<const Schema<T>&>(of).parse(json, pointer, problems);
        },
        [](const SchemaBase& of, const void* part) {
          const T& from = *static_cast<const T*>(part);
          // If a struct has a `given` flag, the object is written only if the config contains it.
          if constexpr (requires { from.given; })
            if (!from.given) return Json();
          return static_cast<const Schema<T>&>(of).effective(from);
        }};
    add_part(name, "object", offset_of(member), access, std::make_shared<Schema<T>>(std::move(schema)), text, required,
             true);
    return *this;
  }
  /// Declares an optional inner object with its own schema. `show_inner`: lists its fields in the manual and in the
  /// JSON Schema.
  template <class T>
  Schema& part(std::string_view name, std::optional<T> P::*member, Schema<T> schema, std::string_view text,
               bool show_inner = false) {
    static constexpr PartAccess access = {
        [](const SchemaBase& of, const Json& json, const std::string& pointer, void* part, Problems& problems) {
          *static_cast<std::optional<T>*>(part) = static_cast<const Schema<T>&>(of).parse(json, pointer, problems);
        },
        [](const SchemaBase& of, const void* part) {
          const auto& from = *static_cast<const std::optional<T>*>(part);
          return from ? static_cast<const Schema<T>&>(of).effective(*from) : Json();
        }};
    add_part(name, "object", offset_of(member), access, std::make_shared<Schema<T>>(std::move(schema)), text, false,
             show_inner);
    return *this;
  }
  /// Declares an optional inner object. The member of P stores objects by type: its edit<T>() adds the object, and its
  /// find<T>() returns null if there is none.
  template <class T, class Store>
  Schema& part_in(std::string_view name, Store P::*member, Schema<T> schema, std::string_view text) {
    static constexpr PartAccess access = {
        [](const SchemaBase& of, const Json& json, const std::string& pointer, void* part, Problems& problems) {
          static_cast<Store*>(part)->template edit<T>() =
              static_cast<const Schema<T>&>(of).parse(json, pointer, problems);
        },
        [](const SchemaBase& of, const void* part) {
          const T* given = static_cast<const Store*>(part)->template find<T>();
          return given ? static_cast<const Schema<T>&>(of).effective(*given) : Json();
        }};
    add_part(name, "object", offset_of(member), access, std::make_shared<Schema<T>>(std::move(schema)), text, false,
             true);
    return *this;
  }
  /// Declares an array of objects with a common schema.
  template <class T>
  Schema& list(std::string_view name, std::vector<T> P::*member, Schema<T> schema, std::string_view text,
               bool required = true) {
    static constexpr PartAccess access = {
        [](const SchemaBase& of, const Json& json, const std::string& pointer, void* part, Problems& problems) {
          const auto add = [&](const Json& element, const std::string& place) {
            static_cast<std::vector<T>*>(part)->push_back(
                static_cast<const Schema<T>&>(of).parse(element, place, problems));
          };
          const bool one = !of.short_field().empty() && (json.string() || json.object());
          if (one) return add(json, pointer);
          if (!json.array())
            return problems.error(pointer, "expected an " + std::string(list_word(of)) + ", found " + json.kind());
          for (size_t i = 0; i < json.array()->size(); ++i) add((*json.array())[i], pointer + "/" + std::to_string(i));
        },
        [](const SchemaBase& of, const void* part) {
          Json array(Json::Array{});
          for (const T& element : *static_cast<const std::vector<T>*>(part))
            array.add(static_cast<const Schema<T>&>(of).effective(element));
          return array;
        }};
    const char* const word = list_word(schema);
    add_part(name, word, offset_of(member), access, std::make_shared<Schema<T>>(std::move(schema)), text, required,
             true);
    return *this;
  }
  /// Adds check(P&, JSON pointer of the object, Problems&) for rules across fields. The check runs after all fields are
  /// valid.
  template <class Check>
  Schema& together(Check check) {
    together_ = [check](void* out, const std::string& pointer, Problems& problems) {
      check(*static_cast<P*>(out), pointer, problems);
    };
    return *this;
  }

  /// Parses `node`. `outer_keys`: keys of the same object that other code reads.
  P parse(const Json& node, const std::string& pointer, Problems& problems,
          const std::vector<std::string>& outer_keys = {}) const {
    P out{};
    parse_into(&out, node, pointer, problems, outer_keys);
    return out;
  }

  /// The object as JSON with all defaults filled in and unused fields omitted.
  Json effective(const P& from) const { return effective_of(&from); }

 private:
  static const P& defaults() {
    static const P values{};
    return values;
  }
  template <class T>
  static ptrdiff_t offset_of(T P::*member) {
    return reinterpret_cast<const char*>(&(defaults().*member)) - reinterpret_cast<const char*>(&defaults());
  }
};

}  // namespace hctr
