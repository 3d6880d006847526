// A JSON value in memory. Only json.cc includes the parser library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hctr {

/// A JSON value: a document or a part of one. Objects preserve the order of their keys.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  // Constructors are not inline, because hundreds of places construct a Json, and calls compile faster than inlined
  // code.
  Json();  // null
  Json(bool value);
  Json(int64_t value);
  Json(int value);
  Json(double value);
  Json(std::string value);
  Json(const char* value);
  Json(Array value);
  Json(Object value);
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// Errors: Error(config) "<name>: line 3, column 14: ..." for invalid JSON, duplicate keys and more than 200 levels.
  static Json parse(std::string_view text, std::string_view name);
  static Json read_file(const std::filesystem::path&);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  bool is_number() const { return integer() || std::holds_alternative<double>(value_); }
  double number() const;  ///< converts an integer to double
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }

  /// The member `key` of an object; null if absent.
  const Json* find(std::string_view key) const;
  /// Appends a member to an object (a null value becomes an object).
  Json& set(std::string_view key, Json value);
  /// Appends an element to an array (a null value becomes an array).
  Json& add(Json value);

  /// JSON text, on a single line if indent < 0. Numbers survive a round trip; infinities and NaN become null.
  std::string text(int indent = -1) const;
  /// The kind of value for messages, such as "an integer", "a string" or "an array of 3".
  std::string kind() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace hctr
