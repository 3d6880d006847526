// Tensors of requests and answers, in the layout of KServe's v2 protocol.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hctr::serve {

enum class Datatype { boolean, u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64, bytes };

/// "FP32"; of config.pbtxt "TYPE_FP32", where texts are "TYPE_STRING".
std::string_view word_of(Datatype);
std::string config_word_of(Datatype);
std::optional<Datatype> datatype_of(std::string_view word);
std::optional<Datatype> datatype_of_config(std::string_view word);
/// Bytes of an element; 0: texts, which differ.
size_t size_of(Datatype);
bool is_integer(Datatype);

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string>;
using Parameters = std::map<std::string, Parameter>;

/// Elements lie one behind the other, little-endian; texts have their length in 4 bytes in front.
struct NamedTensor {
  std::string name;
  Datatype type = Datatype::f32;
  std::vector<int64_t> shape{};
  std::string_view data{};
  std::shared_ptr<const void> owner{};  ///< of `data`
  Parameters parameters{};
};

/// "[2,26]".
std::string text_of_shape(const std::vector<int64_t>&);
/// Errors: Refusal for a negative size, and for more elements than memory has bytes.
int64_t elements_of(const NamedTensor&);
/// Refuses data that are not as long as shape and datatype say.
void expect_whole(const NamedTensor&);
/// The texts of a whole tensor, which views its data.
std::vector<std::string_view> texts_of(const NamedTensor&);
/// Integers of any type. Errors: Refusal for other types and for u64 beyond 63 bits, `as_bits`: which keep their bits.
std::vector<int64_t> integers_of(const NamedTensor&, bool as_bits);
/// Numbers as f32. Errors: Refusal for texts.
std::vector<float> floats_of(const NamedTensor&);

float from_f16(uint16_t);
/// Element i of data that need not be aligned.
template <class T>
T element(std::string_view data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace hctr::serve
