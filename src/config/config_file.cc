#include "config/config_file.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "config/json_member.h"
#include "config/problems.h"
#include "config/values.h"
#include "core/base/environment.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/passed_text.h"

namespace hctr {
namespace {

constexpr const char* kInclude = "include";
constexpr size_t kMostFiles = 64;  // limit, above the number of files of any config; stops circular includes

/// Replaces each "${NAME}" in a text by the variable's value. `where`: location of the text, for messages.
std::string expand(std::string_view text, const std::string& where, const Environment& environment) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("$${")) {
      out += "${";
      at += 3;
      continue;
    }
    if (!text.substr(at).starts_with("${")) {
      out += text[at++];
      continue;
    }
    const size_t end = text.find('}', at);
    if (end == text.npos)
      throw Error(Kind::config,
                  cat(where, ": \"${\" without \"}\" in \"", text, "\"; write \"$${\" for a literal \"${\""));
    const std::string_view inside = text.substr(at + 2, end - at - 2);
    const size_t colon = inside.find(":-");
    if (colon != inside.npos && inside.find("${", colon) != inside.npos)
      throw Error(Kind::config, cat(where, ": a default must be plain text, but \"", text, "\" contains a variable"));
    const std::string name(inside.substr(0, colon));
    const std::optional<std::string> value = name.empty() ? std::nullopt : variable_of(environment, name.c_str());
    if (value && (!value->empty() || colon == inside.npos))
      out += *value;
    else if (colon != inside.npos)
      out += inside.substr(colon + 2);
    else
      throw Error(Kind::config, cat(where, ": the environment has no variable \"", name, "\"; set it, or write \"${",
                                    name, ":-something else}\""));
    at = end + 1;
  }
  return out;
}

/// Whether the field at `where` contains column names or cell texts of a data file. Such fields are read literally,
/// because "${" in a data file's names does not start a variable.
bool is_text_of_data(std::string_view where) {
  size_t end = where.size();
  size_t slash = where.rfind('/', end);
  while (slash != where.npos && slash > 0 && where.find_first_not_of("0123456789", slash + 1) >= end) {
    end = slash;
    slash = where.rfind('/', end - 1);
  }
  if (slash == where.npos) return false;
  const std::string_view field = where.substr(slash + 1, end - slash - 1);
  return field == "column" || field == "columns" || field == "labels" || field == "positive" || field == "missing";
}

/// Replaces "$${" by "${".
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    at += text.substr(at).starts_with("$${");
    out += text[at];
  }
  return out;
}

/// The inverse of expand(): replaces "${" by "$${".
std::string escape(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("${")) out += '$';
    out += text[at];
  }
  return out;
}

/// Returns a copy of `value` in which replace(string, JSON pointer of the string) replaces each string.
template <class Replace>
Json with_strings(const Json& value, const std::string& where, const Replace& replace) {
  if (value.string()) return replace(*value.string(), where);
  if (value.array()) {
    Json array(Json::Array{});
    for (size_t i = 0; i < value.array()->size(); ++i)
      array.add(with_strings((*value.array())[i], cat(where, "/", i), replace));
    return array;
  }
  if (!value.object()) return value;
  Json object(Json::Object{});
  for (const auto& [key, inner] : *value.object()) object.set(key, with_strings(inner, cat(where, "/", key), replace));
  return object;
}

Json expand_all(const Json& value, const std::string& where, const Environment& environment) {
  return with_strings(value, where, [&](const std::string& text, const std::string& place) {
    return is_text_of_data(place) ? unescape(text) : expand(text, place, environment);
  });
}

/// The members of an object by name; empty if `value` is no object.
std::unordered_map<std::string_view, const Json*> members_of(const Json& value) {
  std::unordered_map<std::string_view, const Json*> members;
  if (value.object())
    for (const auto& [key, member] : *value.object()) members.emplace(key, &member);
  return members;
}

/// Merges two values: members of objects are merged recursively, in the order of `base`; any other value of `over`
/// replaces the value of `base`; a null in `over` removes the member.
Json merged(const Json& base, const Json& over) {
  if (!over.object()) return over;
  Json out(Json::Object{});
  const auto own = members_of(base), others = members_of(over);
  if (base.object())
    for (const auto& [key, value] : *base.object()) {
      const auto other = others.find(key);
      if (other == others.end())
        out.set(key, value);
      else if (!other->second->is_null())
        out.set(key, merged(value, *other->second));
    }
  for (const auto& [key, value] : *over.object())
    if (!own.contains(key) && !value.is_null()) out.set(key, merged(Json(), value));
  return out;
}

Json read_with_includes(const fs::path& path, std::vector<fs::path>& files, const std::atomic<int>* stop,
                        const Environment& environment);

/// Parses a config text and merges its includes. `files`: all files read so far; included files are appended.
Json with_includes(const std::string& text, const fs::path& path, const std::string& name, std::vector<fs::path>& files,
                   const std::atomic<int>* stop, const Environment& environment) {
  Json file = Json::parse(text, name);
  // Without "${", and without "\u", which can encode these two characters, the text contains no variable.
  if (text.find("${") != text.npos || text.find("\\u") != text.npos) file = expand_all(file, name + ": ", environment);
  const Json* const include = file.find(kInclude);
  if (!include) return file;
  std::vector<std::string> names;
  if (const Misfit misfit = read_value(*include, Range{}, names); !misfit.empty())
    throw Error(Kind::config, cat(name, ": /", kInclude, misfit.pointer,
                                  ": expected the path of a config, or an array of paths, found ",
                                  misfit.pointer.empty() ? include->kind() : misfit.found));
  Json all(Json::Object{});
  for (const std::string& included : names)
    all = merged(
        all, in_context([&] { return cat("included by '", name, "'"); },
                        [&] { return read_with_includes(path.parent_path() / included, files, stop, environment); }));
  return merged(all, without_member(file, kInclude));
}

