// Tensors of requests and responses, in the layout of KServe's v2 protocol.
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

/// The name of a datatype: word_of() returns "FP32" and "BYTES", config_word_of() returns "TYPE_FP32" and "TYPE_STRING"
/// as in config.pbtxt.
std::string_view word_of(Datatype);
std::string config_word_of(Datatype);
std::optional<Datatype> datatype_of(std::string_view word);
std::optional<Datatype> datatype_of_config(std::string_view word);
/// Bytes per element; 0: text, of variable size.
size_t size_of(Datatype);
bool is_integer(Datatype);

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string>;
using Parameters = std::map<std::string, Parameter>;

/// `data` has contiguous little-endian elements. A text is preceded by its length in 4 bytes.
struct NamedTensor {
  std::string name;
  Datatype type = Datatype::f32;
  std::vector<int64_t> shape{};
  std::string_view data{};
  std::shared_ptr<const void> owner{};  ///< owner of `data`
  Parameters parameters{};
};

/// The shape as text, such as "[2,26]".
std::string text_of_shape(const std::vector<int64_t>&);
/// The number of elements. Errors: Refusal for a negative size, and for more elements than fit into memory.
int64_t elements_of(const NamedTensor&);
/// Throws a Refusal if the size of `data` does not match shape and datatype.
void expect_whole(const NamedTensor&);
/// The texts of a valid tensor, as views into its data.
std::vector<std::string_view> texts_of(const NamedTensor&);
/// The elements of an integer tensor. Errors: Refusal for other types. `as_bits`: u64 values beyond 63 bits keep their
/// bits; otherwise they cause a Refusal.
std::vector<int64_t> integers_of(const NamedTensor&, bool as_bits);
/// The elements as f32. Errors: Refusal if they are texts.
std::vector<float> floats_of(const NamedTensor&);

float from_f16(uint16_t);
/// Element i of data, which may be unaligned.
template <class T>
T element(std::string_view data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace hctr::serve
