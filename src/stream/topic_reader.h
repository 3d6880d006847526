// Reads all partitions of topics from offsets that the caller keeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/kafka_library.h"

namespace hctr {

/// Maps (topic index, partition) to the offset of the next message.
using TopicOffsets = std::map<std::pair<int32_t, int32_t>, int64_t>;

/// Writes offsets as readable JSON: {"offsets": [["topic", 0, 17], ...]}.
std::string offsets_text(const TopicOffsets&, const std::vector<std::string>& topics);
/// Parses the result of offsets_text(). Returns the offsets of `topics`; none if the text is empty. Errors: Error(data)
/// for an invalid text.
TopicOffsets read_offsets_text(std::string_view, const std::vector<std::string>& topics);

/// Not thread-safe.
class TopicReader {
 public:
  /// Partitions that are missing in `from` are read from their first message. Does not wait. Errors: those of
  /// open_kafka_reader().
  TopicReader(const StreamOptions&, std::vector<std::string> topics, TopicOffsets from);

  /// The next message, which is valid until the next call; null: no message within `ms`. A missing topic or an
  /// unreachable broker is not an error. Errors: Error(io).
  const KafkaMessage* read(int64_t ms);
  /// The offsets to resume from.
  const TopicOffsets& offsets() const { return offsets_; }
  /// Whether all messages that the topics had at the first call have been read. Errors: Error(io) if the broker does
  /// not answer within `seconds`.
  bool caught_up(double seconds);
  /// Number of skipped offsets, whose messages the broker has deleted.
  int64_t missing() const { return missing_; }
  /// Number of offsets that were read twice, because a topic was recreated or truncated.
  int64_t repeated() const { return repeated_; }
  /// Partitions of all topics; 0: unknown.
  int64_t partitions() const;
  /// Number of unread messages in the topics; -1: unknown.
  int64_t behind() const;
  /// The last error of brokers or topics that the client has reported.
  std::string trouble() const;
  /// Commits the offsets to the options' consumer group.
  void note(const TopicOffsets&);
  const std::vector<std::string>& topics() const { return topics_; }

 private:
  bool find_partitions(int64_t ms);
  std::string where() const;

  std::string brokers_;
  std::vector<std::string> topics_;
  std::unique_ptr<KafkaReader> reader_;
  TopicOffsets offsets_;
  std::vector<int32_t> partitions_;  // by topic; 0: unknown
  std::chrono::steady_clock::time_point looked_{};
  std::optional<TopicOffsets> ends_;
  std::string trouble_;
  KafkaMessage message_;
  int64_t missing_ = 0, repeated_ = 0;
};

/// For timeouts. after_seconds(): the time point `seconds` from now. ms_until(): the milliseconds left until a time
/// point, at least 0.
std::chrono::steady_clock::time_point after_seconds(double seconds);
int64_t ms_until(std::chrono::steady_clock::time_point);

}  // namespace hctr
