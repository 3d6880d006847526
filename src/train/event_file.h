// TensorBoard event files: the values of metrics.jsonl as scalars.
//
// A file is a sequence of TFRecords, each of which holds a protocol buffer "Event":
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

/// CRC-32C (Castagnoli) of `bytes`.
uint32_t crc32c(std::string_view bytes);
/// Wraps `bytes` in a TFRecord.
std::string tf_record(std::string_view bytes);

/// The scalars of a line of metrics.jsonl, with TensorBoard names such as "train/loss", "eval/AUC",
/// "table/<name>/rows".
std::vector<std::pair<std::string, double>> scalars_of(const Json& line);

/// The size of a file up to the end of its last complete record; 0 if the file does not begin like an event file.
int64_t whole_event_bytes(const std::filesystem::path&);

/// A file events.out.tfevents.<time>.<host>.<process> in `folder`. The first failed write logs a warning.
class EventFile {
 public:
  /// `first_step`: 0 creates a new file. For a resumed run, pass the first step. Events are then appended to the
  /// folder's last file, if any, and TensorBoard drops earlier events from that step on. Errors: Error(io).
  EventFile(const std::filesystem::path& folder, int64_t first_step, const Log&);

  /// Appends the scalars that scalars_of() finds in `line`.
  void add(const Json& line, double unix_seconds);

 private:
  /// Opens the last file of the folder, to append after its last complete record. Returns false if the folder has no
  /// file.
  bool open_last(const std::filesystem::path& folder);
  void open_new(const std::filesystem::path& folder, double now);
  void append(const std::string& event);

  fs::path path_;
  File file_;  // null after a failed write
  const Log& log_;
};

}  // namespace hctr
