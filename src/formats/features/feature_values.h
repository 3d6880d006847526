// Parses single values of feature specifications from text cells or binary files, and checks them against their
// feature.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/expect.h"
#include "core/base/half.h"
#include "formats/data/text_values.h"
#include "formats/features/feature_spec.h"

namespace hctr {

/// Returns a message such as "feature user: 12 is not an id below its cardinality of 10", or nothing if the value fits.
std::string feature_misfit(const FeatureColumn&, double value);

/// Parses the value in a cell. T is int64_t if is_whole(feature.type), else double. Returns the problem; empty if the
/// value is valid.
template <class T>
std::string read_cell(const FeatureColumn& feature, std::string_view text, T& value) {
  text = without_plus(without_blanks(text));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    const bool yes = text == "True" || text == "true", no = text == "False" || text == "false";
    if (feature.type != FeatureType::boolean || !(yes || no))
      return cat("feature ", feature.name, ": expected ", std::is_integral_v<T> ? "a whole number" : "a number", " (",
                 name_of(feature.type), "), found '", text.substr(0, 40), "'");
    value = yes ? T{1} : T{0};
  }
  return feature_misfit(feature, static_cast<double>(value));
}

/// Calls use(T{}) with the C++ type of the stored values: uint8_t for bool, Half for float16.
template <class Use>
auto with_stored_type(FeatureType type, Use&& use) {
  switch (type) {
    case FeatureType::i8:
      return use(int8_t{});
    case FeatureType::i16:
      return use(int16_t{});
    case FeatureType::u16:
      return use(uint16_t{});
    case FeatureType::i32:
      return use(int32_t{});
    case FeatureType::u32:
      return use(uint32_t{});
    case FeatureType::i64:
      return use(int64_t{});
    case FeatureType::u64:
      return use(uint64_t{});
    case FeatureType::f16:
      return use(Half{});
    case FeatureType::f32:
      return use(float{});
    case FeatureType::f64:
      return use(double{});
    default:
      return use(uint8_t{});  // `uint8_t` is also used for bool
  }
}

template <class T>
T stored(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

/// whole_at() loads a stored value if is_whole(type); real_at() loads any other value. An unsigned value of 2^63 or
/// more becomes negative, which is an invalid id.
inline int64_t whole_at(FeatureType type, const std::byte* from) {
  return with_stored_type(type, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(stored<T>(from));
    else
      return int64_t{0};
  });
}
inline double real_at(FeatureType type, const std::byte* from) {
  return with_stored_type(type, [&]<class T>(T) { return as_double(stored<T>(from)); });
}

}  // namespace hctr
