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

/// By number of the topic and partition: the offset of the next message.
using TopicOffsets = std::map<std::pair<int32_t, int32_t>, int64_t>;

/// For people and files: {"offsets": [["topic", 0, 17], ...]}.
std::string offsets_text(const TopicOffsets&, const std::vector<std::string>& topics);
/// Those of these topics; none of an empty text. Errors: Error(data) for a text that is none.
TopicOffsets read_offsets_text(std::string_view, const std::vector<std::string>& topics);

/// One thread at a time.
class TopicReader {
 public:
  /// `from`: partitions that it lacks are read from their first message. Does not wait. Errors: those of
  /// open_kafka_reader().
  TopicReader(const StreamOptions&, std::vector<std::string> topics, TopicOffsets from);

  /// The next message, which lives until the next call; null: none within `ms`. A topic that is not there yet, and a
  /// broker that is away, are no errors. Errors: Error(io).
  const KafkaMessage* read(int64_t ms);
  /// Where it goes on.
  const TopicOffsets& offsets() const { return offsets_; }
  /// Whether all messages that were in the topics at the first call are read. Errors: Error(io) where they do not
  /// answer within `seconds`.
  bool caught_up(double seconds);
  /// Offsets that were passed over, since their messages are gone.
  int64_t missing() const { return missing_; }
  /// Offsets that came again: a topic was made anew, or cut off.
  int64_t repeated() const { return repeated_; }
  /// Of all topics; 0: not known yet.
  int64_t partitions() const;
  /// Messages that are there and not read; -1: not known.
  int64_t behind() const;
  /// What the client has last reported of brokers and topics.
  std::string trouble() const;
  /// Tells the group of the options.
  void note(const TopicOffsets&);
  const std::vector<std::string>& topics() const { return topics_; }

 private:
  bool find_partitions(int64_t ms);
  std::string where() const;

  std::string brokers_;
  std::vector<std::string> topics_;
  std::unique_ptr<KafkaReader> reader_;
  TopicOffsets offsets_;
  std::vector<int32_t> partitions_;  // by topic; 0: not known
  std::chrono::steady_clock::time_point looked_{};
  std::optional<TopicOffsets> ends_;
  std::string trouble_;
  KafkaMessage message_;
  int64_t missing_ = 0, repeated_ = 0;
};

/// Of waits.
std::chrono::steady_clock::time_point after_seconds(double seconds);
int64_t ms_until(std::chrono::steady_clock::time_point);

}  // namespace hctr
