// The messages of a delta in a Kafka topic.
//
// A message is a 48-byte header and a body, little endian. The checksum covers everything except the checksum field.
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
//   end      0      u32 number of messages of the delta, including this one; u32 CRC-32 over the checksums of all
//                   messages before this one
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
  uint32_t crc = 0;  ///< set when a message is read
};

inline constexpr size_t kDeltaHeadBytes = 48;

/// Writes a message with its checksum to `message`. Returns the checksum.
uint32_t write_delta_message(const DeltaMessageHead&, std::string_view body, std::string& message);
/// Parses a message into `head` and `body`. Returns the reason why a message is invalid; empty for a valid message.
std::string read_delta_message(std::string_view message, DeltaMessageHead& head, std::string_view& body);

std::string begin_body(const StreamedAbout&);
/// Errors: Error(data).
StreamedAbout read_begin_body(std::string_view);

std::string rows_body(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows);
std::string file_body(std::string_view name, uint64_t offset, uint64_t size, std::string_view bytes);
std::string end_body(uint32_t messages, uint32_t crc_of_crcs);
/// Returns false if `body` is not a valid end message.
bool read_end_body(std::string_view body, uint32_t& messages, uint32_t& crc_of_crcs);

/// Adds the message's rows, removed keys, or file bytes to a delta; `about` must list the delta's tables. Errors:
/// Error(data) naming what is wrong.
void add_message(const DeltaMessageHead&, std::string_view body, StreamedDelta&);
/// The checksum of a list of message checksums, in message order.
uint32_t crc_of_crcs(std::span<const uint32_t> crcs);

}  // namespace hctr
