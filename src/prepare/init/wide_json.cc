#include "prepare/init/wide_json.h"

namespace hctr {
namespace {

constexpr size_t kColumns = 120;

std::string on_one_line(const Json& value) {
  std::string text;
  if (const Json::Array* array = value.array()) {
    for (const Json& element : *array) text += (text.empty() ? "" : ", ") + on_one_line(element);
    return "[" + text + "]";
  }
  if (const Json::Object* object = value.object()) {
    for (const auto& [key, member] : *object)
      text += (text.empty() ? "" : ", ") + Json(key).text() + ": " + on_one_line(member);
    return "{" + text + "}";
  }
  return value.text();
}

/// `before`: number of characters that precede the value on its first line; `indent`: indentation of the following
/// lines.
std::string broken(const Json& value, size_t before, size_t indent) {
  std::string line = on_one_line(value);
  const bool whole = before + line.size() + 1 <= kColumns || !(value.array() || value.object());
  if (whole && indent > 0) return line;
  const std::string blanks(indent + 2, ' ');
  std::string text;
  const auto add = [&](const std::string& name, const Json& member) {
    text += (text.empty() ? "\n" : ",\n") + blanks + name + broken(member, blanks.size() + name.size(), indent + 2);
  };
  if (const Json::Array* array = value.array())
    for (const Json& element : *array) add("", element);
  else
    for (const auto& [key, member] : *value.object()) add(Json(key).text() + ": ", member);
  const std::string end = "\n" + std::string(indent, ' ');
  return value.array() ? "[" + text + end + "]" : "{" + text + end + "}";
}

}  // namespace

std::string wide_json(const Json& value) { return broken(value, 0, 0) + "\n"; }

}  // namespace hctr
