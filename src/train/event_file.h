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

#include "config/json.h"
#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);
/// The bytes as a TFRecord.
std::string tf_record(std::string_view bytes);

/// The scalars of a line of metrics.jsonl, by TensorBoard's names: "train/loss", "eval/AUC", "table/<name>/rows".
std::vector<std::pair<std::string, double>> scalars_of(const Json& line);

/// The bytes of a file up to the end of its last whole record; 0 where it does not begin as event files do.
int64_t whole_event_bytes(const std::filesystem::path&);

/// A file events.out.tfevents.<time>.<host>.<process> in a folder. What cannot be written is warned of once.
class EventFile {
 public:
  /// `first_step`: of a run that goes on, which appends to the last file of the folder; TensorBoard drops earlier
  /// events from that step on. 0, or where there is no file: a new one. Errors: Error(io).
  EventFile(const std::filesystem::path& folder, int64_t first_step, const Log&);

  /// Appends what scalars_of() finds in a line of metrics.jsonl; nothing where it finds none.
  void add(const Json& line, double unix_seconds);

 private:
  /// Opens the last file of the folder behind its last whole record; false where there is none.
  bool open_last(const std::filesystem::path& folder);
  void open_new(const std::filesystem::path& folder, double now);
  void append(const std::string& event);

  fs::path path_;
  File file_;  // null after an error
  const Log& log_;
};

}  // namespace hctr
