// The messages of HugeCTR's Hierarchical Parameter Server (HPS): rows of one table, in one topic per table.
//
//   bytes 0-3  "HCTR"
//         4-7  u32: bytes of a row
//   then, to the end: key (8 bytes, or 4), row
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

inline constexpr int kHpsKeyGroups = 8;

/// The name of a table's topic: "hps_et.<model>.<table>".
std::string hps_topic(std::string_view model, std::string_view table);
/// The hash by which HugeCTR distributes keys over partitions (rrxmrrxmsx_0, in the public domain).
uint64_t hps_mixed(uint64_t key);
/// The group of a key. All keys of a message have the same group g; the message goes to partition g modulo the number
/// of partitions.
inline int32_t hps_key_group(int64_t key) {
  return static_cast<int32_t>(hps_mixed(static_cast<uint64_t>(key)) % kHpsKeyGroups);
}

/// `key_bytes`: 8 or 4. Errors: Error(data) for a key that does not fit into `key_bytes`.
std::string write_hps_message(std::span<const int64_t> keys, std::span<const float> rows, int64_t dim, int key_bytes);
/// Appends the message's keys and rows. Returns an empty text for a valid message. Otherwise returns what is wrong, and
/// appends nothing. A message without rows is a heartbeat.
std::string read_hps_message(std::string_view message, int64_t dim, int key_bytes, std::vector<int64_t>& keys,
                             std::vector<float>& rows);

}  // namespace hctr
