// Builds a message in the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/proto_wire.h"
#include "export/model_arrays.h"

namespace hctr {

/// A message under construction. Fields are written in the order in which they were added. Arrays are read only when
/// the message is written.
class ProtoMessage {
 public:
  ProtoMessage& number(int field, int64_t value);
  ProtoMessage& real(int field, float value);
  ProtoMessage& text(int field, std::string_view value);
  ProtoMessage& message(int field, ProtoMessage value);
  ProtoMessage& array(int field, StoredArray value);

  int64_t bytes() const { return bytes_; }
  void write(const ByteSink&) const;

 private:
  /// Encoded bytes, optionally followed by the bytes of an array.
  struct Piece {
    std::string head;
    std::vector<StoredArray> array = {};
  };
  void put(std::string_view bytes);
  void tag(int field, WireType);
  void varint(uint64_t value);

  std::vector<Piece> pieces_ = {Piece{}};
  int64_t bytes_ = 0;
};

}  // namespace hctr
