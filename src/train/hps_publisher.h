// Publishes rows as messages of HugeCTR's Hierarchical Parameter Server.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "config/sections/stream_section.h"
#include "stream/kafka_library.h"

namespace hctr {

class HpsPublisher {
 public:
  /// Errors: those of open_kafka_writer().
  explicit HpsPublisher(const PublishSection&);
  /// Sends rows. Errors: Error(io) if no broker accepts messages; Error(data) if a key does not fit into 32 bits.
  void rows(const StreamedAbout::Table&, std::span<const int64_t> keys, std::span<const float> rows);
  /// Waits until the broker has received all rows. Errors: Error(io).
  void flush();
  /// Returns true in the first call only.
  bool first_removed() { return !std::exchange(said_removed_, true); }
  /// Makes blocked calls throw. Any thread may call this.
  void stop() { stopped_ = true; }

 private:
  [[noreturn]] void give_up(const std::string& why);
  int32_t partitions_of(const std::string& topic);
  void send(const std::string& topic, int32_t partition, const std::string& message);

  PublishSection section_;
  std::unique_ptr<KafkaWriter> writer_;
  std::map<std::string, int32_t> partitions_;
  bool said_removed_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace hctr
