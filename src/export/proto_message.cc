#include "export/proto_message.h"

#include <cstring>

namespace hctr {
namespace {

constexpr int kVarint = 0, kBytes = 2, kFixed32 = 5;  // wire types

}  // namespace

void ProtoMessage::put(std::string_view bytes) {
  if (!pieces_.back().array.empty()) pieces_.emplace_back();
  pieces_.back().head += bytes;
  bytes_ += static_cast<int64_t>(bytes.size());
}

void ProtoMessage::varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  put(bytes + static_cast<char>(value));
}

void ProtoMessage::head(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }

ProtoMessage& ProtoMessage::number(int field, int64_t value) {
  head(field, kVarint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real(int field, float value) {
  head(field, kFixed32);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  put({bytes, sizeof bytes});
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  head(field, kBytes);
  varint(value.size());
  put(value);
  return *this;
}

ProtoMessage& ProtoMessage::message(int field, ProtoMessage value) {
  head(field, kBytes);
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
  head(field, kBytes);
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
