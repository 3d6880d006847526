// Event files of TensorBoard: the numbers of metrics.jsonl as scalars.
//
// A file is a sequence of TFRecords, each a protocol buffer "Event":
//   u64 length | u32 masked CRC32C of the length | the event | u32 masked CRC32C of the event
// Source: the TFRecord format and event.proto, summary.proto of TensorFlow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "config/json.h"

namespace hctr {

/// CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);
/// The bytes as a TFRecord.
std::string tf_record(std::string_view bytes);

/// The scalars of a line of metrics.jsonl, by TensorBoard's names: "train/loss", "eval/AUC", "table/<name>/rows".
std::vector<std::pair<std::string, double>> scalars_of(const Json& line);

/// A new file events.out.tfevents.<time>.<host>.<process> in a folder. What cannot be written is warned of once.
class EventFile {
 public:
  /// `first_step`: TensorBoard drops steps from there on that earlier files of the folder have; 0: there are none.
  /// Errors: Error(io).
  EventFile(const std::filesystem::path& folder, int64_t first_step, const Log&);

  /// Appends what scalars_of() finds in a line of metrics.jsonl; nothing where it finds none.
  void add(const Json& line, double unix_seconds);

 private:
  void append(const std::string& event);

  fs::path path_;
  File file_;  // null after an error
  const Log& log_;
};

}  // namespace hctr
