// Element types, and the dispatch from a type known at run time to a C++ type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/expect.h"
#include "core/base/half.h"

namespace hctr {

enum class DType : uint8_t { f32, f16, bf16, i32, i64, u32, f64 };  // f64: for gradient checks only

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i64:
    case DType::f64:
      return 8;
    default:
      return 4;
  }
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u32:
      return "u32";
    case DType::f64:
      return "f64";
  }
  return "?";
}

template <class T>
inline constexpr DType kDTypeOf = DType::f32;
template <>
inline constexpr DType kDTypeOf<Half> = DType::f16;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::bf16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::i32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::i64;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::u32;
template <>
inline constexpr DType kDTypeOf<double> = DType::f64;

/// The type in which sums of T are accumulated: double for double, float for every other T.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Acc = typename AccumulatorOf<T>::type;

/// Calls body.operator()<T>() for f32, f16, bf16. Errors: Error(bug) for another type.
template <class Body>
decltype(auto) dispatch_float(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return body.template operator()<float>();
    case DType::f16:
      return body.template operator()<Half>();
    case DType::bf16:
      return body.template operator()<BFloat16>();
    default:
      throw Error(Kind::bug, cat("no floating-point kernel for ", name_of(dtype)));
  }
}

/// Like dispatch_float(), but also accepts f64. Gradient checks run the CPU reference operators in double.
template <class Body>
decltype(auto) dispatch_real(DType dtype, Body&& body) {
  if (dtype == DType::f64) return body.template operator()<double>();
  return dispatch_float(dtype, std::forward<Body>(body));
}

}  // namespace hctr