Json read_with_includes(const fs::path& path, std::vector<fs::path>& files, const std::atomic<int>* stop,
                        const Environment& environment) {
  const bool from_input = path == "-";
  const std::string name = from_input ? "standard input" : path.string();
  files.push_back(path);
  if (files.size() > kMostFiles)
    throw Error(Kind::config, cat("'", name, "': more than ", kMostFiles,
                                  " files are included, which exceeds the limit: do two files include each other?"));
  return with_includes(read_text_until(from_input ? "/dev/stdin" : path, "", stop), path, name, files, stop,
                       environment);
}

/// The names by which --set may address an array element: its "top", "name" and "type".
std::vector<std::string> names_of(const Json& element) {
  std::vector<std::string> names;
  for (const char* key : {"top", "name", "type"}) {
    const Json* value = element.find(key);
    if (value && value->array() && !value->array()->empty()) value = &value->array()->front();
    if (value && value->string()) names.push_back(*value->string());
  }
  return names;
}

/// One --set argument: the path of a field and its new value.
class Change {
 public:
  explicit Change(const std::string& text) : text_(text) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      throw Error(Kind::usage, cat("--set ", text, ": expected FIELD=VALUE, such as solver.batchsize=1024"));
    for (size_t at = 0; at <= equals;) {
      const size_t end = std::min(text.find('.', at), equals);
      path_.push_back(text.substr(at, end - at));
      at = end + 1;
      if (path_.back().empty()) fail("a name in the path is empty");
    }
    const std::string value = text.substr(equals + 1);
    try {
      value_ = Json::parse(value, "");
    } catch (const Error&) {
      value_ = value;  // `value` is not JSON: a string without quotes
    }
  }

  Json applied_to(const Json& config) const { return applied(config, 0); }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw Error(Kind::usage, cat("--set ", text_, ": ", why)); }
  std::string place(size_t depth) const {
    std::string so_far;
    for (size_t i = 0; i < depth; ++i) so_far += cat(i == 0 ? "" : ".", path_[i]);
    return so_far.empty() ? "the config" : so_far;
  }

  Json applied(const Json& at, size_t depth) const {
    if (depth == path_.size()) return value_;
    if (at.array()) return in_array(*at.array(), depth);
    if (!at.object() && !at.is_null())
      fail(cat(place(depth), " is ", at.kind(), " and has no field \"", path_[depth], "\""));
    const Json none;
    Json out(Json::Object{});
    bool found = false;
    const auto add = [&](const std::string& key, const Json& value) {
      Json changed = applied(value, depth + 1);
      if (!changed.is_null()) out.set(key, std::move(changed));
    };
    if (at.object())
      for (const auto& [key, value] : *at.object()) {
        found |= key == path_[depth];
        key == path_[depth] ? add(key, value) : void(out.set(key, value));
      }
    if (!found) add(path_[depth], none);
    return out;
  }

  Json in_array(const Json::Array& elements, size_t depth) const {
    const size_t which = element(elements, depth);
    Json out(Json::Array{});
    for (size_t i = 0; i < elements.size(); ++i) out.add(i == which ? applied(elements[i], depth + 1) : elements[i]);
    return out;
  }

  size_t element(const Json::Array& elements, size_t depth) const {
    const std::string& wanted = path_[depth];
    if (wanted.size() < 10 && wanted.find_first_not_of("0123456789") == wanted.npos) {
      const size_t index = std::stoul(wanted);
      if (index >= elements.size())
        fail(
            cat(place(depth), " is an array of ", elements.size(), ", numbered from 0: no element has number ", index));
      return index;
    }
    std::vector<size_t> found;
    std::vector<std::string> known;
    for (size_t i = 0; i < elements.size(); ++i) {
      const auto names = names_of(elements[i]);
      if (std::find(names.begin(), names.end(), wanted) != names.end()) found.push_back(i);
      if (!names.empty()) known.push_back(names.front());
    }
    if (found.size() == 1) return found[0];
    if (found.size() > 1)
      fail(cat(found.size(), " elements of ", place(depth), " are called \"", wanted, "\": give the number"));
    const std::string hint = did_you_mean(wanted, known);
    fail(cat("no element of ", place(depth), " is called \"", wanted, "\"",
             !hint.empty()   ? hint
             : known.empty() ? cat("; give the element's number, starting at 0")
                             : cat("; there are ", hctr::one_of(known))));
  }

  const std::string& text_;
  std::vector<std::string> path_;
  Json value_;
};

}  // namespace

Json read_config_file(const std::filesystem::path& path, const std::vector<std::string>& changes,
                      const std::atomic<int>* stop, const Environment& environment) {
  std::vector<fs::path> files;
  return with_changes(read_with_includes(path, files, stop, environment), changes);
}

Json read_config_text(const std::string& text, const std::filesystem::path& name, const Environment& environment) {
  std::vector<fs::path> files = {name};
  return with_includes(text, name, name.string(), files, nullptr, environment);
}

std::vector<std::filesystem::path> files_of_config(const std::filesystem::path& path, const Environment& environment) {
  std::vector<fs::path> files;
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return {path};
  read_with_includes(path, files, nullptr, environment);
  return files;
}

Json with_escaped_variables(const Json& config) {
  return with_strings(config, "", [](const std::string& text, const std::string&) { return escape(text); });
}

Json with_changes(Json config, const std::vector<std::string>& changes) {
  for (const std::string& change : changes) config = Change(change).applied_to(config);
  return config;
}

}  // namespace hctr
