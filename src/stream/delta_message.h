// The messages that a delta consists of in a topic.
//
// A message is a header of 48 bytes and a body, little endian; everything but the checksum itself is in the checksum.
//
//   bytes  0-3   "HCDS"                     16-23  stream: a random number of the producer
//          4-5   version, 1                 24-31  sequence: the message's number in the stream
//          6     kind                       32-39  delta: its number in the stream
//          7     0                          40-43  index: the message's number in the delta
//          8-11  CRC-32                     44-47  count: of rows, keys, or bytes
//          12-15 table
//
//   kind     count  body
//   begin    0      JSON: run, iteration, base, written, tables: name, dim, by_slot, rows
//   rows     rows   slots (int32; of tables by slot), keys (int64), rows (float)
//   removed  keys   slots, keys
//   file     bytes  u64 offset, u64 size of the file, u16 length of its name, name, bytes
//   end      0      u32 messages of the delta, with this one; u32 CRC-32 over the checksums of all before it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/delta_stream.h"

namespace hctr {

enum class DeltaMessageKind : uint8_t { begin = 1, rows, removed, file, end };

struct DeltaMessageHead {
  DeltaMessageKind kind = DeltaMessageKind::begin;
  uint32_t table = 0;
  uint64_t stream = 0, sequence = 0, delta = 0;
  uint32_t index = 0, count = 0;
  uint32_t crc = 0;  ///< of a message that was read
};

inline constexpr size_t kDeltaHeadBytes = 48;

/// A message with its checksum. Returns that.
uint32_t write_delta_message(const DeltaMessageHead&, std::string_view body, std::string& message);
/// What is wrong with a message; empty, and `head` and `body`, where nothing is.
std::string read_delta_message(std::string_view message, DeltaMessageHead& head, std::string_view& body);

std::string begin_body(const StreamedAbout&);
/// Errors: Error(data).
StreamedAbout read_begin_body(std::string_view);

std::string rows_body(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows);
std::string file_body(std::string_view name, uint64_t offset, uint64_t size, std::string_view bytes);
std::string end_body(uint32_t messages, uint32_t crc_of_crcs);
/// False where it is none.
bool read_end_body(std::string_view body, uint32_t& messages, uint32_t& crc_of_crcs);

/// Adds rows, removed keys, or bytes of a file to a delta whose tables are those of its `about`. Errors: Error(data)
/// naming what does not fit.
void add_message(const DeltaMessageHead&, std::string_view body, StreamedDelta&);
/// The checksum of the checksums of messages, in their order.
uint32_t crc_of_crcs(std::span<const uint32_t> crcs);

}  // namespace hctr
