// Reads the wire format of Protocol Buffers: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/proto_wire.h"
#include "serve/serve_status.h"

namespace hctr::serve {

/// Iterates over the fields of a message, in their order. Errors: Refusal for invalid bytes.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// Moves to the next field. Returns false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    number_ = static_cast<int>(tag >> 3 & 0x1fffffff);
    type_ = static_cast<int>(tag & 7);
    if (type_ == 0) {
      value_ = varint();
    } else if (type_ == 1 || type_ == 5) {
      value_ = 0;
      const std::string_view bytes = take(type_ == 1 ? 8 : 4);
      std::memcpy(&value_, bytes.data(), bytes.size());
    } else if (type_ == 2) {
      bytes_ = take(varint());
    } else {
      throw Refusal::invalid("the message has a field of wire type ", type_);
    }
    return true;
  }
  int number() const { return number_; }
  bool is_bytes() const { return type_ == 2; }

  uint64_t integer() const { return is_bytes() ? fail<uint64_t>() : value_; }
  std::string_view bytes() const { return is_bytes() ? bytes_ : fail<std::string_view>(); }
  std::string text() const { return std::string(bytes()); }
  double real() const {
    double number = 0;
    if (type_ != 1) return fail<double>();
    std::memcpy(&number, &value_, 8);
    return number;
  }
  /// Calls visit(bits) for each value of a repeated numeric field, packed or not. `width`: bytes of a fixed-width
  /// value; 0: varints.
  template <class Visit>
  void each(int width, const Visit& visit) const {
    if (!is_bytes()) {
      if (type_ != (width == 8 ? 1 : width == 4 ? 5 : 0)) fail<int>();
      return visit(value_);
    }
    ProtoReader packed(bytes_);
    while (!packed.rest_.empty()) {
      uint64_t bits = 0;
      if (width == 0)
        bits = packed.varint();
      else
        std::memcpy(&bits, packed.take(static_cast<uint64_t>(width)).data(), static_cast<size_t>(width));
      visit(bits);
    }
  }

 private:
  template <class T>
  T fail() const {
    throw Refusal::invalid("field ", number_, " of the message has wire type ", type_,
                           ", which this field does not "
                           "have");
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= shift < 64 ? static_cast<uint64_t>(byte & 127) << shift : 0;
      if (byte < 128) return value;
    }
    throw Refusal::invalid("the message ends inside a number");
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw Refusal::invalid("the message ends inside field ", number_);
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(count));
    rest_.remove_prefix(static_cast<size_t>(count));
    return taken;
  }

  std::string_view rest_, bytes_;
  int number_ = 0, type_ = 0;
  uint64_t value_ = 0;
};

inline void append_bytes_field(std::string& to, int field, std::string_view bytes) {
  append_tag(to, field, WireType::bytes);
  append_varint(to, bytes.size());
  to += bytes;
}
inline void append_integer_field(std::string& to, int field, uint64_t value) {
  append_tag(to, field, WireType::varint);
  append_varint(to, value);
}

}  // namespace hctr::serve
