#include "serve/named_tensor.h"

#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "serve/serve_status.h"

namespace hctr::serve {
namespace {

struct TypeRow {
  std::string_view word;
  size_t bytes;
};
constexpr TypeRow kTypes[] = {{"BOOL", 1}, {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4}, {"UINT64", 8},
                              {"INT8", 1}, {"INT16", 2}, {"INT32", 4},  {"INT64", 8},  {"FP16", 2},
                              {"BF16", 2}, {"FP32", 4},  {"FP64", 8},   {"BYTES", 0}};
constexpr int64_t kMostElements = int64_t{1} << 40;

template <class To, class From>
std::vector<To> converted(const NamedTensor& tensor) {
  std::vector<To> values(tensor.data.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<To>(element<From>(tensor.data, i));
  return values;
}

}  // namespace

std::string_view word_of(Datatype type) { return kTypes[static_cast<size_t>(type)].word; }
size_t size_of(Datatype type) { return kTypes[static_cast<size_t>(type)].bytes; }
bool is_integer(Datatype type) { return type >= Datatype::u8 && type <= Datatype::i64; }

std::string config_word_of(Datatype type) {
  return type == Datatype::bytes ? "TYPE_STRING" : cat("TYPE_", word_of(type));
}

std::optional<Datatype> datatype_of(std::string_view word) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].word == word) return static_cast<Datatype>(i);
  return std::nullopt;
}

std::optional<Datatype> datatype_of_config(std::string_view word) {
  if (word == "TYPE_STRING") return Datatype::bytes;
  return word.starts_with("TYPE_") ? datatype_of(word.substr(5)) : std::nullopt;
}

std::string text_of_shape(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += cat(i == 0 ? "" : ",", shape[i]);
  return text + "]";
}

int64_t elements_of(const NamedTensor& tensor) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    if (size < 0)
      throw Refusal::invalid("input '", tensor.name, "' has shape ", text_of_shape(tensor.shape),
                             ": sizes must not be negative");
    empty = empty || size == 0;
    if (size > 0 && count > kMostElements / size)
      throw Refusal::invalid("input '", tensor.name, "' has shape ", text_of_shape(tensor.shape),
                             ", which has more than ", kMostElements, " elements");
    if (size > 0) count *= size;
  }
  return empty ? 0 : count;
}

void expect_whole(const NamedTensor& tensor) {
  const auto count = static_cast<size_t>(elements_of(tensor));
  if (const size_t bytes = size_of(tensor.type)) {
    if (tensor.data.size() != count * bytes)
      throw Refusal::invalid("input '", tensor.name, "' has ", tensor.data.size(), " bytes; shape ",
                             text_of_shape(tensor.shape), " of ", word_of(tensor.type), " takes ", count * bytes);
    return;
  }
  size_t at = 0, found = 0;
  for (; at + 4 <= tensor.data.size(); ++found) {
    const size_t length = element<uint32_t>(tensor.data.substr(at), 0);
    if (length > tensor.data.size() - at - 4) break;
    at += 4 + length;
  }
  if (at != tensor.data.size())
    throw Refusal::invalid("input '", tensor.name, "': text ", found, " of BYTES exceeds the ", tensor.data.size(),
                           " bytes of the tensor");
  if (found != count)
    throw Refusal::invalid("input '", tensor.name, "' has ", found, " texts; shape ", text_of_shape(tensor.shape),
                           " takes ", count);
}

std::vector<std::string_view> texts_of(const NamedTensor& tensor) {
  std::vector<std::string_view> texts;
  for (size_t at = 0; at + 4 <= tensor.data.size();) {
    const size_t length = element<uint32_t>(tensor.data.substr(at), 0);
    texts.push_back(tensor.data.substr(at + 4, length));
    at += 4 + length;
  }
  return texts;
}

std::vector<int64_t> integers_of(const NamedTensor& tensor, bool as_bits) {
  switch (tensor.type) {
    case Datatype::u8:
      return converted<int64_t, uint8_t>(tensor);
    case Datatype::u16:
      return converted<int64_t, uint16_t>(tensor);
    case Datatype::u32:
      return converted<int64_t, uint32_t>(tensor);
    case Datatype::i8:
      return converted<int64_t, int8_t>(tensor);
    case Datatype::i16:
      return converted<int64_t, int16_t>(tensor);
    case Datatype::i32:
      return converted<int64_t, int32_t>(tensor);
    case Datatype::u64: {
      std::vector<int64_t> values = converted<int64_t, uint64_t>(tensor);
      for (size_t i = 0; i < values.size() && !as_bits; ++i)
        if (values[i] < 0)
          throw Refusal::invalid("input '", tensor.name, "': element ", i, " is ", element<uint64_t>(tensor.data, i),
                                 "; expected at most ", std::numeric_limits<int64_t>::max());
      return values;
    }
    case Datatype::i64:
      return converted<int64_t, int64_t>(tensor);
    default:
      throw Refusal::invalid("input '", tensor.name, "' has datatype ", word_of(tensor.type),
                             "; expected an integer type, such as INT64");
  }
}

float from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float value = 0;
  if (exponent == 31)
    value = mantissa ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), -24);
  else
    value = std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return bits >> 15 ? -value : value;
}

std::vector<float> floats_of(const NamedTensor& tensor) {
  switch (tensor.type) {
    case Datatype::f32:
      return converted<float, float>(tensor);
    case Datatype::f64:
      return converted<float, double>(tensor);
    case Datatype::f16: {
      std::vector<float> values(tensor.data.size() / 2);
      for (size_t i = 0; i < values.size(); ++i) values[i] = from_f16(element<uint16_t>(tensor.data, i));
      return values;
    }
    case Datatype::bf16: {
      std::vector<float> values(tensor.data.size() / 2);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::bit_cast<float>(uint32_t{element<uint16_t>(tensor.data, i)} << 16);
      return values;
    }
    case Datatype::boolean:
      return converted<float, uint8_t>(tensor);
    case Datatype::bytes:
      throw Refusal::invalid("input '", tensor.name, "' has datatype BYTES; expected a number, such as FP32");
    default: {
      std::vector<float> values;
      const std::vector<int64_t> integers = integers_of(tensor, false);
      values.reserve(integers.size());
      for (const int64_t value : integers) values.push_back(static_cast<float>(value));
      return values;
    }
  }
}

}  // namespace hctr::serve
