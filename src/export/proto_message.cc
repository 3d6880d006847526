#include "export/proto_message.h"

#include <bit>

#include "core/base/proto_wire.h"

namespace hctr {

void ProtoMessage::put(std::string_view bytes) {
  if (!pieces_.back().array.empty()) pieces_.emplace_back();
  pieces_.back().head += bytes;
  bytes_ += static_cast<int64_t>(bytes.size());
}

void ProtoMessage::varint(uint64_t value) {
  std::string bytes;
  append_varint(bytes, value);
  put(bytes);
}

void ProtoMessage::tag(int field, WireType type) {
  std::string bytes;
  append_tag(bytes, field, type);
  put(bytes);
}

ProtoMessage& ProtoMessage::number(int field, int64_t value) {
  tag(field, WireType::varint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(int field, float value) {
  tag(field, WireType::fixed32);
  std::string bytes;
  append_fixed(bytes, std::bit_cast<uint32_t>(value), 4);
  put(bytes);
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  tag(field, WireType::bytes);
  varint(value.size());
  put(value);
  return *this;
}

ProtoMessage& ProtoMessage::message(int field, ProtoMessage value) {
  tag(field, WireType::bytes);
  varint(static_cast<uint64_t>(value.bytes_));
  for (Piece& piece : value.pieces_) {
    put(piece.head);
    if (piece.array.empty()) continue;
    bytes_ += piece.array[0].bytes();
    pieces_.back().array = std::move(piece.array);
  }
  return *this;
}

ProtoMessage& ProtoMessage::array(int field, StoredArray value) {
  tag(field, WireType::bytes);
  varint(static_cast<uint64_t>(value.bytes()));
  bytes_ += value.bytes();
  pieces_.back().array.push_back(std::move(value));
  return *this;
}

void ProtoMessage::write(const ByteSink& sink) const {
  for (const Piece& piece : pieces_) {
    sink(std::as_bytes(std::span(piece.head)));
    for (const StoredArray& array : piece.array) array.write(sink);
  }
}

}  // namespace hctr
