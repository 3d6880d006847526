// Reads one JSON value into a C++ variable. A value that does not fit yields a message instead of an exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/json.h"

namespace hctr {

template <class E>
using Words = std::vector<std::pair<std::string, E>>;

/// The words of an enumeration, in the order shown to users. If several words have the same value, the first is shown.
/// Declare `template <> const Words<E>& EnumWords<E>::table();` next to the enumeration and define it once.
template <class E>
struct EnumWords {
  static const Words<E>& table();
};

/// Lower and upper bound of a number. An open bound excludes its value.
struct Range {
  double low = -1e300, high = 1e300;
  bool low_open = false, high_open = false;
  bool holds(double value) const {
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
  /// The range as text: "at least 1", "more than 0 and less than 1". Empty if there is no bound.
  std::string text() const;
};
inline Range at_least(double low) { return {.low = low}; }
inline Range more_than(double low) { return {.low = low, .low_open = true}; }
inline Range between(double low, double high) { return {.low = low, .high = high}; }
inline Range strictly_between(double low, double high) {
  return {.low = low, .high = high, .low_open = true, .high_open = true};
}

/// Describes a value that does not fit: the expected kind ("an integer") and, if one element is wrong, the element's
/// JSON pointer within the value ("/2") and its content.
struct Misfit {
  Misfit() = default;  ///< means that the value fits
  Misfit(std::string expected_) : expected(std::move(expected_)) {}
  Misfit(const char* expected_) : expected(expected_) {}
  std::string expected, pointer, found;
  bool empty() const { return expected.empty(); }
};

/// Returns `value` or, if it is an array of one element, this element, because HugeCTR allows such arrays for scalars.
const Json& unwrapped(const Json& value);

// Each overload reads `value` into `out` and returns the expected kind on failure, else an empty text. Scalars may be
// wrapped in an array of one element.
std::string read_value(const Json& value, const Range&, int64_t& out);
std::string read_value(const Json& value, const Range&, double& out);
std::string read_value(const Json& value, const Range&, float& out);  // rounds to the nearest float
std::string read_value(const Json& value, const Range&, bool& out);
std::string read_value(const Json& value, const Range&, std::string& out);
Misfit read_value(const Json& value, const Range&, std::vector<int64_t>& out);
Misfit read_value(const Json& value, const Range&, std::vector<double>& out);
// reads a single string as a list with this string
Misfit read_value(const Json& value, const Range&, std::vector<std::string>& out);
Misfit read_value(const Json& value, const Range&, std::vector<std::vector<int64_t>>& out);
std::string read_word(const Json& value, const std::vector<std::string>& words, size_t& index);

template <class T>
Misfit read_value(const Json& value, const Range& range, std::optional<T>& out) {
  T inner{};
  Misfit misfit = read_value(value, range, inner);
  if (misfit.empty()) out = std::move(inner);
  return misfit;
}

template <class E>
  requires std::is_enum_v<E>
std::string read_value(const Json& value, const Range&, E& out) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : EnumWords<E>::table()) words.push_back(word);
  size_t index = 0;
  std::string expected = read_word(value, words, index);
  if (expected.empty()) out = EnumWords<E>::table()[index].second;
  return expected;
}

// Each overload returns the value as JSON, for the effective config and the manual.
inline Json to_json(int64_t value) { return value; }
inline Json to_json(double value) { return value; }
Json to_json(float value);  // the shortest decimal that reads back as this float
inline Json to_json(bool value) { return value; }
inline Json to_json(const std::string& value) { return value; }
template <class T>
Json to_json(const std::vector<T>& values);
template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json();
}
template <class E>
  requires std::is_enum_v<E>
Json to_json(E value) {
  for (const auto& [word, meaning] : EnumWords<E>::table())
    if (meaning == value) return word;
  return {};
}
template <class T>
Json to_json(const std::vector<T>& values) {
  Json array(Json::Array{});
  for (const auto& value : values) array.add(to_json(value));
  return array;
}

// text(): the type's name in the manual. words(): the complete list of allowed texts, if the type has one.
template <class T>
struct TypeWord {  // for enumerations
  static std::string text() { return "word"; }
  static std::vector<std::string> words() {
    std::vector<std::string> all;
    for (const auto& [word, meaning] : EnumWords<T>::table()) all.push_back(word);
    return all;
  }
};
template <>
struct TypeWord<int64_t> {
  static std::string text() { return "integer"; }
};
template <>
struct TypeWord<double> {
  static std::string text() { return "number"; }
};
template <>
struct TypeWord<float> {
  static std::string text() { return "number"; }
};
template <>
struct TypeWord<bool> {
  static std::string text() { return "true or false"; }
};
template <>
struct TypeWord<std::string> {
  static std::string text() { return "string"; }
};
/// The allowed texts of a type that declares words(); empty for other types.
template <class T>
std::vector<std::string> words_of() {
  if constexpr (requires { TypeWord<T>::words(); })
    return TypeWord<T>::words();
  else
    return {};
}
template <class T>
struct TypeWord<std::vector<T>> {
  static std::string text() { return "array of " + TypeWord<T>::text(); }
  static std::vector<std::string> words() { return words_of<T>(); }
};
template <class T>
struct TypeWord<std::optional<T>> {
  static std::string text() { return TypeWord<T>::text(); }
  static std::vector<std::string> words() { return words_of<T>(); }
};

}  // namespace hctr
