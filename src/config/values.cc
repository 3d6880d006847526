#include "config/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/problems.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

std::string with_range(const char* what, const Range& range) {
  const std::string bounds = range.text();
  return bounds.empty() ? what : cat(what, ", ", bounds);
}

template <class T>
Misfit read_list(const Json& value, const Range& range, std::vector<T>& out, const char* what) {
  out.clear();
  if (!value.array()) return cat("an array of ", with_range(what, range));
  for (size_t i = 0; i < value.array()->size(); ++i) {
    const Json& element = (*value.array())[i];
    T item{};
    if (Misfit misfit = read_value(element, range, item); !misfit.empty()) {
      if (misfit.pointer.empty()) misfit.found = element.kind();
      misfit.pointer = cat("/", i, misfit.pointer);
      return misfit;
    }
    out.push_back(std::move(item));
  }
  return {};
}

}  // namespace

const Json& unwrapped(const Json& value) {
  return value.array() && value.array()->size() == 1 ? value.array()->front() : value;
}

std::string Range::text() const {
  const auto number = [](double value) {
    return value == std::floor(value) ? cat(static_cast<int64_t>(value)) : cat(value);
  };
  std::string bounds;
  if (low > -1e300) bounds = cat(low_open ? "more than " : "at least ", number(low));
  if (high < 1e300) bounds += cat(bounds.empty() ? "" : " and ", high_open ? "less than " : "at most ", number(high));
  return bounds;
}

std::string read_value(const Json& value, const Range& range, int64_t& out) {
  const Json& v = unwrapped(value);
  int64_t number = 0;
  if (v.integer()) {
    number = *v.integer();
  } else if (v.boolean()) {
    number = *v.boolean() ? 1 : 0;  // accepts "cache_eval_data": true
  } else if (v.is_number() && v.number() == std::floor(v.number()) && std::abs(v.number()) < 9e15) {
    number = static_cast<int64_t>(v.number());  // accepts 1e6
  } else {
    return with_range("an integer", range);
  }
  if (!range.holds(static_cast<double>(number))) return with_range("an integer", range);
  out = number;
  return "";
}

std::string read_value(const Json& value, const Range& range, double& out) {
  const Json& v = unwrapped(value);
  // Most numbers are later stored as floats, so a number that is infinite as a float is an error.
  if (v.is_number() && !std::isfinite(static_cast<float>(v.number())))
    return with_range("a number that a float can hold (up to 3.4e38)", range);
  if (!v.is_number() || !range.holds(v.number())) return with_range("a number", range);
  out = v.number();
  return "";
}

std::string read_value(const Json& value, const Range& range, float& out) {
  double number = 0;
  if (std::string misfit = read_value(value, range, number); !misfit.empty()) return misfit;
  out = static_cast<float>(number);
  return "";
}

Json to_json(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  double shortest = 0;
  std::from_chars(text, end.ptr, shortest);
  return shortest;
}

std::string read_value(const Json& value, const Range&, bool& out) {
  const Json& v = unwrapped(value);
  if (!v.boolean()) return "true or false";
  out = *v.boolean();
  return "";
}

std::string read_value(const Json& value, const Range&, std::string& out) {
  const Json& v = unwrapped(value);
  if (!v.string()) return "a string";
  out = *v.string();
  return "";
}

Misfit read_value(const Json& value, const Range& range, std::vector<int64_t>& out) {
  return read_list(value, range, out, "integers");
}
Misfit read_value(const Json& value, const Range& range, std::vector<double>& out) {
  return read_list(value, range, out, "numbers");
}
Misfit read_value(const Json& value, const Range& range, std::vector<std::string>& out) {
  if (value.string()) {
    out = {*value.string()};
    return {};
  }
  return read_list(value, range, out, "strings");
}
Misfit read_value(const Json& value, const Range& range, std::vector<std::vector<int64_t>>& out) {
  return read_list(value, range, out, "arrays of integers");
}

std::string read_word(const Json& value, const std::vector<std::string>& words, size_t& index) {
  const Json& v = unwrapped(value);
  if (v.string())
    if (const auto found = std::find(words.begin(), words.end(), *v.string()); found != words.end()) {
      index = static_cast<size_t>(found - words.begin());
      return "";
    }
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back("\"" + word + "\"");
  return one_of(quoted) + (v.string() ? did_you_mean(*v.string(), words) : "");
}

}  // namespace hctr
